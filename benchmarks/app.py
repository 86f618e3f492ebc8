"""The app's own cost, measured from outside with a real browser.

`python -m benchmarks.app --against FOLDER`: this checkout beside another one (side_by_side.py).
`python -m benchmarks.app`: seconds from the server's start to a usable page, clicks with the models
loaded, one Run of three demo models (first words, last words, gaps between the page's updates), a
second Run from the cache, the server's peak memory, the gaps between the changes of an answer that
streams, and the start of a command that lists samples.

"Click to changed page" is the time from a click on "Show the known answer", with three answers on
the page, to the words of the box that it opens or closes (clicks.known_answer: what Playwright does
before it presses is inside, as it was in earlier versions' figures).  The same click measured from
the browser's own event, and other usual clicks, are figures of their own (clicks.py).

"Streaming gap" is the time between two changes of the words of one answer, of three demo models
whose tokens are paced (paced.py), one model after the other.
"""

from __future__ import annotations

import argparse
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

from benchmarks import clicks, side_by_side
from benchmarks.machine import keep, spread

ROOT = Path(__file__).resolve().parents[1]
CLICKS, STARTS, OTHERS = 21, 3, 9
WARM_UP_MS = 10_000
BURST_MS = 5  # two redraws are never this close together
REPEAT = "python -m benchmarks.app"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Notes the moment of every change inside an answer, and of every change of the words in it.
WATCH = """() => {
  window.changes = [];
  window.words = {};
  const answers = () => [...document.querySelectorAll(
    '[class*="st-key-answer_"], [class*="st-key-stream_"]')];
  const name = a => [...a.classList].find(c => /st-key-(answer|stream)_/.test(c));
  const seen = Object.fromEntries(answers().map(a => [name(a), a.textContent]));
  new MutationObserver(list => {
    const now = performance.now();
    const touched = answers().filter(a => list.some(m => a.contains(m.target)));
    if (touched.length) window.changes.push(now);
    for (const one of touched) {
      if (one.textContent === seen[name(one)]) continue;
      seen[name(one)] = one.textContent;
      if (one.textContent.trim()) (window.words[name(one)] ??= []).push(now);
    }
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another checkout")
    parser.add_argument("--rounds", type=int, default=5, help="of --against (default: 5)")
    parser.add_argument("--clicks", type=int, default=7, help="per round (default: 7)")
    options = parser.parse_args()
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("No Chromium was found: install Debian's package chromium.")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        if options.against is not None:
            roots = {"this": ROOT, "other": options.against.resolve()}
            found = side_by_side.measure(page, _started, roots, options.rounds, options.clicks)
            browser.close()
            keep("app_against", found)
            return
        first, _ = _session(page, Path(folder), visit=False)  # this one makes the demo scenes
        starts = [_session(page, Path(folder), visit=False)[0] for _ in range(STARTS)]
        _, figures = _session(page, Path(folder), visit=True)
        figures["streaming_gap_ms"] = _streaming(page, Path(folder))
        browser.close()
        figures["samples_command_s"] = spread(_command(Path(folder)))
    begin = {
        "first_start_with_demo_scenes_made_s": round(first, 2),
        "server_start_to_usable_page_s": spread(starts),
    }
    found = {**begin, **figures}
    keep("app", {"rows": _rows(found), **found})


def _rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Each target and its margin: 1 or more means that the target is met."""
    measured = [
        ("click to changed page", found["click_to_changed_page_ms"]["median"], 100.0, "ms"),
        ("server's start to first page", found["server_start_to_usable_page_s"]["median"], 2, "s"),
        ("streaming gap, 95th percentile", found["streaming_gap_ms"]["p95"], 120.0, "ms"),
        ("start of the command samples", found["samples_command_s"]["median"], 0.5, "s"),
    ]
    return [
        {
            "what": f"{what}: {figure:g} {unit}",
            "against": f"a limit of {limit:g} {unit}",
            "ratio": round(limit / figure, 2),
            "target": 1.0,
            "repeat": REPEAT,
        }
        for what, figure, limit, unit in measured
    ]


