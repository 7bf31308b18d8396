"""What is open on a server: its sessions with their leases, and what was counted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any, Protocol


class Session(Protocol):
    """An environment that a client holds."""

    def describe(self) -> dict[str, Any]: ...


class Sessions:
    """Thread safe. Sessions by OpenEnv's session id; counters since the start."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.started = time.time()
        self.counts: Counter[tuple[str, str]] = Counter()
        """(metric, label) -> value."""
        self._lock = threading.Lock()
        self._open: dict[str, Session] = {}

    def add(self, session_id: str, session: Session) -> None:
        with self._lock:
            self._open[session_id] = session
            self.counts["sessions_total", ""] += 1

    def remove(self, session_id: str) -> None:
        with self._lock:
            self._open.pop(session_id, None)

    def all(self) -> dict[str, Any]:
        with self._lock:
            return dict(self._open)

    def count(self, metric: str, label: str = "", value: float = 1) -> None:
        with self._lock:
            self.counts[metric, label] += value  # type: ignore[assignment]

    def listed(self) -> dict[str, Any]:
        rows = [{"id": key, **session.describe()} for key, session in self.all().items()]
        return {"limit": self.limit, "open": len(rows), "sessions": rows}

    def prometheus(self) -> str:
        """The text exposition format of Prometheus."""
        with self._lock:
            counts, held = dict(self.counts), len(self._open)
        lines = [f"# TYPE inloop_env_sessions gauge\ninloop_env_sessions {held}"]
        lines.append(f"# TYPE inloop_env_sessions_limit gauge\ninloop_env_sessions_limit {self.limit}")
        lines.append(f"# TYPE inloop_env_start_seconds gauge\ninloop_env_start_seconds {self.started:.3f}")
        for metric in sorted({name for name, _ in counts}):
            lines.append(f"# TYPE inloop_env_{metric} counter")
            for (name, label), value in sorted(counts.items()):
                if name == metric:
                    where = f'{{{LABELS[metric]}="{label}"}}' if label else ""
                    lines.append(f"inloop_env_{metric}{where} {round(value, 6)}")
        return "\n".join(lines) + "\n"


LABELS = {"steps_total": "tool", "step_seconds_total": "tool", "episodes_total": "stop", "verdicts_total": "verdict"}
