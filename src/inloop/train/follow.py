"""What happens beside the steps of an SFT run: progress, metrics, measurements, the best and the last checkpoint."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from inloop.progress import Bar
from inloop.train import checkpoint
from inloop.train.checkpoint import About
from inloop.train.run_folder import RunFolder
from inloop.train.sft_settings import Evaluate, SFTSettings, Trained


class Follow(TrainerCallback):  # type: ignore[misc]
    def __init__(
        self,
        folder: RunFolder,
        trainer: Any,
        what: About,
        settings: SFTSettings,
        progress: Bar,
        evaluate: Evaluate | None,
    ) -> None:
        self.folder, self.trainer, self.what, self.settings = folder, trainer, what, settings
        self.progress, self.evaluate = progress, evaluate
        self.main: bool = trainer.accelerator.is_main_process
        self.every = 0
        self.loss = math.nan
        self.measured: dict[str, float] = {}
        self.seconds, self.began, self.took = 0.0, 0.0, 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        self.progress.set_total(state.max_steps)
        self.progress.step(state.global_step)
        per_epoch = math.ceil(state.max_steps / max(1.0, float(state.num_train_epochs)))
        self.every = self.settings.eval_every or max(1, per_epoch)
        if state.global_step:
            self._recall()

    def _recall(self) -> None:
        """What the run that is resumed had last."""
        for row in self.folder.read_metrics():
            self.loss = row.get("loss", self.loss)
            if "held_out_loss" in row or "success" in row:
                self.measured = {k: v for k, v in row.items() if k != "step"}

    def on_step_begin(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        self.began = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> Any:
        """Asks TRL for the held-out loss instead of computing it here: a call from inside would eat the step's log."""
        self.took = time.monotonic() - self.began
        self.seconds += self.took
        known = not math.isnan(self.loss)  # the trainer tells a step's loss after its end
        self.progress.step(note=f"loss {self.loss:.3f}" if known else "")
        if self.settings.wall_seconds and self.seconds >= self.settings.wall_seconds:
            control.should_training_stop = True
            self.folder.event("stopped", step=state.global_step, why="wall_seconds")
        if control.should_training_stop or state.global_step % self.every == 0 or state.global_step >= state.max_steps:
            if self.trainer.eval_dataset is not None:
                control.should_evaluate = True
            else:
                self.measure({})
        return control

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, float] | None = None, **kw: Any
    ) -> None:
        self.measure({"held_out_loss": float((metrics or {})["eval_loss"])})

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kw: Any) -> None:
        values = {k: float(v) for k, v in (logs or {}).items() if isinstance(v, int | float)}
        if "loss" in values:
            self.loss = values["loss"]
            if self.main:
                self.folder.metrics(state.global_step, **values, seconds=round(self.took, 3))

    def finish(self) -> None:
        if self.main:
            self._write(self.folder.last, self.measured)
        self.trainer.accelerator.wait_for_everyone()

    def measure(self, metrics: dict[str, float]) -> None:
        """Add task success, where there is an `evaluate`; keep the checkpoint if it is the best so far."""
        if self.main:
            step = self.trainer.state.global_step
            if self.evaluate:
                metrics = metrics | self.evaluate(self._write(self.folder.last, metrics))
            if metrics:
                self.folder.metrics(step, **metrics)
                self.folder.event("measured", step=step, **metrics)
            if self._is_best(metrics):
                self._write(self.folder.best, metrics)
        self.measured = metrics
        self.trainer.accelerator.wait_for_everyone()

    def _is_best(self, metrics: dict[str, float]) -> bool:
        """By task success, then by held-out loss; the newest where nothing is measured. Survives a resume."""
        if not checkpoint.is_checkpoint(self.folder.best):
            return True
        before = checkpoint.read_about(self.folder.best).metrics
        return _rank(metrics) > _rank(before) or not metrics

    def _write(self, where: Path, metrics: dict[str, float]) -> Path:
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        what = replace(self.what, step=self.trainer.state.global_step, metrics=metrics)
        return checkpoint.save_checkpoint(where, model, self.trainer.processing_class, what)

    def result(self) -> Trained:
        tokens = self.trainer._total_train_tokens
        return Trained(
            run=self.folder.root,
            steps=self.trainer.state.global_step,
            loss=self.loss,
            held_out_loss=self.measured.get("held_out_loss"),
            success=self.measured.get("success"),
            best=self.folder.best,
            last=self.folder.last,
            tokens_per_second=round(tokens / self.seconds, 1) if self.seconds else 0.0,
        )


def _rank(metrics: dict[str, float]) -> tuple[float, float]:
    return metrics.get("success", -math.inf), -metrics.get("held_out_loss", math.inf)
