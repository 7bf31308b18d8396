"""One pytest session, prepared once and run in forked children: only the outcome of each step leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

DETAIL = 2000
"""Characters kept of a failure."""

USED_LATER = ("_pytest._io.pprint", "_pytest.assertion.rewrite", "difflib", "getpass", "uuid")
"""What a run imports when it needs it: imported once, before the forks."""

Report = Callable[[list[Any]], None]


def import_pytest() -> None:
    """Import pytest, so that it is not looked up once a submission is importable. Its own parts it finds by itself."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    for name in ("pytest", *USED_LATER):
        import_module(name)


class Plugin:
    """Tells the steps of each test as they happen; the receiver decides what they mean."""

    def __init__(self, report: Report, prefix: str) -> None:
        self.report, self.prefix = report, prefix

    def id_of(self, nodeid: str) -> str:
        return nodeid.removeprefix(self.prefix)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.report(["broken", self.id_of(report.nodeid), str(report.longrepr)[-DETAIL:]])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.report(["start", self.id_of(nodeid)])

    def pytest_runtest_logreport(self, report: Any) -> None:
        kind = "sub" if type(report).__name__ == "SubtestReport" else report.when
        detail = str(report.longrepr)[-DETAIL:] if report.longrepr is not None else ""
        self.report(["step", self.id_of(report.nodeid), kind, report.outcome, hasattr(report, "wasxfail"), detail])

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.report(["finish", self.id_of(nodeid)])


class Prepared:
    """A configured session over `root`; `run` is called in a fork, once."""

    def __init__(self, root: Path) -> None:
        main, config = import_module("_pytest.main"), import_module("_pytest.config")
        place = Path(tempfile.mkdtemp(dir="/tmp"))  # an empty folder: a conftest beside it would be imported here
        ini = place / "pytest.ini"
        ini.write_text("[pytest]\n")
        arguments = ["-q", "-c", str(ini), "--rootdir", str(root), "--confcutdir", str(root), "--capture=sys"]
        arguments += ["--import-mode=importlib", "--tb=line", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
        self.root = root
        self.config = config._prepareconfig([*arguments, str(ini)], [])
        self.config._do_configure()
        self.session = main.Session.from_config(self.config)
        self.config.hook.pytest_sessionstart(session=self.session)
        shutil.rmtree(place)

    def run(self, tests: Path, files: list[str], plugins: list[str], report: Report, only: list[str] | None) -> None:
        """Collect `files` under `tests` and run them in order; `only`: ids to run, the others are left out."""
        prefix = f"{tests.relative_to(self.root).as_posix()}/"
        self.config.pluginmanager.register(Plugin(report, prefix), "inloop-report")
        for name in plugins:
            self.config.pluginmanager.import_plugin(name)
        with contextlib.suppress(self.session.Interrupted, self.session.Failed):
            items = self.session.perform_collect([str(tests / f) for f in files])
            if only is not None:
                wanted = set(only)
                self.session.items = [i for i in items if i.nodeid.removeprefix(prefix) in wanted]
            report(["collected", [i.nodeid.removeprefix(prefix) for i in self.session.items]])
            self.session.testsfailed = 0
            self.config.hook.pytest_runtestloop(session=self.session)
        report(["end"])


def lay_tree(root: Path, files: dict[str, str]) -> None:
    """Write a tree of test files (path -> hex)."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes.fromhex(data))
