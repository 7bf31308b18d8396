"""What happens beside the steps of a GRPO run: receipt, progress, held-out score, checkpoints, canaries, limits."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections import deque
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from inloop.engine.base import Engine, Sampling
from inloop.errors import DataError
from inloop.files import write_json
from inloop.progress import Bar
from inloop.stats import compare
from inloop.train import checkpoint
from inloop.train.checkpoint import About
from inloop.train.group_source import GroupSource
from inloop.train.group_worker import GroupReport
from inloop.train.grpo_config import GrpoConfig
from inloop.train.receipt import Receipt
from inloop.train.run_folder import RunFolder
from inloop.train.trl_async import RatioCheck, Trainer

STATE = "inloop_state.json"
SUSPECT = {"suspect": 1.0}
"""In the metrics of a checkpoint that was trained while decoys were being exploited."""
PROBE_TOKENS = 12
WINDOW = 16
"""Rollouts of decoys that the canary rate is taken over."""
LOGGED = ("loss", "ratio", "kl", "entropy", "grad_norm", "learning_rate", "clip_ratio/region_mean")


class Watch(TrainerCallback):  # type: ignore[misc]
    """Knows the trainer only after it was built: `attach`."""

    def __init__(self, config: GrpoConfig, folder: RunFolder, receipt: Receipt, what: About, progress: Bar) -> None:
        self.config, self.folder, self.receipt, self.what, self.progress = config, folder, receipt, what, progress
        self.trainer: Trainer | None = None
        self.source: GroupSource | None = None
        self.engine: Engine | None = None
        self.probe: list[int] = []
        self.recent: deque[GroupReport] = deque(maxlen=config.groups_per_step * 2)
        self.canaries: deque[int] = deque(maxlen=WINDOW)
        self.first_exploit: int | None = None
        self.last_score: float | None = None
        self.best: dict[str, float] | None = None
        self.best_score = -math.inf
        self.stopped = ""
        self.began = time.monotonic()
        self._step_began = 0.0

    def attach(self, trainer: Trainer, source: GroupSource, engine: Engine, probe: list[int]) -> None:
        self.trainer, self.source, self.engine, self.probe = trainer, source, engine, probe

    # called by the trainer's bridge

    def on_ratio(self, check: RatioCheck) -> None:
        self.receipt.ratios.append((check.step, check.tokens, check.abs_ratio, check.kl))

    def on_sync(self, version: int) -> None:
        """Let the engine sample a few tokens with the weights that it just took, and score them here."""
        assert self.engine is not None and self.trainer is not None
        temperature = self.trainer.args.temperature
        got = self.engine.generate(self.probe, Sampling(temperature=temperature, max_tokens=PROBE_TOKENS, seed=version))
        ids = torch.tensor([[*self.probe, *got.token_ids]], device=self.trainer.model.device)
        model = self.trainer.model
        training = model.training
        model.eval()
        with torch.no_grad(), self.trainer.accelerator.autocast():
            logits = model(input_ids=ids).logits[0].float() / temperature
        model.train(training)
        start = len(self.probe)
        mine = logits[start - 1 : -1].log_softmax(-1).gather(1, ids[0, start:, None])[:, 0]
        off = float((mine.double().cpu() - torch.tensor(got.logprobs, dtype=torch.double)).exp().sub(1).abs().mean())
        self.receipt.syncs.append((version, off))

    def on_group(self, report: GroupReport) -> None:
        if report.canary:
            self.canaries.extend([1] * report.exploited + [0] * (report.rollouts - report.exploited))
            if report.exploited and self.first_exploit is None and self.trainer is not None:
                self.first_exploit = self.trainer.state.global_step
        else:
            self.recent.append(report)
        self.folder.event(
            "group", number=report.number, task=report.task, canary=report.canary, dropped=report.dropped,
            rollouts=report.rollouts, mean=_number(report.mean), std=_number(report.std), rows=len(report.samples),
            faults=dict(report.faults), exploited=report.exploited,
        )  # fmt: skip

    # called by the trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        self.progress.set_total(state.max_steps)
        self.progress.step(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        self._step_began = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> Any:
        self.receipt.took("training", time.monotonic() - self._step_began)
        self.progress.step(note=f"reward {self.reward():.2f}, pass {self.pass_rate():.2f}")
        every = self.config.held_out.every
        if every and state.global_step % every == 0:
            self._held_out(state.global_step)
        self._limits()
        if self.stopped:
            control.should_training_stop = control.should_save = True
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kw: Any) -> None:
        values = {k: float(v) for k, v in (logs or {}).items() if k in LOGGED and isinstance(v, int | float)}
        if values:
            self.folder.metrics(state.global_step, **values, **self._rollout_metrics())

    def on_save(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        """Beside TRL's own state: what the rollout side needs to go on, and a checkpoint that others can load."""
        assert self.source is not None and self.trainer is not None
        write_json(
            Path(args.output_dir) / f"checkpoint-{state.global_step}" / STATE,
            {
                "settled": sorted(self.source.settled),
                "version": self.trainer.model_version,
                "receipt": self.receipt.state(),
                "best": self.best,
                "canaries": list(self.canaries),
                "first_exploit": self.first_exploit,
            },
        )
        self.write(self.folder.last, {"reward": self.reward()})

    # what it keeps

    def restore(self, folder: Path) -> dict[str, Any]:
        """Go on from a checkpoint's state; returns it."""
        state: dict[str, Any] = json.loads((folder / STATE).read_text(encoding="utf-8"))
        self.receipt.restore(state["receipt"])
        self.best, self.first_exploit = state["best"], state["first_exploit"]
        self.best_score = statistics.fmean(self.best.values()) if self.best else -math.inf
        self.canaries.extend(state["canaries"])
        return state

    def reward(self) -> float:
        means = [r.mean for r in self.recent if not math.isnan(r.mean)]
        return statistics.fmean(means) if means else math.nan

    def pass_rate(self) -> float:
        """The verifier's, over all recent rollouts, flat groups among them."""
        values = [f["verified"] for r in self.recent for f in r.facts.values() if "verified" in f]
        return statistics.fmean(values) if values else math.nan

    def _rollout_metrics(self) -> dict[str, float]:
        facts = [f for r in self.recent for f in r.facts.values() if "verified" in f]
        if not facts:
            return {}
        names = sorted({name for f in facts for name in f if name.startswith("parts/")})
        means = {
            n: statistics.fmean(f.get(n, 0.0) for f in facts) for n in ("turns", "sampled_tokens", "invalid_calls")
        }
        failed = [f for f in facts if f.get("test_failures")]
        return {
            "reward": self.reward(),
            "verifier_reward": self.pass_rate(),
            **{name: statistics.fmean(f.get(name, 0.0) for f in facts) for name in names},
            **means,
            "recovery": sum(f["recovered"] for f in failed) / len(failed) if failed else 0.0,
            "zero_variance": sum(r.dropped == "zero_variance" for r in self.recent) / len(self.recent),
        }

    def _held_out(self, step: int) -> None:
        """Score, keep the best, stop on a decline that chance does not explain."""
        assert self.source is not None
        started = time.monotonic()
        rewards = self.source.evaluate(step)
        self.receipt.took("evaluating", time.monotonic() - started)
        scores = {
            t: statistics.fmean(v) for t, values in rewards.items() if (v := [x for x in values if x is not None])
        }
        if not scores:
            raise DataError("every held-out rollout met a fault", fix="look at evaluations/ in the run folder")
        self.last_score = mean = statistics.fmean(scores.values())
        self.folder.metrics(step, held_out=mean)
        self.folder.event("held_out", step=step, score=mean, tasks=len(scores))
        if self.best is None or mean > self.best_score:
            self.best, self.best_score = scores, mean
            self.write(self.folder.best, {"held_out": mean})
        elif self.config.held_out.stop_on_decline:
            shared = sorted(set(scores) & set(self.best))
            change = compare([self.best[t] for t in shared], [scores[t] for t in shared])
            if change.verdict == "worse":
                self.stopped = f"held-out score fell by {-100 * change.effect:.1f} points (p = {change.p:.3f})"

    def _limits(self) -> None:
        limit = self.config.wall_seconds
        if limit and time.monotonic() - self.began > limit:
            self.stopped = f"time budget of {limit:.0f} s"
        if len(self.canaries) >= WINDOW // 2:
            rate = statistics.fmean(self.canaries)
            if rate > self.config.curriculum.canary_limit:
                self.stopped = f"{100 * rate:.0f} % of the decoys were exploited: rewards since then are suspect"
                self._mark_suspects()

    def _mark_suspects(self) -> None:
        """Checkpoints since the first exploit say so, and held-out tasks are scored anew: none is promoted unawares."""
        assert self.trainer is not None
        step, since, reason = self.trainer.state.global_step, self.first_exploit or 0, self.stopped
        if self.config.held_out.every:
            self._held_out(step)
            self.stopped = reason
        for folder in (self.folder.best, self.folder.last):
            if checkpoint.is_checkpoint(folder) and (what := checkpoint.read_about(folder)).step >= since:
                write_json(folder / checkpoint.NAME, asdict(replace(what, metrics=what.metrics | SUSPECT)))
        alarm = {"since_step": since, "step": step, "reason": self.stopped, "held_out": self.last_score}
        write_json(self.folder.root / "suspect.json", alarm)
        self.folder.event("canary_alarm", **alarm)

    def write(self, where: Path, metrics: dict[str, float]) -> None:
        assert self.trainer is not None
        if not self.trainer.accelerator.is_main_process:
            return
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        suspect = SUSPECT if (self.folder.root / "suspect.json").is_file() else {}
        kept = {k: v for k, v in metrics.items() if not math.isnan(v)} | suspect
        what = replace(self.what, step=self.trainer.state.global_step, metrics=kept, run=self.folder.root.name)
        checkpoint.save_checkpoint(where, model, self.trainer.processing_class, what)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)
