"""The continual loop: sessions come in, rounds train on them, and the gate alone decides what becomes current."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from inloop import config as toml
from inloop.errors import DataError
from inloop.files import locked
from inloop.progress import console
from inloop.recipe.loop_config import LoopConfig
from inloop.recipe.loop_round import RoundRun
from inloop.recipe.loop_state import CURRENT, Round, State
from inloop.recipe.loop_watch import in_order, take_in, waiting

CONFIG = "config.toml"


def run_loop(config: LoopConfig, *, rounds: int = 0, once: bool = False) -> dict[str, Any]:
    """Rounds until `rounds` of them have ended (0: without end), or with `once` until there are too few new sessions.

    Killed at any moment and called again it goes on; a round that was begun ends under the config that it began with.
    Raises DataError when the folder is in use, or holds a loop of another model."""
    with locked(config.out, "inloop loop"):
        _same_model(config)
        state = State.read(config.out)
        ended = 0
        while not rounds or ended < rounds:
            if (one := state.open or _next(config, state)) is not None:
                RoundRun(_of_round(config, one), state, one).run()
                _say(one)
                ended += 1
            elif once:
                break
            else:
                time.sleep(config.watch.poll_seconds)
        return summary(state, ended)


def _next(config: LoopConfig, state: State) -> Round | None:
    """Begin a round when enough sessions wait for one."""
    take_in(config.watch, config.out)
    new = waiting(config.out, set(state.taken()))
    if len(new) < config.min_sessions:
        return None
    return state.begin(tuple(in_order(config.out, new)[: config.max_sessions or None]))


def _of_round(config: LoopConfig, one: Round) -> LoopConfig:
    """The config that the round began with; a new round writes it down."""
    file = config.out / "rounds" / one.name / CONFIG
    if not file.is_file():
        toml.save(config, file)
    return toml.load(LoopConfig, file)


def _same_model(config: LoopConfig) -> None:
    file = config.out / CONFIG
    if file.is_file():
        before = toml.load(LoopConfig, file)
        if (before.model, before.checkpoint) != (config.model, config.checkpoint):
            raise DataError(
                f"{config.out} holds a loop of {before.checkpoint or before.model}", fix="choose another `out`"
            )
    toml.save(config, file)


def _say(one: Round) -> None:
    said = "promoted" if one.promoted else "not promoted: " + "; ".join(one.reasons)
    console.print(f"round {one.number}: [bold]{said}[/bold]", highlight=False)


def summary(state: State, ended: int) -> dict[str, Any]:
    """All rounds, also earlier ones; `ended` of them by this call."""
    current = state.root / CURRENT
    return {
        "out": str(state.root),
        "ended": ended,
        "current": str(current) if current.is_symlink() else "",
        "waiting": len(waiting(state.root, set(state.taken()))),
        "rounds": [{k: v for k, v in asdict(r).items() if k != "sessions"} for r in state.rounds],
    }
