"""Where rollouts run: threads of this process, a pool of processes, a Ray cluster; all called the same way."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.managers import BaseManager
from typing import Any

from inloop.errors import InloopError, SandboxFault
from inloop.harness.config import HarnessConfig
from inloop.harness.loop import Cancel
from inloop.harness.policy import make_policy
from inloop.rollout.collect import Run
from inloop.rollout.engines import Again
from inloop.rollout.run import Rollouts, Work
from inloop.sandbox.backends import DEFAULT, open_backend
from inloop.trace.trajectory import Trajectory
from inloop.verify.verifier import Verifier


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All that another process needs to make the same `Rollouts`; plain data and a handle of the engine."""

    engine: Any
    """The engine; for another process, what `Opened.shared` holds."""
    config: HarnessConfig
    tokenizer: str = ""
    """A model folder; '' for engines that speak messages."""
    sandbox: str = DEFAULT
    """Name of the backend."""
    image: str = ""
    """docker: the image."""
    retries: int = 3
    owner: str = "rollout"
    meta: dict[str, Any] = field(default_factory=dict)

    def build(self) -> Rollouts:
        engine = self.engine.open() if isinstance(self.engine, Again) else self.engine
        return Rollouts(
            policy=make_policy(engine, self.config, load_tokenizer(self.tokenizer)),
            config=self.config,
            backend=open_backend(self.sandbox, image=self.image),
            judge=Verifier(),
            retries=self.retries,
            owner=self.owner,
            meta=self.meta,
        )


def load_tokenizer(folder: str) -> Any:
    if not folder:
        return None
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


class Host:
    """Does rollouts in a process that somebody else calls, several at once."""

    def __init__(self, recipe: Recipe) -> None:
        self._rollouts = recipe.build()
        self._cancel = Cancel()

    def run(self, work: Work) -> Trajectory:
        return self._rollouts.run(work, self._cancel)

    def cancel(self) -> None:
        """End all that runs here, now."""
        self._cancel.set()


@contextlib.contextmanager
def processes(recipe: Recipe, count: int) -> Iterator[Run]:
    """Spread over `count` processes of this machine. One that dies is started again; its rollouts are faults."""
    pool = [_Process(recipe) for _ in range(count)]
    try:
        yield _spread([p.run for p in pool], [p.cancel for p in pool])
    finally:
        for process in pool:
            process.close()


@contextlib.contextmanager
def ray_cluster(recipe: Recipe, address: str, width: int, count: int = 0) -> Iterator[Run]:
    """Spread over the nodes of a Ray cluster; 'local' starts one here. Task folders must be there on every node."""
    try:
        import ray as ray_module
    except ImportError:
        raise InloopError("--ray needs Ray", fix="pip install 'inloop[ray]'") from None
    ray: Any = ray_module
    _answers(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    here = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    where = here if address == "local" else {"address": address}
    try:
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InloopError(f"no Ray cluster at {address!r}: {error}", fix="give its address, or 'local'") from None
    try:
        nodes = count or max(1, int(ray.cluster_resources().get("CPU", 1)))
        actor = ray.remote(Host).options(max_concurrency=-(-width // nodes) + 1, num_cpus=1, max_restarts=-1)
        hosts = [actor.remote(recipe) for _ in range(nodes)]
        yield _spread([_ray_run(ray, h) for h in hosts], [_ray_cancel(ray, h) for h in hosts])
    finally:
        ray.shutdown()


def _answers(address: str) -> None:
    """Ray itself would try for minutes before it says that nobody is there."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            raise InloopError(f"no Ray cluster at {address!r}: {error}", fix="give its address, or 'local'") from None


def _ray_run(ray: Any, host: Any) -> Callable[[Work], Trajectory]:
    def run(work: Work) -> Trajectory:
        try:
            done: Trajectory = ray.get(host.run.remote(work))
        except ray.exceptions.RayActorError as error:
            raise WorkerDied(f"a Ray actor died: {error}") from error
        return done

    return run


def _ray_cancel(ray: Any, host: Any) -> Callable[[], None]:
    def cancel() -> None:
        with contextlib.suppress(ray.exceptions.RayError):
            ray.get(host.cancel.remote(), timeout=10)

    return cancel


class WorkerDied(SandboxFault):
    """The process that did a rollout is gone, and its sandbox with it."""


def _spread(runs: list[Callable[[Work], Trajectory]], cancels: list[Callable[[], None]]) -> Run:
    """Round robin by what each has in hand; a rollout whose worker died is done once more elsewhere."""
    load, lock = [0] * len(runs), threading.Lock()

    def once(work: Work) -> Trajectory:
        with lock:
            at = load.index(min(load))
            load[at] += 1
        try:
            return runs[at](work)
        finally:
            with lock:
                load[at] -= 1

    def cancel_all() -> None:
        for end in cancels:
            end()

    def run(work: Work, cancel: Cancel) -> Trajectory:
        detach = cancel.attach(cancel_all)
        try:
            return once(work)
        except WorkerDied:
            return once(work)
        finally:
            detach()

    return run


class _Manager(BaseManager):
    pass


_Manager.register("Host", Host)


class _Process:
    """One process that hosts rollouts; each thread that calls it has a connection of its own."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe, self._lock = recipe, threading.Lock()
        self._closed = False
        self._start()

    def _start(self) -> None:
        self._manager = _Manager(ctx=multiprocessing.get_context("spawn"))
        self._manager.start(_end_with_parent, (os.getpid(),))
        self._host = self._manager.Host(self._recipe)  # type: ignore[attr-defined]

    def run(self, work: Work) -> Trajectory:
        host = self._host
        try:
            done: Trajectory = host.run(work)
        except (EOFError, ConnectionError, BrokenPipeError) as error:
            self._again(host)
            raise WorkerDied(f"a worker process died: {error}") from error
        return done

    def _again(self, dead: Any) -> None:
        with self._lock:
            if self._host is dead and not self._closed:
                self._start()

    def cancel(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            self._host.cancel()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        with contextlib.suppress(EOFError, OSError):
            self._manager.shutdown()


def _end_with_parent(parent: int) -> None:
    """However the starter ends, this process follows, and its sandboxes with it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
