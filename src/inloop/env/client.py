"""OpenEnv's client with the three habits that keep a training run honest: one call in flight, no episode started
behind one's back, and the lease given back."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient

from inloop.env.models import InloopAction, InloopObservation, InloopState
from inloop.errors import Fault, InloopError

MESSAGE_SECONDS = 900.0
"""A step may have to wait for its turn in the verifier and then for hidden tests."""
RETRY_SECONDS = 0.5


class SessionLost(Fault):
    """The socket of an open episode is gone, and the episode with it: what it would have scored is unknown."""

    family = "session"


class ServerFull(Fault):
    """All sessions are taken; nothing was started."""

    family = "session"


class InloopEnv(EnvClient[InloopAction, InloopObservation, InloopState]):  # type: ignore[misc]
    """`with InloopEnv(base_url=..., token=...) as env: env.reset(task_id=...)`; awaitable inside a running loop."""

    def __init__(
        self, base_url: str | None = None, *, token: str | None = None, wait_s: float = 0.0, **kw: Any
    ) -> None:
        """`wait_s`: how long a reset waits for a free session, in seconds. `kw`: OpenEnv's own."""
        headers = {**(kw.pop("headers", None) or {}), **({"X-Inloop-Token": token} if token else {})}
        super().__init__(base_url, headers=headers, **{"message_timeout_s": MESSAGE_SECONDS, **kw})
        self.wait_s = wait_s
        self._one = asyncio.Lock()
        self._episode = False
        """An episode is open on the socket at hand."""
        self._lost = ""
        """Why it is not any more."""
        self._limit: float = 0
        """Bytes that the server takes in one message; 0 is not known."""

    async def _reset_async(self, **which: Any) -> StepResult[InloopObservation]:
        """Raises ServerFull after `wait_s` seconds without a free session."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.wait_s
        while True:
            try:
                return await super()._reset_async(**which)
            except ServerFull:
                if loop.time() >= end:
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    async def _send_and_receive(self, message: dict[str, Any]) -> dict[str, Any]:
        async with self._one:
            if message["type"] == "reset":
                self._lost = ""
            elif self._lost:
                raise SessionLost(f"the episode was lost: {self._lost}", fix="reset starts a new one")
            self._check_size(message)
            return await self._exchange(message)

    async def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._episode and message["type"] != "reset" and not self._is_open():
            raise self._losing("the connection is closed")
        try:
            answer: dict[str, Any] = await super()._send_and_receive(message)
        except RuntimeError as refused:  # an answer of the server's: the session is as it was
            raise await self._refused(refused) from refused
        except asyncio.CancelledError:
            self._losing("the caller gave up on an answer")
            raise
        except TimeoutError as late:
            raise self._losing(f"no answer within {self._message_timeout:g} s") from late
        except (OSError, EOFError) as gone:
            raise self._broken(gone) from gone
        except Exception as gone:
            if type(gone).__name__.startswith("ConnectionClosed"):
                raise self._losing(_why(gone)) from gone
            raise
        if message["type"] == "reset":
            self._episode = True
            self._limit = answer["data"]["observation"].get("budget", {}).get("message_bytes", 0)
        return answer

    def _is_open(self) -> bool:
        from websockets.protocol import State

        return self._ws is not None and self._ws.state is State.OPEN

    def _broken(self, gone: Exception) -> Exception:
        """No connection could be made, or the one that there was broke."""
        if self._episode:
            return self._losing(str(gone))
        fix = "is `inloop env serve` running there, and the token right?"
        return InloopError(f"{self._base_url}: {gone}", fix=fix)

    def _losing(self, why: str) -> SessionLost:
        """From here on only a reset goes through."""
        self._lost, self._episode = why, False
        return SessionLost(f"the episode was lost: {why}", fix="reset starts a new one")

    async def _refused(self, refused: RuntimeError) -> Exception:
        if "CAPACITY_REACHED" not in str(refused):
            return refused
        await self._disconnect_async()
        return ServerFull(
            "all sessions of the server are taken", fix="close one, start the server with more, or give wait_s"
        )

    def _check_size(self, message: dict[str, Any]) -> None:
        if self._limit and (size := len(json.dumps(message).encode())) > self._limit:
            raise InloopError(
                f"a message of {size} bytes; the server takes {self._limit:.0f}", fix="write the file in pieces"
            )

    async def _disconnect_async(self) -> None:
        if self._episode:
            self._losing("this client was closed")
        await super()._disconnect_async()

    def _step_payload(self, action: InloopAction) -> dict[str, Any]:
        payload: dict[str, Any] = action.model_dump(exclude_none=True)
        return payload

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[InloopObservation]:
        told = {**payload.get("observation", {}), "reward": payload.get("reward"), "done": payload.get("done", False)}
        seen = InloopObservation.model_validate(told)
        return StepResult(observation=seen, reward=seen.reward, done=seen.done, metadata=seen.metadata)

    def _parse_state(self, payload: dict[str, Any]) -> InloopState:
        state: InloopState = InloopState.model_validate(payload)
        return state

    # the Task API, which OpenEnv's client has no methods for

    def splits(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._http("GET", "splits")
        return found

    def tasks(self, split: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._http("POST", "tasks", {"split": split})["tasks"]
        return found

    def task(self, split: str, index: int) -> dict[str, Any]:
        found: dict[str, Any] = self._http("POST", "task", {"split": split, "index": index})["task"]
        return found

    def _http(self, method: str, what: str, body: Any = None) -> Any:
        import httpx

        with httpx.Client(
            base_url=_http_url(self._base_url), headers=self._headers, timeout=30, trust_env=False
        ) as http:
            (name,) = http.get("/list_environments").raise_for_status().json()
            answer = http.request(method, f"/{name}/{what}", json=body)
        if answer.status_code != 200:
            fix = "splits() lists what there is"
            raise InloopError(f"{answer.url}: {answer.status_code} {answer.text[:300]}", fix=fix)
        return answer.json()


def score(result: StepResult[InloopObservation]) -> float | None:
    """The reward of a finished episode; None where it could not be scored, which is no 0."""
    return None if (result.metadata or {}).get("unscorable") else result.reward


def _http_url(url: str | None) -> str:
    return re.sub(r"^ws(s?)://", r"http\1://", url or "")


def _why(gone: Any) -> str:
    received = getattr(gone, "rcvd", None)
    return f"the server closed the connection: {received.code} {received.reason}".rstrip() if received else str(gone)
