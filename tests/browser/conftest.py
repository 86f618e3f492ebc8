"""A real server on a free port and a real Chromium.

A machine without a browser skips these tests; where CI is set, that is a failure.  Tests wait for
states of the page, never for an amount of time.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Playwright,
    expect,
    sync_playwright,
)

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = 60_000  # a bound for a hung page, not a speed
expect.set_options(timeout=PATIENCE_MS)  # its own 5 s is a speed
APP = '[data-testid="stApp"][data-test-script-state="notRunning"]'
JOBS = "() => new URLSearchParams(location.search).getAll('compare_jobs').join()"
SETTLED = f'{APP} [data-testid="stMain"]'  # no script runs


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=_chromium(playwright), args=[*FLAGS])
        yield found
        found.close()


def _chromium(playwright: Playwright) -> str:
    own = playwright.chromium.executable_path
    found = next(filter(None, map(shutil.which, NAMES)), None) or (
        own if Path(own).exists() else ""
    )
    if not found:
        message = "no Chromium on this machine: install it, for instance `apt install chromium`"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def served(demo_scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache folder of the server.  It has the demo scenes, as after the first start; the
    server of test_visitors.py makes them while its pages are open."""
    cache = tmp_path_factory.mktemp("served")
    shutil.copytree(demo_scenes, cache / demo_scenes.name, copy_function=os.link)
    return cache


@pytest.fixture(scope="session")
def server(tiny_folder: Path, served: Path) -> Iterator[str]:
    """The app over tiny checkpoints; its address."""
    yield from serve(served, {"STAGESCOPE_MODELS": str(tiny_folder / "models.toml")})


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def serve(
    cache: Path,
    variables: dict[str, str],
    port: int = 0,
    command: Sequence[str] = (sys.executable, "-m", "streamlit", "run", "app.py", "--server.port"),
    folder: Path = ROOT,
) -> Iterator[str]:
    """The address of an app; `command` without its port at the end, started in `folder`."""
    port = port or free_port()
    environment = {
        **os.environ,
        "STAGESCOPE_CACHE_DIR": str(cache),
        "STAGESCOPE_DEVICE": "cpu",
        **variables,
    }
    log = cache / "server.log"
    with log.open("w") as out:
        started = [*command, str(port)]
        process = subprocess.Popen(started, cwd=folder, env=environment, stdout=out, stderr=out)
    try:
        _wait_for(f"http://127.0.0.1:{port}/_stcore/health", process, log)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except OSError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
    raise AssertionError(log.read_text())


@dataclass
class Visitor:
    """A person with the Compare page open, and what his browser asked for outside."""

    page: Page
    server: str
    outside: list[str] = field(default_factory=list)

    def open(self, query: str = "") -> Visitor:
        self.page.goto(self.server + query)
        self.ready()
        return self

    def button(self, key: str) -> str:
        return f".st-key-compare_{key} button:not([disabled])"

    def ready(self) -> None:
        """Waits until nothing runs and Run can be pressed."""
        self.page.locator(f"{APP} {self.button('run')}").wait_for()

    def run(self) -> None:
        """Presses Run and waits until the page has a link to new runs; they may have ended."""
        before = self.page.evaluate(JOBS)
        self.page.locator(self.button("run")).click()
        self.page.wait_for_function(f"before => ![before, ''].includes(({JOBS})())", arg=before)

    def own_files(self) -> None:
        """Chooses them as the input."""
        self.page.locator(".st-key-compare_input button").first.click()
        self.page.get_by_text("Own files", exact=True).click()
        self.page.keyboard.press("Escape")

    def answers(self) -> list[str]:
        """The answers' texts, once all cards have ended."""
        self.ready()
        return self.page.locator('[class*="st-key-answer_"]').all_inner_texts()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    found = browser.new_context(viewport={"width": 1280, "height": 800})
    found.set_default_timeout(PATIENCE_MS)
    yield found
    found.close()


def visit(context: BrowserContext, server: str) -> Visitor:
    visitor = Visitor(context.new_page(), server)
    local = (server, server.replace("http:", "ws:"), "data:", "blob:")
    visitor.page.on(
        "request",
        lambda r: None if r.url.startswith(local) else visitor.outside.append(r.url),
    )
    return visitor


@pytest.fixture
def visitor(context: BrowserContext, server: str) -> Visitor:
    return visit(context, server)


@pytest.fixture
def other(browser: Browser) -> Iterator[Page]:
    """A page of another person."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()
