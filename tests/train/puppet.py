"""A tiny model can't write code, so what it 'samples' is put in its mouth; the log-probabilities are its own."""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from inloop.engine.base import Completion, EngineInfo, Sampling


class PuppetEngine:
    """Right with a chance of one half, by the seed; log-probabilities are the real model's, adapters included."""

    def __init__(self, model: Path, tasks: Path, state: Path) -> None:
        self.model, self.tasks, self.state = model, tasks, state
        self._reset()

    def _reset(self) -> None:
        self._lock, self._net, self._at = threading.Lock(), None, None

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "tasks": self.tasks, "state": self.state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def info(self) -> EngineInfo:
        return EngineInfo(model="puppet", max_model_len=4096, dtype="float32", weight_version=self._live()["version"])

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling, *, conversation: str | None = None) -> Completion:
        with self._lock:
            live = self._live()
            self._load(live)
            text = self.tokenizer.decode(prompt_ids)
            ids = [*self.tokenizer(self._turn(text, sampling.seed or 0))["input_ids"], self.tokenizer.eos_token_id]
            return Completion(
                token_ids=ids,
                logprobs=self._score(list(prompt_ids), ids, sampling.temperature),
                finish="stop",
                weight_version=live["version"],
            )

    def _turn(self, text: str, seed: int) -> str:
        file = re.findall(r"Fix (\w+)\.py", text)
        turns = text.count("<|im_start|>assistant") - 1
        if not file:
            return "x = 1"
        old, new = self._fix(file[0])
        if turns == 0:
            line = new if random.Random(seed).random() < 0.5 else "    pass"
            return f"```edit {file[0]}.py\n{old}\n=======\n{line}\n```"
        return "```submit```"

    def _fix(self, module: str) -> tuple[str, str]:
        for patch in self.tasks.glob("*/solution/patch.diff"):
            text = patch.read_text()
            if f"a/{module}.py" in text:
                lines = text.splitlines()[2:]
                return (next(x[1:] for x in lines if x[0] == sign) for sign in "-+")  # type: ignore[return-value]
        raise AssertionError(module)

    def _live(self) -> dict[str, Any]:
        return json.loads(self.state.read_text()) if self.state.exists() else {"version": 0, "adapter": None}

    def _load(self, live: dict[str, Any]) -> None:
        import torch
        from peft import PeftModel
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if self._at == live:
            return
        torch.set_num_threads(1)
        self.tokenizer = AutoTokenizer.from_pretrained(self.model)
        net = AutoModelForCausalLM.from_pretrained(self.model, dtype=torch.float32)
        self._net = PeftModel.from_pretrained(net, live["adapter"]).eval() if live["adapter"] else net.eval()
        self._at = live

    def _score(self, prompt: list[int], ids: list[int], temperature: float) -> list[float]:
        import torch

        assert self._net is not None
        with torch.no_grad():
            logits = self._net(torch.tensor([[*prompt, *ids]])).logits[0].float() / temperature
        at = torch.arange(len(prompt), len(prompt) + len(ids))
        return logits[at - 1].log_softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)].tolist()

    def forget(self, conversation: str) -> None: ...

    def load_weights(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        raise AssertionError("an adapter is handed over, not weights")

    def load_adapter(self, folder: Path, version: int) -> None:
        fresh = self.state.with_suffix(".new")
        fresh.write_text(json.dumps({"version": version, "adapter": str(folder)}))
        fresh.replace(self.state)

    def close(self) -> None: ...
