"""One round of a loop: tasks of the new sessions, samples with replay, an adapter, its scores, the gate's verdict."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inloop.build.sessions import SessionSource, build_sessions
from inloop.data.pipeline import build_folder
from inloop.errors import DataError
from inloop.evaluate.compare import Gate, Pair, compare_pair, gate
from inloop.evaluate.results import NAME as RESULTS
from inloop.evaluate.results import load_results
from inloop.evaluate.run import EvalSettings, chosen, evaluate_served, ground, serving
from inloop.files import write_json
from inloop.progress import console
from inloop.recipe.ledger import Stages
from inloop.recipe.loop_config import Ground, LoopConfig
from inloop.recipe.loop_state import Round, State
from inloop.tasks.taskset import INDEX, Taskset
from inloop.trace.redact.apply import Redactor
from inloop.trace.redact.find import load_salt
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Trajectory
from inloop.types import Reward, Verdict

STAGES = ("tasks", "data", "sft", "evaluate", "gate")
START = "start"
"""Folder of what the loop began with, beside `rounds/`."""


@dataclass
class RoundRun:
    """A run folder: `traces/ selected/ data/ sft/ evaluations/ gate.json`, and a ledger of the stages that are done."""

    config: LoopConfig
    state: State
    one: Round
    stages: Stages = field(init=False)

    @property
    def done(self) -> dict[str, dict[str, Any]]:
        return self.stages.done

    @property
    def folder(self) -> Path:
        return self.state.root / "rounds" / self.one.name

    def run(self) -> None:
        """Goes on where it was stopped, and closes the round. Raises what a stage raises."""
        self.stages = Stages(self.folder)
        for name in STAGES:
            if name not in self.done:
                self._stage(name)
            if why := self.done[name].get("nothing"):
                self._close(Gate(promoted=False, reasons=(why,)), "")
                return
        verdict = self.done["gate"]
        checkpoint = f"rounds/{self.one.name}/sft/checkpoints/last"
        self._close(Gate(promoted=verdict["promoted"], reasons=tuple(verdict["reasons"])), checkpoint)

    def _stage(self, name: str) -> None:
        console.print(f"[bold]round {self.one.number}: {name}[/bold]", highlight=False)
        self.stages.do(name, getattr(self, f"_do_{name}"))

    def _close(self, verdict: Gate, checkpoint: str) -> None:
        facts = {name: {k: v for k, v in row.items() if k != "stage"} for name, row in self.done.items()}
        self.state.close(
            self.one, promoted=verdict.promoted, reasons=verdict.reasons, checkpoint=checkpoint, facts=facts
        )

    def _do_tasks(self) -> dict[str, Any]:
        """The new sessions as a ledger of their own, and tasks of those that the sandbox can verify."""
        wanted = set(self.one.sessions)
        new = (t for t in TrajectoryStore(self.state.root / "traces") if t.id in wanted)
        TrajectoryStore(self.folder / "traces").extend(new)
        part = self.config.tasks
        if not part.repo:
            return {"sessions": len(wanted), "tasks": 0, "unverified": {}}
        salt = Path(self.config.watch.salt) if self.config.watch.salt else None
        source = SessionSource(repo=part.repo, commit=part.commit, redactor=Redactor(load_salt(salt)))
        report = build_sessions(
            [self.folder / "traces"],
            source,
            self.state.root / "tasks",
            part.n,
            seed=self.config.seed,
            workers=part.workers,
        )
        unverified = report.skipped + report.drops
        return {"sessions": len(wanted), "tasks": len(report.kept), "unverified": dict(unverified.most_common())}

    def _do_data(self) -> dict[str, Any]:
        """Select, replay, mask, audit. 'nothing' says why there is nothing to learn from."""
        selected = self.folder / "selected"
        shutil.rmtree(selected, ignore_errors=True)
        old = self._replayed()
        TrajectoryStore(selected).extend(self._prepared(old))
        config = self.config.data
        if (self.state.root / "tasks" / INDEX).is_file():
            config = replace(config, training_tasks=(*config.training_tasks, self.state.root / "tasks"))
        try:
            built = build_folder([selected], self.folder / "data", config)
        except DataError as error:
            return {"nothing": f"nothing to learn from: {error.message}"}
        if not built.report.ok:
            raise DataError("the samples fail their audit", fix=f"inloop data audit {self.folder / 'data'}")
        return {"samples": len(built.samples), "replayed": len(old), "drops": built.drops.reasons("trajectory")}

    def _replayed(self) -> set[str]:
        """Ids drawn from earlier rounds and from the older ledgers."""
        before = [i for r in self.state.rounds if r.number < self.one.number for i in r.sessions]
        pool = sorted({*before, *(t.id for path in self.config.older for t in TrajectoryStore(path))})
        count = min(len(pool), round(self.config.replay * len(self.one.sessions)))
        return set(random.Random(f"{self.config.seed}:{self.one.number}").sample(pool, count))

    def _prepared(self, old: set[str]) -> Iterator[Trajectory]:
        """What a verified session passed is written on it; what has no harness is rendered by the loop's."""
        verified = self._verified()
        wanted, seen = {*self.one.sessions, *old}, set[str]()
        for path in (self.state.root / "traces", *self.config.older):
            for trajectory in TrajectoryStore(path):
                if trajectory.id not in wanted or trajectory.id in seen:
                    continue
                seen.add(trajectory.id)
                if trajectory.reward is None and (task := verified.get(trajectory.id)):
                    said = f"where it ended, the hidden tests of {task} pass"
                    trajectory.reward = Reward(value=1.0, verdict=Verdict.PASSED, evidence=(said,))
                    trajectory.task_id = task
                trajectory.harness = trajectory.harness or self.config.harness.record()
                trajectory.meta["round"] = self.one.number
                trajectory.meta["replayed"] = trajectory.id in old
                yield trajectory

    def _verified(self) -> dict[str, str]:
        """Session -> the task that it became."""
        folder = self.state.root / "tasks"
        if not (folder / INDEX).is_file():
            return {}
        return {str(t.meta["session"]): t.id for t in Taskset.open(folder).tasks() if "session" in t.meta}

    def _do_sft(self) -> dict[str, Any]:
        """From the current checkpoint's adapter, on its base."""
        from inloop.train.sft import sft

        folder = self.folder / "sft"
        settings = replace(self.config.sft, adapter=self.current)
        trained = sft(self.folder / "data", folder, settings, resume=(folder / "config.toml").exists())
        return {"from": self.current or self.config.model, "steps": trained.steps, "loss": trained.loss}

    @property
    def current(self) -> str:
        """The adapter that the round begins with; '' is the base model. Rounds close one after the other."""
        promoted = self.state.promoted
        return str(self.state.root / promoted.checkpoint) if promoted else self.config.checkpoint

    def _do_evaluate(self) -> dict[str, Any]:
        """Current and candidate on the same fixed tasks; what is scored already is taken over."""
        for name in ("current", "candidate"):
            self._evaluate(name)
        scores = {
            f"{name}, {kind}": load_results(self.scores(name, kind, where)[1]).pass_at_1
            for kind, where in self._grounds()
            for name in ("current", "candidate")
        }
        return {"pass@1": scores}

    def _evaluate(self, name: str) -> None:
        """One start of an engine for all sets of tasks; an interrupted evaluation is filled up."""
        asked = [(where.path, *self.scores(name, kind, where)) for kind, where in self._grounds()]
        missing = [(path, settings, folder) for path, settings, folder in asked if not (folder / RESULTS).is_file()]
        if missing:
            with serving(missing[0][1]) as served:
                for path, settings, folder in missing:
                    evaluate_served(settings, path, folder, served)

    def _grounds(self) -> Iterator[tuple[str, Ground]]:
        yield "held_out", self.config.held_out
        if self.config.retention:
            yield "retention", self.config.retention

    def scores(self, name: str, kind: str, where: Ground) -> tuple[EvalSettings, Path]:
        """How a checkpoint is scored, and where its scores lie: with the round that made it.

        The folder is one for the same tasks and settings, so that scores that can be compared are made once."""
        promoted = self.state.promoted
        home = self.state.root / (f"rounds/{promoted.name}" if promoted else START)
        home, model = (self.folder, "") if name == "candidate" else (home, self.current or self.config.model)
        settings = replace(
            self.config.evaluate,
            model=model or str(self.folder / "sft/checkpoints/last"),
            name=home.name,
            filter=where.filter,
        )
        _, rows = chosen(where.path, settings)
        told = repr((ground(rows), settings.k, settings.temperature, settings.seed, self.config.harness.hash()))
        return settings, home / "evaluations" / f"{kind}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"

    def _do_gate(self) -> dict[str, Any]:
        pairs = {kind: self._pair(kind, where) for kind, where in self._grounds()}
        asked = self.config.gate
        verdict = gate(
            pairs["held_out"],
            margin=asked.margin / 100,
            retention=pairs.get("retention"),
            allowed_loss=asked.allowed_loss / 100,
        )
        write_json(self.folder / "gate.json", {k: p.to_dict() for k, p in pairs.items()})
        effects = {kind: round(100 * p.comparison.effect, 2) for kind, p in pairs.items()}
        return {"promoted": verdict.promoted, "reasons": list(verdict.reasons), "points": effects}

    def _pair(self, kind: str, where: Ground) -> Pair:
        current, candidate = (load_results(self.scores(n, kind, where)[1]) for n in ("current", "candidate"))
        return compare_pair(current, candidate)
