"""The embedded engine: a transformers model in a process of its own that samples for many conversations at once."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inloop.engine.base import Completion, EngineInfo, Sampling
from inloop.engine.models import resolve_model
from inloop.engine.supervisor import Supervisor
from inloop.engine.wire import (
    Channel,
    Frame,
    completion_from_wire,
    error_from_wire,
    info_from_wire,
    sampling_to_wire,
)
from inloop.errors import EngineFault

START_SECONDS = 300.0
RESTART_SECONDS = 300.0
"""How long a call waits for an engine that died to come back."""

OnToken = Callable[[int, float], None]


@dataclass(slots=True)
class Pending:
    future: Future[Any]
    on_token: OnToken | None = None


class EmbeddedEngine:
    """Token form; safe to call from many threads, and picklable: a copy in another process talks to the same engine.

    Only the object that `start` returned supervises the process, and ends it on `close`."""

    def __init__(self, folder: Path, supervisor: Supervisor | None = None) -> None:
        self._folder, self._supervisor = folder, supervisor
        self._channel: Channel | None = None
        self._reset()

    @classmethod
    def start(
        cls,
        model: str | Path,
        *,
        dtype: str = "auto",
        threads: int = 1,
        max_model_len: int | None = None,
        slots: int = 32,
    ) -> EmbeddedEngine:
        """Load `model` in a new process. Raises InloopError for what can't be loaded."""
        spec = {"folder": str(resolve_model(model)), "name": str(model), "dtype": dtype, "slots": slots}
        supervisor = Supervisor({**spec, "max_model_len": max_model_len, "threads": threads})
        supervisor.wait_ready(START_SECONDS)
        return cls(supervisor.folder, supervisor)

    def info(self) -> EngineInfo:
        return info_from_wire(self._call("info"))

    def meters(self) -> dict[str, float]:
        """What the engine did since it started: steps, tokens, seconds by where they went."""
        value: dict[str, float] = self._call("meters")
        return value

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling, *, conversation: str | None = None) -> Completion:
        return self.submit(prompt_ids, sampling, conversation=conversation)[1].result()

    def submit(
        self,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        *,
        conversation: str | None = None,
        on_token: OnToken | None = None,
    ) -> tuple[int, Future[Completion]]:
        """A handle for `abort`, and the future. `on_token(id, logprob)` runs on the client's thread."""
        frame = {
            "op": "generate",
            "prompt": list(prompt_ids),
            "sampling": sampling_to_wire(sampling),
            "conversation": conversation,
            "stream": on_token is not None,
        }
        return self._send(frame, Pending(Future(), on_token))

    def abort(self, handle: int) -> None:
        """End a request at the engine's next step; its completion says `abort`."""
        self._call("abort", request=handle)

    def cancel(self, handle: int) -> None:
        """`abort` without waiting for it."""
        self._send({"op": "abort", "request": handle}, Pending(Future()))

    def forget(self, conversation: str) -> None:
        """Give back its cache, and abort what it still has running. An engine that went away has neither."""
        if self._channel is not None:
            self._call("forget", conversation=conversation)

    def pause(self) -> None:
        """Requests keep their place; nothing is computed until `resume`."""
        self._call("pause", paused=True)

    def resume(self) -> None:
        self._call("pause", paused=False)

    def load_weights(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        from safetensors.torch import save_file

        tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights}
        file = self._folder / f"weights-{version}-{os.getpid()}-{time.monotonic_ns()}.safetensors"
        save_file(tensors, file)
        try:
            self._call("load", path=str(file), version=version)
        except BaseException:
            file.unlink(missing_ok=True)
            raise

    def load_adapter(self, folder: Path, version: int) -> None:
        self._call("adapt", folder=str(Path(folder).resolve()), version=version)

    def unload_adapter(self, version: int) -> None:
        """The base weights again, bit for bit."""
        self._call("adapt", folder=None, version=version)

    def close(self) -> None:
        """End the engine (where it was started) or the connection (elsewhere); safe to call twice."""
        if self._supervisor is not None:
            self._supervisor.close()
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __enter__(self) -> EmbeddedEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self._folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._folder, self._supervisor = state["folder"], None
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._channel = None
        self._pending: dict[int, Pending] = {}
        self._names = itertools.count(1)
        self._patience = RESTART_SECONDS

    def _call(self, op: str, **kw: Any) -> Any:
        return self._send({"op": op, **kw}, Pending(Future()))[1].result()

    def _send(self, frame: Frame, pending: Pending) -> tuple[int, Future[Any]]:
        if self._pid != os.getpid():  # a fork shares nothing but the folder
            self._supervisor = None
            self._reset()
        with self._lock:
            channel = self._connected()
            name = next(self._names)
            self._pending[name] = pending
        pending.future.set_running_or_notify_cancel()  # only `abort` ends it: a cancelled future takes no result
        channel.send({"id": name, **frame})
        return name, pending.future

    def _connected(self) -> Channel:
        if self._channel is None:
            channel = self._channel = self._connect()
            threading.Thread(target=self._listen, args=(channel,), name="engine client", daemon=True).start()
        return self._channel

    def _connect(self) -> Channel:
        """Waits for a restart, once: where it was waited for in vain, later calls only look.

        A dying engine may still take a connection, so its greeting is waited for."""
        patience, self._patience = self._patience, 0.1
        for _ in _until(patience):
            if not self._folder.exists():
                break
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.connect(str(self._folder / "socket"))
            except OSError:
                sock.close()
                continue
            channel = Channel(sock)
            if channel.receive() is not None:
                self._patience = RESTART_SECONDS
                return channel
            channel.close()
        why = self._supervisor.failure if self._supervisor else None
        raise EngineFault(why or "the engine is closed", fix="start the engine again")

    def _listen(self, channel: Channel) -> None:
        while (frame := channel.receive()) is not None:
            self._receive(frame)
        with self._lock:
            lost, self._pending = self._pending, {}
            if self._channel is channel:
                self._channel = None
        channel.close()
        for pending in lost.values():
            pending.future.set_exception(EngineFault("the engine went away during the request"))

    def _receive(self, frame: Frame) -> None:
        if "token" in frame:
            pending = self._pending.get(frame["id"])
            if pending is not None and pending.on_token is not None:
                with contextlib.suppress(RuntimeError):  # the loop that it posts to was closed
                    pending.on_token(*frame["token"])
            return
        with self._lock:
            pending = self._pending.pop(frame["id"], None)
        if pending is None:
            return
        if "error" in frame:
            pending.future.set_exception(error_from_wire(frame["error"]))
        elif "completion" in frame:
            pending.future.set_result(completion_from_wire(frame["completion"]))
        else:
            pending.future.set_result(frame["value"])


def _until(seconds: float) -> Iterator[None]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        with contextlib.suppress(InterruptedError):
            time.sleep(0.05)
