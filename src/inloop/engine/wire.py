"""What client and engine process say to each other: JSON frames over a unix socket, nothing pickled."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import struct
import threading
from dataclasses import asdict
from typing import Any

from inloop.engine.base import Completion, ContextFull, EngineInfo, Sampling
from inloop.errors import EngineFault, InloopError

HEADER = struct.Struct("!I")
LARGEST = 64 * 1024 * 1024
Frame = dict[str, Any]


class Channel:
    """One end of a connection. `send` never blocks: a thread of its own writes."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="wire", daemon=True).start()

    def send(self, frame: Frame) -> None:
        raw = json.dumps(frame, separators=(",", ":")).encode()
        self._out.put(HEADER.pack(len(raw)) + raw)

    def receive(self) -> Frame | None:
        """None when the other end is gone."""
        try:
            (size,) = HEADER.unpack(self._exactly(HEADER.size))
            if size > LARGEST:
                return None
            frame: Frame = json.loads(self._exactly(size))
            return frame
        except (OSError, EOFError, ValueError):
            return None

    def close(self) -> None:
        self._out.put(None)
        with contextlib.suppress(OSError):  # the other end closed first
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            got = self.sock.recv(size - len(parts))
            if not got:
                raise EOFError
            parts += got
        return bytes(parts)

    def _write(self) -> None:
        while (raw := self._out.get()) is not None:
            try:
                self.sock.sendall(raw)
            except OSError:
                return


def error_to_wire(error: Exception) -> Frame:
    if isinstance(error, ContextFull):
        return {"kind": "context", "prompt_tokens": error.prompt_tokens, "max_model_len": error.max_model_len}
    if isinstance(error, InloopError):
        kind = "fault" if isinstance(error, EngineFault) else "input"
        return {"kind": kind, "message": error.message, "fix": error.fix}
    kind = "input" if isinstance(error, ValueError) else "fault"
    return {"kind": kind, "message": str(error) if kind == "input" else repr(error), "fix": None}


def error_from_wire(frame: Frame) -> Exception:
    if frame["kind"] == "context":
        return ContextFull(frame["prompt_tokens"], frame["max_model_len"])
    make = InloopError if frame["kind"] == "input" else EngineFault
    return make(frame["message"], fix=frame["fix"])


def sampling_to_wire(sampling: Sampling) -> Frame:
    return asdict(sampling)


def sampling_from_wire(frame: Frame) -> Sampling:
    return Sampling(**{**frame, "stop_token_ids": tuple(frame["stop_token_ids"])})


def completion_to_wire(completion: Completion) -> Frame:
    return asdict(completion)


def completion_from_wire(frame: Frame) -> Completion:
    return Completion(**frame)


def info_from_wire(frame: Frame) -> EngineInfo:
    return EngineInfo(**{**frame, "eos_token_ids": tuple(frame["eos_token_ids"])})
