"""The app's own cost, measured from outside with a real browser.

`python -m benchmarks.app`: seconds from the server's start to a usable page, click to changed page
with the models loaded, one Run of three demo models (first words, last words, gaps between the
page's updates), a second Run from the cache, and the server's peak memory.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
from playwright.sync_api import Page, sync_playwright

from benchmarks.machine import keep, spread

ROOT = Path(__file__).resolve().parents[1]
CLICKS, STARTS = 21, 3
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Notes the moment of every change inside an answer, and tells how many answers have words.
WATCH = """() => {
  window.changes = [];
  const answers = () => [...document.querySelectorAll('[class*="st-key-answer_"]')];
  new MutationObserver(list => {
    if (list.some(m => answers().some(a => a.contains(m.target))))
      window.changes.push(performance.now());
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


def main() -> None:
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("No Chromium was found: install Debian's package chromium.")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        first, _ = _session(page, Path(folder), visit=False)  # this one makes the demo scenes
        starts = [_session(page, Path(folder), visit=False)[0] for _ in range(STARTS)]
        _, figures = _session(page, Path(folder), visit=True)
        browser.close()
    begin = {
        "first_start_with_demo_scenes_made_s": round(first, 2),
        "server_start_to_usable_page_s": spread(starts),
    }
    keep("app", {**begin, **figures})


def _session(page: Page, folder: Path, visit: bool) -> tuple[float, dict[str, Any]]:
    """Seconds to the first usable page of a fresh server, and a visit's figures."""
    server, url, began = serve(folder)
    try:
        start = _first_page(page, url, began)
        return start, _visit(page) | {"server_peak_memory_mb": _peak(server.pid)} if visit else {}
    finally:
        server.terminate()
        server.wait()


def serve(folder: Path) -> tuple[subprocess.Popen[bytes], str, float]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    environment = os.environ | {"STAGESCOPE_CACHE_DIR": str(folder), "STAGESCOPE_DEVICE": "cpu"}
    began = time.perf_counter()
    server = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    while not _healthy(url):
        time.sleep(0.02)
    return server, url, began


def _healthy(url: str) -> bool:
    try:
        with urlopen(f"{url}/_stcore/health", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _first_page(page: Page, url: str, began: float) -> float:
    """Seconds until the Run button can be pressed."""
    page.goto(url)
    page.locator(".st-key-compare_run button:enabled").wait_for(timeout=60_000)
    return time.perf_counter() - began


def _visit(page: Page) -> dict[str, Any]:
    _run(page)  # loads whatever is not loaded yet: nothing below pays for it
    return {
        "click_to_changed_page_ms": spread([_click(page) for _ in range(CLICKS)]),
        "second_run_from_the_cache": _run(page),
    }


def _click(page: Page) -> float:
    """Milliseconds from a click on the toggle to the box that it opens or closes."""
    box = page.locator(".st-key-compare_truth label").first
    script = """() => new Promise(done => {
      const words = () => document.body.innerText.includes('Reference answer');
      const before = words(), start = performance.now();
      const timer = setInterval(() => {
        if (words() !== before) { clearInterval(timer); done(performance.now() - start); }
      }, 2);
    })"""
    page.wait_for_timeout(300)
    waiting = page.evaluate_handle(f"() => {{ window.seen = ({script})(); }}")
    box.click()
    found: float = page.evaluate("() => window.seen")
    waiting.dispose()
    return found


def _run(page: Page) -> dict[str, Any]:
    page.evaluate(WATCH)
    button = page.locator(".st-key-compare_run button:enabled")
    button.wait_for(timeout=120_000)
    start: float = page.evaluate("() => performance.now()")
    button.click()
    page.locator(".st-key-compare_cancel button:enabled").wait_for(timeout=60_000)
    button.wait_for(timeout=120_000)
    end: float = page.evaluate("() => performance.now()")
    changes: list[float] = page.evaluate("() => window.changes")
    times = [at - start for at in changes if at >= start]
    gaps = [b - a for a, b in pairwise(times) if b - a > 5]
    return {
        "click_to_done_s": round((end - start) / 1000, 2),
        "click_to_first_change_ms": round(times[0], 1),
        "update_gap_ms": spread(gaps),
        "update_gap_p95_ms": round(sorted(gaps)[int(0.95 * (len(gaps) - 1))], 1),
    }


def _peak(pid: int) -> int:
    """Peak resident memory in MB where the system tells, else the present one."""
    status = Path(f"/proc/{pid}/status")
    if status.is_file():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) // 1024
    return int(psutil.Process(pid).memory_info().rss) // 2**20


if __name__ == "__main__":
    main()
