"""The engine's own process: `python -m inloop.engine.process FOLDER`, started by the supervisor.

FOLDER holds `spec.json`; the process listens on `socket` there and keeps in `state.json` which weights it serves,
so that the process that follows it serves the same."""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inloop.engine.core import Core
from inloop.engine.scheduler import Outcome, Request
from inloop.engine.state import State
from inloop.engine.wire import Channel, Frame, completion_to_wire, error_to_wire, sampling_from_wire
from inloop.errors import InloopError
from inloop.files import write_json


class Service:
    """Answers the frames of every connection."""

    def __init__(self, core: Core, state: State) -> None:
        self.core, self.state = core, state

    def serve(self, listener: socket.socket) -> None:
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=self._connection, args=(Channel(sock),), daemon=True).start()

    def _connection(self, channel: Channel) -> None:
        """What a client that went away had asked for is dropped."""
        channel.send({"hello": os.getpid()})
        while (frame := channel.receive()) is not None:
            try:
                self._dispatch(channel, frame)
            except Exception as error:
                channel.send({"id": frame.get("id"), "error": error_to_wire(error)})
        self.core.call(lambda: self.core.scheduler.abort(lambda r: r.owner is channel))
        channel.close()

    def _dispatch(self, channel: Channel, frame: Frame) -> None:
        if frame["op"] == "generate":
            self.core.submit(_request(channel, frame))
            return
        jobs: dict[str, Callable[[Frame], Any]] = {
            "info": lambda f: asdict(self.core.info()),
            "meters": lambda f: self.core.scheduler.measured(),
            "load": lambda f: self.state.load(self.core, Path(f["path"]), f["version"]),
            "adapt": lambda f: self.state.adapt(self.core, f["folder"], f["version"]),
            "forget": lambda f: self._forget(f["conversation"]),
            "abort": lambda f: self.core.scheduler.abort(lambda r: r.owner is channel and r.name == f["request"]),
            "pause": lambda f: self.core.set_paused(f["paused"]),
        }
        job = jobs[frame["op"]]
        self.core.call(lambda: _answer(channel, frame, job))

    def _forget(self, conversation: str) -> None:
        self.core.scheduler.abort(lambda r: r.conversation == conversation)
        self.core.scheduler.seats.forget(conversation)


def _answer(channel: Channel, frame: Frame, job: Callable[[Frame], Any]) -> None:
    try:
        channel.send({"id": frame["id"], "value": job(frame)})
    except Exception as error:
        channel.send({"id": frame["id"], "error": error_to_wire(error)})


def _request(channel: Channel, frame: Frame) -> Request:
    name = frame["id"]

    def done(outcome: Outcome) -> None:
        if isinstance(outcome, Exception):
            channel.send({"id": name, "error": error_to_wire(outcome)})
        else:
            channel.send({"id": name, "completion": completion_to_wire(outcome)})

    def on_token(token: int, logprob: float) -> None:
        channel.send({"id": name, "token": [token, logprob]})

    return Request(
        prompt=[int(t) for t in frame["prompt"]],
        sampling=sampling_from_wire(frame["sampling"]),
        conversation=frame["conversation"],
        done=done,
        on_token=on_token if frame["stream"] else None,
        owner=channel,
        name=name,
    )


def end_with_parent(parent: int, folder: Path) -> None:
    """Leave when the starter does, however it ends: its end of our stdin closes, or we have another parent.

    The folder goes as well, which tells clients elsewhere that nobody will start us again."""
    while os.getppid() == parent:
        ready, _, _ = select.select([sys.stdin], [], [], 1.0)
        if ready and not os.read(sys.stdin.fileno(), 1):
            break
    for _ in range(20):  # a starter that is being killed closes its files first
        if os.getppid() != parent:
            shutil.rmtree(folder, ignore_errors=True)
            break
        time.sleep(0.05)
    os._exit(0)


def main(folder: Path) -> int:
    spec = json.loads((folder / "spec.json").read_text())
    threading.Thread(target=end_with_parent, args=(spec.pop("parent"), folder), daemon=True).start()
    threads = spec.pop("threads")
    try:
        core = _load(spec, threads)
        state = State.read(folder)
        state.restore(core)
    except InloopError as error:
        write_json(folder / "error.json", {"message": error.message, "fix": error.fix})
        return 2
    listener = _listen(folder / "socket")
    threading.Thread(target=Service(core, state).serve, args=(listener,), daemon=True).start()
    core.run()
    return 0


def _load(spec: dict[str, Any], threads: int) -> Core:
    import torch
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    torch.set_num_threads(threads)
    return Core(Path(spec.pop("folder")), **spec)


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(64)
    return listener


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s pid {os.getpid()} %(name)s %(message)s")
    logging.Formatter.converter = time.gmtime
    sys.exit(main(Path(sys.argv[1])))
