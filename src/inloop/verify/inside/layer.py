"""Command mode: lay the submission over the workspace and leave; the command runs after this process ended."""

from __future__ import annotations

import socket
import sys

from inloop.verify.inside import wire
from inloop.verify.inside.lay import Laid


def main() -> None:
    """argv: descriptor of the host's socket."""
    host = wire.Channel(socket.socket(fileno=int(sys.argv[1])))
    host.send(["ready", Laid(host.receive()).dropped])