def _command(folder: Path) -> list[float]:
    """Seconds of `python -m engine samples`, its demo dataset being there."""
    environment = os.environ | {"STAGESCOPE_CACHE_DIR": str(folder), "STAGESCOPE_DEVICE": "cpu"}
    command = [sys.executable, "-m", "engine", "samples"]
    found = []
    for _ in range(OTHERS):
        began = time.perf_counter()
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        found.append(time.perf_counter() - began)
    return found


def _session(page: Page, folder: Path, visit: bool) -> tuple[float, dict[str, Any]]:
    """Seconds to the first usable page of a fresh server, and a visit's figures."""
    server, url, began = serve(folder)
    try:
        start = _first_page(page, url, began)
        return start, _visit(page) | {"server_peak_memory_mb": _peak(server.pid)} if visit else {}
    finally:
        server.terminate()
        server.wait()


def _streaming(page: Page, folder: Path) -> dict[str, Any]:
    """Gaps between the changes of each answer's words, three paced models together."""
    server, url, began = serve(folder, "benchmarks.paced")
    try:
        _first_page(page, url, began)
        _run(page)  # the first one loads the models
        _run(page)
        seen: dict[str, list[float]] = page.evaluate("() => window.words")
    finally:
        server.terminate()
        server.wait()
    gaps = [b - a for times in seen.values() for a, b in pairwise(redraws(times))]
    return {"answers": len(seen), **spread(gaps), "p95": _percentile(gaps)}


def redraws(times: list[float]) -> list[float]:
    """The first of each burst: one redraw changes the document several times."""
    found: list[float] = []
    for at in times:
        if not found or at - found[-1] > BURST_MS:
            found.append(at)
    return found


def _percentile(values: list[float]) -> float:
    """The 95th, without interpolation."""
    return round(sorted(values)[int(0.95 * (len(values) - 1))], 1)


def _started(root: Path, folder: Path) -> side_by_side.Served:
    """A server of another checkout, with this one's Python."""
    server, url, began = serve(folder, root=root)

    def close() -> None:
        server.terminate()
        server.wait()

    return side_by_side.Served(url, began, close)


def serve(
    folder: Path, module: str = "streamlit", root: Path = ROOT
) -> tuple[subprocess.Popen[bytes], str, float]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", module, "run", "app.py", "--server.port", str(port)]
    environment = os.environ | {"STAGESCOPE_CACHE_DIR": str(folder), "STAGESCOPE_DEVICE": "cpu"}
    began = time.perf_counter()
    server = subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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
    page.wait_for_timeout(WARM_UP_MS)  # the models are loaded behind the page
    models = [clicks.another_model(page) for _ in range(OTHERS)]
    places = range(1, OTHERS + 1)  # the first sample is there from the start
    unseen = [clicks.another_sample(page, place) for place in places]
    seen = [clicks.another_sample(page, place) for place in places]
    folded = [clicks.settings(page) for _ in range(OTHERS)]
    _run(page)  # loads whatever is not loaded yet: nothing below pays for it
    return {
        "click_to_changed_page_ms": spread([clicks.known_answer(page) for _ in range(CLICKS)]),
        "from_the_click_event_ms": {
            "known_answer": spread([clicks.toggle(page) for _ in range(CLICKS)]),
            "model_taken_out": spread([out for out, _ in models]),
            "model_put_in": spread([back for _, back in models]),
            "sample_unseen": spread(unseen),
            "sample_seen_before": spread(seen),
            "settings_unfolded": spread(folded),
        },
        "second_run_from_the_cache": _run(page),
    }


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
    gaps = [b - a for a, b in pairwise(times) if b - a > BURST_MS]
    return {
        "click_to_done_s": round((end - start) / 1000, 2),
        "click_to_first_change_ms": round(times[0], 1),
        "update_gap_ms": spread(gaps),
        "update_gap_p95_ms": _percentile(gaps),
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
