"""Which trajectories are worth learning from; each one that is left out is counted with its reason."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from inloop.data.drops import Drops
from inloop.data.duplicates import NearDuplicates
from inloop.data.provenance import licence, source, teacher
from inloop.trace.store import content_hash
from inloop.trace.trajectory import Trajectory
from inloop.types import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectConfig:
    """What is kept, in the order in which it is asked."""

    min_reward: float | None = 1.0
    """Least verified reward. Traces without one are dropped, unless `unscored` is on."""
    unscored: bool = False
    """Keep traces that nobody verified: imported sessions."""
    min_turns: int = 1
    max_turns: int = 0
    """0 is no limit; so below."""
    max_characters: int = 0
    """Of all messages together."""
    licences: tuple[str, ...] = ()
    """Only these; empty takes all and records them."""
    teachers: tuple[str, ...] = ()
    """Only these; empty takes all and records them."""
    duplicates: bool = True
    """Drop the same content under another id."""
    near_duplicates: float = 0.95
    """Jaccard similarity (of what was asked, said and seen) from which a trajectory counts as a repeat; 0 is off."""
    per_task: int = 0
    """Most trajectories of one task; the shortest stay."""
    top_sources: int = 0
    """Only the k sources of the most weight, then of the most trajectories."""
    mix: dict[str, float] = field(default_factory=dict)
    """Source -> share of the whole; the rest is drawn down to it. Sources that aren't named have no share."""
    limit: int = 0
    """Most trajectories in all, drawn with `seed`."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.near_duplicates <= 1:
            raise ValueError("near_duplicates is a similarity between 0 (off) and 1")
        if any(weight < 0 for weight in self.mix.values()) or (self.mix and not sum(self.mix.values())):
            raise ValueError("the shares of `mix` are not negative, and at least one is above 0")


Screen = Callable[[Trajectory], str]
"""Why a trajectory is left out; '' keeps it."""


def select(
    trajectories: Iterable[Trajectory], config: SelectConfig, drops: Drops, screens: Iterable[Screen] = ()
) -> list[Trajectory]:
    """Keep the good ones. `screens` come after the cheap checks: decontamination, for one.

    In the order of their ids: a ledger is in the order in which rollouts ended, which no seed fixes."""
    good = _screened(_counted(trajectories, drops), [lambda t: quality(t, config)], drops)
    asked: list[Screen] = [_exact()] if config.duplicates else []
    asked += screens
    if config.near_duplicates:
        asked.append(NearDuplicates(config.near_duplicates))
    kept = _screened(sorted(good, key=lambda t: t.id), asked, drops)
    for narrow in (_cap_tasks, _top_sources, _mix, _limit):
        kept = narrow(kept, config, drops)
    return kept


def _counted(trajectories: Iterable[Trajectory], drops: Drops) -> Iterator[Trajectory]:
    for trajectory in trajectories:
        drops.trajectories += 1
        yield trajectory


def _screened(trajectories: Iterable[Trajectory], screens: list[Screen], drops: Drops) -> list[Trajectory]:
    out: list[Trajectory] = []
    for trajectory in trajectories:
        if reason := next((r for screen in screens if (r := screen(trajectory))), ""):
            drops.drop("trajectory", trajectory.id, reason)
        else:
            out.append(trajectory)
    return out


def quality(trajectory: Trajectory, config: SelectConfig) -> str:
    """Why a trajectory is not good enough by itself; '' when it is."""
    if not any(n.sampled for n in trajectory.nodes):
        return "nothing in it was sampled" if trajectory.nodes else "no messages"
    if trajectory.stop and not trajectory.stop.trains:
        return f"stopped by {trajectory.stop.value}"
    if any(isinstance(p, Image) for n in trajectory.nodes for p in n.message.parts):
        return "holds an image"
    return _reward(trajectory, config) or _size(trajectory, config) or _rights(trajectory, config)


def _reward(trajectory: Trajectory, config: SelectConfig) -> str:
    value = trajectory.reward.value if trajectory.reward else None
    if value is None:
        return "" if config.unscored or config.min_reward is None else "no verified reward"
    if config.min_reward is not None and value < config.min_reward:
        return f"reward below {config.min_reward:g}"
    return ""


def _size(trajectory: Trajectory, config: SelectConfig) -> str:
    turns = sum(n.sampled for n in trajectory.nodes)
    if turns < config.min_turns:
        return f"fewer than {config.min_turns} turns"
    if config.max_turns and turns > config.max_turns:
        return f"more than {config.max_turns} turns"
    if config.max_characters:
        size = sum(len(n.message.text) + sum(len(c.raw) for c in n.message.calls) for n in trajectory.nodes)
        if size > config.max_characters:
            return f"more than {config.max_characters} characters"
    return ""


def _rights(trajectory: Trajectory, config: SelectConfig) -> str:
    if config.licences and licence(trajectory) not in config.licences:
        return f"licence {licence(trajectory)} is not allowed"
    if config.teachers and teacher(trajectory) not in config.teachers:
        return f"teacher {teacher(trajectory)} is not allowed"
    return ""


def _exact() -> Screen:
    seen: set[str] = set()

    def screen(trajectory: Trajectory) -> str:
        content = content_hash(trajectory)
        if content in seen:
            return "duplicate"
        seen.add(content)
        return ""

    return screen


def _cap_tasks(kept: list[Trajectory], config: SelectConfig, drops: Drops) -> list[Trajectory]:
    if not config.per_task:
        return kept
    by_task: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in kept:
        if trajectory.task_id is not None:
            by_task[trajectory.task_id].append(trajectory)
    gone = {
        t.id
        for group in by_task.values()
        for t in sorted(group, key=lambda t: (sum(n.sampled for n in t.nodes), t.id))[config.per_task :]
    }
    return _without(kept, gone, f"more than {config.per_task} of one task", drops)


def _top_sources(kept: list[Trajectory], config: SelectConfig, drops: Drops) -> list[Trajectory]:
    if not config.top_sources:
        return kept
    counts = Counter(source(t) for t in kept)
    ranked = sorted(counts, key=lambda s: (-config.mix.get(s, 0.0), -counts[s], s))
    top = set(ranked[: config.top_sources])
    gone = {t.id for t in kept if source(t) not in top}
    return _without(kept, gone, f"source not among the top {config.top_sources}", drops)


def _mix(kept: list[Trajectory], config: SelectConfig, drops: Drops) -> list[Trajectory]:
    """Draw sources down until their shares are those of `mix`: nothing is repeated to fill one up."""
    if not config.mix:
        return kept
    by_source: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in kept:
        by_source[source(trajectory)].append(trajectory)
    shares = {s: w for s, w in config.mix.items() if w > 0 and by_source.get(s)}
    whole = min((len(by_source[s]) / w for s, w in shares.items()), default=0.0)
    draw = random.Random(config.seed)
    gone: set[str] = set()
    for name, group in sorted(by_source.items()):
        quota = round(whole * shares.get(name, 0.0))
        gone.update(t.id for t in draw.sample(group, len(group) - min(quota, len(group))))
    return _without(kept, gone, "over its source's share", drops)


def _limit(kept: list[Trajectory], config: SelectConfig, drops: Drops) -> list[Trajectory]:
    if not config.limit or len(kept) <= config.limit:
        return kept
    stay = {t.id for t in random.Random(config.seed).sample(kept, config.limit)}
    return _without(kept, {t.id for t in kept} - stay, f"over the limit of {config.limit}", drops)


def _without(kept: list[Trajectory], gone: set[str], reason: str, drops: Drops) -> list[Trajectory]:
    for trajectory in kept:
        if trajectory.id in gone:
            drops.drop("trajectory", trajectory.id, reason)
    return [t for t in kept if t.id not in gone]
