"""The pages in a real headless browser: what a person clicks through and what stays text."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from inloop.report.page import write_report
from inloop.report.server import HOST, bind, make_app
from inloop.report.watch import Watched

BROWSER = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("report"),
    pytest.mark.skipif(
        not (BROWSER and DRIVER),
        reason="NOT TESTED IN A BROWSER: chromium and chromedriver are missing (sudo bash scripts/system test)",
    ),
]
TOKEN = "a-token"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=Service(DRIVER)) as made:
        made.set_page_load_timeout(120)
        yield made


@pytest.fixture
def driver(browser: Any) -> Any:
    """With nothing open and nothing said yet."""
    browser.get("about:blank")
    browser.get_log("browser")
    return browser


@pytest.fixture
def address(chain: Path) -> Iterator[str]:
    with served(chain) as at:
        yield at


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with bind(0) as listening:
        port = listening.getsockname()[1]
        app = make_app(Watched(folder), TOKEN, port)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://{HOST}:{port}/?token={TOKEN}"
        server.should_exit = True
        thread.join(30)


def wait(driver: Any, script: str, *, seconds: float = 90.0) -> Any:
    """Until the script gives something true."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, seconds, 0.1).until(lambda d: d.execute_script(f"return {script}"))


def press(driver: Any, keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver).send_keys(keys).perform()


def errors(driver: Any) -> list[str]:
    """What the browser complains of; a violation of the policy is among it."""
    return [x["message"] for x in driver.get_log("browser") if x["level"] == "SEVERE"]


def click(driver: Any, css: str) -> None:
    from selenium.webdriver.common.by import By

    wait(driver, f"document.querySelector({css!r})")
    driver.find_element(By.CSS_SELECTOR, css).click()


def test_from_the_list_to_one_token_of_one_rollout(driver: Any, address: str) -> None:
    driver.get(address)
    assert wait(driver, "document.querySelectorAll('#rows a').length") > 5
    assert "token=" not in driver.current_url
    driver.execute_script("document.querySelector('#query').value = 'folder:grpo verdict:passed add1'")
    driver.execute_script("document.querySelector('#query').dispatchEvent(new Event('input'))")
    wait(driver, "[...document.querySelectorAll('#rows a')].every(a => a.textContent.includes('add1'))")
    click(driver, "#rows a")
    wait(driver, "document.querySelector('.turn.sampled .t.y')")
    click(driver, ".turn.sampled .t.y:nth-child(2)")
    told = wait(driver, "!document.querySelector('#token').hidden && document.querySelector('#token').textContent")
    assert "token 1" in told and "trains" in told and "log-probability" in told
    assert "/turn/2/token/1" in driver.current_url
    link = driver.current_url
    press(driver, "l")
    wait(driver, "location.hash.endsWith('/turn/2/token/2')")
    press(driver, "n")
    wait(driver, "location.hash.endsWith('/turn/3')")
    press(driver, "mm")
    wait(driver, "document.querySelector('#turns').className === 'by-advantage'")
    driver.get("about:blank")
    driver.get(link)  # a deep link finds its token again
    assert wait(driver, "document.querySelector('.t.at') && document.querySelector('.t.at').id") == "t-2-1"
    assert not errors(driver)


def test_keys_go_through_rollouts_groups_and_curves(driver: Any, address: str) -> None:
    driver.get(address)
    wait(driver, "document.querySelectorAll('#rows a').length")
    press(driver, "j")
    first = wait(driver, "location.hash.startsWith('#rollout/') && document.querySelector('#turns') && location.hash")
    press(driver, "j")
    wait(driver, f"location.hash !== {first!r} && document.querySelector('#turns')")
    press(driver, "g")
    assert wait(driver, "document.querySelectorAll('.columns > section').length") >= 2
    press(driver, "c")
    assert wait(driver, "document.querySelectorAll('.plots svg polyline').length") >= 3
    assert not errors(driver)


def test_a_list_of_several_chunks_follows_a_run_that_grows(driver: Any, chain: Path) -> None:
    run, row = chain.parent / "growing", json.loads((chain / "grpo/trajectories.jsonl").read_bytes().splitlines()[0])
    run.mkdir()

    def grow(start: int, end: int) -> None:
        with (run / "trajectories.jsonl").open("a") as out:
            out.writelines(json.dumps({**row, "id": f"r{i:03d}"}) + "\n" for i in range(start, end))

    grow(0, 150)
    with served(run) as at:
        driver.get(at)
        wait(driver, "document.querySelector('#count').textContent === '150 rollouts'")
        grow(150, 270)
        wait(driver, "document.querySelector('#count').textContent === '270 rollouts'")
        driver.execute_script("const l = document.querySelector('#list'); l.scrollTop = l.scrollHeight")
        wait(driver, "[...document.querySelectorAll('#rows a')].some(a => a.title.endsWith('r269'))")
    assert not errors(driver)


def test_hostile_text_stays_text(driver: Any, address: str) -> None:
    driver.get(address)
    wait(driver, "document.querySelectorAll('#rows a').length")
    click(driver, "#rows a")
    wait(driver, "document.querySelector('.turn')")
    assert "<script>document.title" in driver.execute_script("return document.querySelector('main').textContent")
    assert (
        driver.execute_script("return document.querySelectorAll('main script, main img, main b, aside img').length")
        == 0
    )
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert driver.title != "owned" and not errors(driver)


def test_a_review_is_written_and_counted(driver: Any, address: str, chain: Path) -> None:
    driver.get(address)
    wait(driver, "document.querySelectorAll('#rows a').length")
    driver.execute_script("location.hash = '#review'")
    wait(driver, "document.querySelector('#reviewer')")
    assert wait(driver, "getComputedStyle(document.querySelector('aside')).display") == "none"  # it would tell
    driver.execute_script("document.querySelector('#reviewer').value = 'ann'")
    click(driver, "#begin")
    click(driver, "#accept")  # no reason yet
    assert "needs its reason" in wait(driver, "document.querySelector('main .warn').textContent")
    driver.execute_script("document.querySelector('#reason').value = 'it is right'")
    click(driver, "#accept")
    wait(driver, "document.querySelector('main').textContent.includes('1 of 36 judged by ann')")
    assert len((chain / "reviews.jsonl").read_text().splitlines()) == 1
    driver.execute_script("location.hash = '#acceptance'")
    wait(driver, "document.querySelector('main').textContent.includes('1 verdicts of 1 people')")


@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (390, "screen"), (720, "print")])
def test_the_report_fits_screen_phone_and_paper(driver: Any, chain: Path, width: int, media: str) -> None:
    page = write_report(chain)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        driver.get(page.as_uri())
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        widths = driver.execute_script("return [...document.querySelectorAll('svg')].map(s => s.clientWidth)")
        assert len(widths) == 14 and min(widths) > 200
        cut = "[...document.querySelectorAll('.wide')].filter(w => w.scrollWidth > w.clientWidth).length"
        assert media == "screen" or not driver.execute_script(f"return {cut}")  # paper does not scroll
        assert driver.execute_script("return document.querySelectorAll('script').length") == 0
        assert "inloop report" in driver.title and not errors(driver)
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
