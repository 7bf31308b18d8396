"""How fast `inloop view` opens a folder of many rollouts, and scrolls and searches in it, in a real browser.

    .venv/bin/python benchmarks/view.py --rollouts 20000

Prints seconds from asking for the address until rows are in sight, until all are counted, until the last row is in
sight after a jump to the end, and for a search through everything that was said; beside them, in the same run, what
reading all trajectories into memory takes. Without Chromium the same is asked over HTTP."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from _episodes import episodes

from inloop.report.server import HOST, bind, make_app
from inloop.report.watch import Watched
from inloop.trace.store import TrajectoryStore
from inloop.trace.trajectory import Trajectory, plain
from inloop.types import Reward, StopReason, Verdict

TOKEN = "benchmark"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=20_000)
    parser.add_argument("--keep", type=Path, help="Folder of the rollouts; made where it is not there.")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        ledger = folder / "trajectories.jsonl"
        if not ledger.exists():
            generate(folder, args.rollouts)
        told: dict[str, Any] = {"rollouts": args.rollouts, "megabytes": round(ledger.stat().st_size / 1e6, 1)}
        ledger.read_bytes()  # warm: what is measured is reading, not the disk
        for which in ("first", "second"):
            with serving(folder) as address:
                told[which] = in_browser(address, args.rollouts) if shutil.which("chromedriver") else over_http(address)
        began = time.monotonic()
        count = sum(1 for _ in TrajectoryStore(folder))
        told["peer: all read into memory"] = round(time.monotonic() - began, 2)
        assert count == args.rollouts
        told["opening / peer"] = round(told["first"]["rows in sight"] / told["peer: all read into memory"], 3)
        print(json.dumps(told, indent=2))


def generate(folder: Path, count: int) -> None:
    """Episodes with token ids and log-probabilities, about what a rollout of the quickstart holds."""
    draw = random.Random(0)
    made = list(episodes(400))
    for t in made:
        for node in t.nodes:
            node.token_ids = [draw.randrange(49_000) for _ in range(len(str(node.message.parts)) // 4)]
            node.logprobs = [round(-draw.expovariate(2), 6) for _ in node.token_ids] if node.sampled else None
        t.diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-" + plain(t.nodes[3].message) + "\n+fixed\n"
        t.harness = {"hash": "0" * 12, "max_turns": 10, "tools": ["read", "edit", "test", "submit"]}
    store = TrajectoryStore(folder)
    for start in range(0, count, len(made)):  # a batch holds each of them once
        store.extend(list(copies(made, start, min(start + len(made), count), draw)))


def copies(made: list[Trajectory], start: int, end: int, draw: random.Random) -> Iterator[Trajectory]:
    for number in range(start, end):
        t, passed = made[number % len(made)], draw.random() < 0.4
        t.id, t.group_id, t.task_id = f"r{number:06d}", f"g{number // 8:05d}", f"task-{number // 8}"
        verdict = Verdict.PASSED if passed else Verdict.FAILED
        t.reward = Reward(value=float(passed), verdict=verdict, fraction=float(passed))
        t.stop = StopReason.SUBMITTED if passed else StopReason.TURN_LIMIT
        t.counts = {"turns": draw.randrange(2, 10), "sampled_tokens": draw.randrange(60, 480)}
        yield t


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A fresh server each time: nothing is known of the folder."""
    with bind(0) as listening:
        port = listening.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(make_app(Watched(folder), TOKEN, port), log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://{HOST}:{port}/?token={TOKEN}"
        server.should_exit = True
        thread.join()


def in_browser(address: str, count: int) -> dict[str, float]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))) as driver:

        def until(script: str) -> Callable[[], Any]:
            return lambda: WebDriverWait(driver, 120, 0.02).until(lambda d: d.execute_script(f"return {script}"))

        def scrolled() -> None:
            driver.execute_script("const l = document.querySelector('#list'); l.scrollTop = l.scrollHeight")
            until(f"[...document.querySelectorAll('#rows a')].some(a => a.title === 'r{count - 1:06d}')")()

        def searched() -> None:
            driver.execute_script("document.querySelector('#query').value = 'text:\"gives 42\" verdict:passed'")
            driver.execute_script("document.querySelector('#query').dispatchEvent(new Event('input'))")
            until(f"!document.querySelector('#count').textContent.startsWith('{count} ')")()

        began = time.monotonic()
        driver.get(address)
        until("document.querySelectorAll('#rows a').length > 5")()
        out = {"rows in sight": round(time.monotonic() - began, 2)}
        until(f"document.querySelector('#count').textContent === '{count} rollouts'")()
        out["all counted"] = round(time.monotonic() - began, 2)
        return out | {"jump to the end": timed(scrolled), "search in all text": timed(searched)}


def over_http(address: str) -> dict[str, float]:
    import httpx

    base, _, _ = address.partition("/?")
    with httpx.Client(base_url=base, follow_redirects=True, timeout=120) as client:
        client.get(address)
        began = time.monotonic()
        client.get("/api/rollouts?limit=100").raise_for_status()
        out = {"rows in sight": round(time.monotonic() - began, 2)}
        while not client.get("/api/state").json()["complete"]:
            pass
        out["all counted"] = round(time.monotonic() - began, 2)
        return out


def timed(do: Callable[[], Any]) -> float:
    began = time.monotonic()
    do()
    return round(time.monotonic() - began, 2)


if __name__ == "__main__":
    main()
