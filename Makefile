# `make quickstart` and `make test` do all the set-up on a fresh machine (Debian or Ubuntu; Python >= 3.11).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: quickstart test check install system system-test

install: $(STAMP)

$(STAMP): pyproject.toml requirements/bwrap.txt scripts/install
	bash scripts/install "$(PYTHON)" "$(VENV)"
	touch $(STAMP)

system:
	bash scripts/system

system-test:
	bash scripts/system test

quickstart: system $(STAMP)
	$(BIN)/inloop quickstart

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: system-test $(STAMP) check
	OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not agents and not gpu and not docker and not vllm"
