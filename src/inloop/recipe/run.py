"""Run a recipe's stages in order; one that is done is not done again, so that a stopped run goes on."""

from __future__ import annotations

import itertools
import resource
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from inloop import config as toml
from inloop.data.pipeline import build_folder
from inloop.errors import DataError, InloopError
from inloop.evaluate.compare import compare_pair
from inloop.evaluate.results import NAME as RESULTS
from inloop.evaluate.results import load_results
from inloop.evaluate.run import evaluate
from inloop.files import locked, write_json
from inloop.harness.policy import make_policy
from inloop.progress import console
from inloop.recipe.budget import Budget
from inloop.recipe.config import STAGES, Recipe
from inloop.recipe.doctor import diagnose
from inloop.recipe.ledger import Stages
from inloop.recipe.tasks import make_tasks
from inloop.rollout.collect import Plan, collect
from inloop.rollout.expert import Expert
from inloop.rollout.run import Rollouts
from inloop.sandbox.base import Backend
from inloop.tasks.taskset import Taskset
from inloop.verify.verifier import Verifier

COMPARISON = "comparison.json"
DERIVED = ("compare", "report")
BEYOND = ("grpo", "evaluate", "compare")
"""Stages that are left out, not begun, once a budget is spent; a later run without one does them."""


@dataclass
class RecipeRun:
    """One run folder: `tasks/ expert/ data/ sft/ grpo/ evaluations/`, and a ledger of the stages that are done."""

    recipe: Recipe
    out: Path
    backend: Backend
    force: bool = False
    budget: Budget = field(default_factory=lambda: Budget(0.0))

    stages: Stages = field(init=False)
    ran: bool = field(default=False, init=False)
    """A stage was done by this object: what is derived from all of them is made anew."""

    @property
    def done(self) -> dict[str, dict[str, Any]]:
        return self.stages.done

    def run(self) -> dict[str, Any]:
        """Returns what the closing table shows. Raises what a stage raises; a later run goes on there."""
        with locked(self.out, "inloop recipe"):
            self._same_recipe()
            self.stages = Stages(self.out)
            self.budget.spent = sum(row["seconds"] for row in self.done.values())
            names = [s for s in STAGES if s in self.recipe.stages]
            for number, name in enumerate(names, 1):
                self._stage(number, len(names), name)
            return self.summary()

    def _same_recipe(self) -> None:
        file = self.out / "config.toml"
        text = toml.dump(self.recipe)
        if file.exists() and file.read_text(encoding="utf-8") != text:
            raise DataError(f"{self.out} holds a run of another recipe", fix="choose another --out, or the same recipe")
        toml.save(self.recipe, file)

    def _stage(self, number: int, count: int, name: str) -> None:
        if name in self.done and not (self.ran and name in DERIVED):
            console.print(f"[dim]{number}/{count} {name}: done before[/dim]", highlight=False)
            return
        if self.budget.gone() and name in BEYOND:
            console.print(f"{number}/{count} {name}: left out, the budget is spent", highlight=False)
            return
        console.print(f"[bold]{number}/{count} {name}[/bold]", highlight=False)
        self.stages.do(name, getattr(self, f"_do_{name}"))
        self.ran = True

    @property
    def tasks(self) -> Path:
        return self.recipe.tasks.path or self.out / "tasks"

    def _do_doctor(self) -> dict[str, Any]:
        """Better to know now than in an hour. Raises the first thing that is wrong, with its fix."""
        findings = diagnose(self.recipe.model, self.out, self.backend.name)
        wrong = next((f for f in findings if f.state == "failed"), None)
        if wrong:
            raise InloopError(f"{wrong.name}: {wrong.said}", fix=wrong.fix or "inloop doctor")
        return {"checks": len(findings)}

    def _do_tasks(self) -> dict[str, Any]:
        """Build and audit; a taskset that is given is only counted."""
        rows = make_tasks(self.recipe.tasks, self.tasks, self.recipe.seed).rows
        audited = sum(r.audited for r in rows)
        return {"tasks": len(rows), "audited": audited, "units": len({r.unit for r in rows})}

    def _do_expert(self) -> dict[str, Any]:
        """The scripted expert through the real harness; every trace is verified like any other."""
        recipe = self.recipe
        taskset = Taskset.open(self.tasks)
        rows = [r for r in taskset.rows if r.split == recipe.trace_split][: recipe.expert.tasks]
        tasks = list(taskset.tasks(rows))
        expert = Expert(tasks, recipe.expert.expert)
        rollouts = Rollouts(
            policy=make_policy(expert, recipe.harness),
            config=recipe.harness,
            backend=self.backend,
            judge=Verifier(),
            owner=str(self.out / "expert"),
            meta={"run": str(self.out), "source": "expert", "licence": "Apache-2.0"},
        )
        summary = collect(
            tasks,
            rollouts.run,
            Plan(seed=recipe.seed),
            self.out / "expert",
            scope="expert",
            identity={"expert": asdict(recipe.expert.expert), "harness": recipe.harness.hash()},
        )
        return {"traces": summary.wanted}

    def _do_data(self) -> dict[str, Any]:
        built = build_folder([self.out / "expert"], self.out / "data", self.recipe.data)
        if not built.report.ok:
            raise DataError("the samples fail their audit", fix=f"inloop data audit {self.out / 'data'}")
        return {"samples": len(built.samples), "trained_tokens": sum(s.trained for s in built.samples)}

    def _do_sft(self) -> dict[str, Any]:
        from inloop.train.sft import sft

        folder = self.out / "sft"
        resume = (folder / "config.toml").exists()
        trained = sft(self.out / "data", folder, self.budget.fitted(self.recipe, "sft").sft, resume=resume)
        return {"steps": trained.steps, "loss": trained.loss, "tokens_per_second": trained.tokens_per_second}

    def _do_grpo(self) -> dict[str, Any]:
        from inloop.train.grpo import quiet_libraries, run_grpo

        quiet_libraries()
        folder = self.out / "grpo"
        begin = str(self.out / "sft/checkpoints/last") if "sft" in self.recipe.stages else self.recipe.model
        config = replace(self.budget.fitted(self.recipe, "grpo").grpo, model=begin, tasks=self.tasks)
        resume = (folder / "config.toml").exists()
        result = run_grpo(config, folder, backend=self.backend, resume=resume, force=self.force)
        return {"steps": result.steps, "stopped": result.stopped, "receipt": result.line}

    def checkpoints(self) -> dict[str, str]:
        """Name -> model, of what this recipe made; the base comes first."""
        out = {"base": self.recipe.model}
        for name in ("sft", "grpo"):
            if name in self.recipe.stages:
                out[name] = str(self.out / name / "checkpoints/last")
        return out

    def _do_evaluate(self) -> dict[str, Any]:
        """Every checkpoint on the same held-out tasks under the same harness."""
        scores = {}
        for name, model in self.checkpoints().items():
            settings = replace(self.recipe.evaluate, model=model, name=name, harness=self.recipe.harness)
            results = evaluate(settings, self.tasks, self.out / "evaluations" / name)
            scores[name] = results.pass_at_1
        return {"pass@1": scores}

    def _do_compare(self) -> dict[str, Any]:
        names = list(self.checkpoints())
        loaded = {n: load_results(self.out / "evaluations" / n) for n in names}
        pairs = [compare_pair(loaded[a], loaded[b]) for a, b in itertools.pairwise(names)]
        write_json(self.out / COMPARISON, [p.to_dict() for p in pairs])
        return {"verdicts": {f"{p.a} -> {p.b}": p.comparison.verdict for p in pairs}}

    def _do_report(self) -> dict[str, Any]:
        from inloop.report.page import write_report

        return {"report": str(write_report(self.out))}

    def summary(self) -> dict[str, Any]:
        """Scores, verdicts, receipt, seconds by stage, peak memory of this process and its children."""
        rows = {}
        for name in self.checkpoints():
            if (self.out / "evaluations" / name / RESULTS).exists():
                rows[name] = load_results(self.out / "evaluations" / name).summary
        usage = [resource.getrusage(w).ru_maxrss for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return {
            "out": str(self.out),
            "scores": rows,
            "verdicts": self.done.get("compare", {}).get("verdicts", {}),
            "receipt": self.done.get("grpo", {}).get("receipt", ""),
            "report": self.done.get("report", {}).get("report", ""),
            "seconds": {name: row["seconds"] for name, row in self.done.items()},
            "peak_memory_mb": round(max(usage) / 1024),
        }
