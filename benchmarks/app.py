"""The app's own cost, measured from outside with a real browser.

`python -m benchmarks.app [--against FOLDER] [--rounds N]`: a round starts a server of this
checkout, and of the one in FOLDER, in alternating order.  A figure is the median of all rounds.

- on a fresh machine: an empty cache folder; from the moment the server is ready until the page is
  drawn, Run can be pressed (and is), words of an answer are there, and all answers are
- server start to first page: until Run can be pressed
- Run to first change, click to changed page ("Show the known answer"), page change: from the
  browser's own click event to the change of the document that answers it, with the models loaded
- streaming gap: between two changes of the words of one answer, of demo models whose tokens are
  paced (paced.py); the 95th percentile; of this checkout alone
- start of the command `samples`, its demo dataset being there; of this checkout alone
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import Page, sync_playwright

from benchmarks.machine import Row, keep, limit, row
from engine.demo.demo_dataset import SEEDS

ROOT = Path(__file__).resolve().parents[1]
Figures = dict[str, list[float]]
FRESH = {step: f"{step} on a fresh machine" for step in ("page", "Run", "first words", "answers")}
START = "server start to first page"
RUN, CLICK, PAGE = "Run to first change", "click to changed page", "page change"
GAP, COMMAND = "streaming gap, 95th percentile", "start of the command samples"
LIMITS = {FRESH["page"]: (2.0, "s"), FRESH["Run"]: (2.0, "s"), FRESH["first words"]: (5.0, "s"),
          FRESH["answers"]: (8.0, "s"), START: (2.0, "s"), RUN: (150.0, "ms"),
          CLICK: (120.0, "ms"), PAGE: (150.0, "ms"), GAP: (120.0, "ms"),
          COMMAND: (0.5, "s")}  # fmt: skip
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update",
         "--disable-sync"]  # fmt: skip
BURST_MS = 5  # two redraws are never this close together
REST_MS = 300  # between two clicks: the last one's rerun has ended
LONGEST_MS = 120_000
BUTTON = ".st-key-compare_run button:enabled"
SCENES = re.compile(rf"^Sample \({len(SEEDS)}\)$")
TITLE = "() => document.querySelector('h1')?.textContent"
TRUTH = "() => document.body.textContent.includes('Reference answer')"
CARDS = """() => [...document.querySelectorAll('[class*="st-key-card_"]')]
  .map(card => card.textContent).join()"""
WORDS = """() => [...document.querySelectorAll(
  '[class*="st-key-answer_"], [class*="st-key-stream_"]')]
  .some(one => one.textContent.trim() && !/Press Run/.test(one.textContent))"""
# Sets `answered` to the milliseconds from the last click event to the change of `state()`.
ANSWER = """state => {
  const before = state();
  let pressed = NaN;
  document.addEventListener('click', () => { pressed = performance.now(); }, true);
  window.answered = null;
  const look = () => {
    if (window.answered !== null || pressed !== pressed || state() === before) return;
    window.answered = performance.now() - pressed;
    watch.disconnect();
  };
  const watch = new MutationObserver(look);
  watch.observe(document.body, {subtree: true, childList: true, attributes: true});
  const frame = () => { look(); if (window.answered === null) requestAnimationFrame(frame); };
  frame();  // what unfolds by an animation changes no element
}"""
# Notes the moment of every change of the words in each answer.
WATCH = """() => {
  window.words = {};
  const answers = () => [...document.querySelectorAll(
    '[class*="st-key-answer_"], [class*="st-key-stream_"]')];
  const name = a => [...a.classList].find(c => /st-key-(answer|stream)_/.test(c));
  const seen = Object.fromEntries(answers().map(a => [name(a), a.textContent]));
  new MutationObserver(list => {
    for (const one of answers().filter(a => list.some(m => a.contains(m.target)))) {
      if (one.textContent === seen[name(one)]) continue;
      seen[name(one)] = one.textContent;
      if (one.textContent.trim()) (window.words[name(one)] ??= []).push(performance.now());
    }
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another checkout")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--quick", action="store_true", help="one round, keeps nothing")
    options = parser.parse_args()
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("No Chromium was found: install Debian's package chromium.")
    roots = [ROOT, *([options.against.resolve()] if options.against else [])]
    found: list[Figures] = [{name: [] for name in LIMITS} for _ in roots]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        for number in range(1 if options.quick else options.rounds):
            for root, figures in list(zip(roots, found, strict=True))[:: 1 if number % 2 else -1]:
                cache = Path(folder) / f"{number}-{roots.index(root)}"
                _fresh(page, root, cache, figures)
                _warm(page, root, cache, figures, 1 if options.quick else 7)
        found[0][GAP] = _gaps(page, cache)
        found[0][COMMAND] = [_command(cache) for _ in range(1 if options.quick else 9)]
        browser.close()
    rows = list(_rows(found))
    if options.quick:
        print(*rows, sep="\n")
    else:
        keep("app_against" if options.against else "app", {"rows": rows})


def _rows(found: list[Figures]) -> Iterator[Row]:
    for name, (most, unit) in LIMITS.items():
        yield limit(name, found[0][name], unit, most)
        for other in found[1:]:
            if other[name]:
                ratios = [b / a for a, b in zip(found[0][name], other[name], strict=True)]
                yield row(name, "the other checkout", ratios)


@contextmanager
def served(root: Path, cache: Path, module: str = "streamlit") -> Iterator[tuple[str, float]]:
    """A running server: its address, and the moment it was started."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", module, "run", "app.py", "--server.port", str(port)]
    own = {"STAGESCOPE_CACHE_DIR": str(cache), "STAGESCOPE_DEVICE": "cpu"}
    url, began = f"http://127.0.0.1:{port}", time.perf_counter()
    server = subprocess.Popen(command, cwd=root, env=os.environ | own, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        while not _healthy(url):
            if server.poll() is not None:
                sys.exit(f"The server of {root} ended with code {server.returncode}.")
            time.sleep(0.02)
        yield url, began
    finally:
        server.kill()
        server.wait()


def _healthy(url: str) -> bool:
    try:
        with urlopen(f"{url}/_stcore/health", timeout=1) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def _fresh(page: Page, root: Path, cache: Path, figures: Figures) -> None:
    with served(root, cache) as (url, _):
        ready = time.perf_counter()
        page.goto(url)
        steps: dict[str, Callable[[], object]] = {
            "page": page.locator("h1").wait_for,
            "Run": partial(page.locator(BUTTON).wait_for, timeout=LONGEST_MS),
            "first words": partial(page.wait_for_function, WORDS, timeout=LONGEST_MS, polling=20),
            "answers": partial(page.locator(".st-key-compare_decide").wait_for, timeout=LONGEST_MS),
        }
        for step, wait in steps.items():
            wait()
            figures[FRESH[step]].append(time.perf_counter() - ready)
            if step == "Run":
                page.locator(BUTTON).click()
        page.get_by_text(SCENES).first.wait_for(timeout=LONGEST_MS)  # made beside the first answers


def _warm(page: Page, root: Path, cache: Path, figures: Figures, often: int) -> None:
    """A second start, and clicks once the models are loaded."""
    with served(root, cache) as (url, began):
        page.goto(url)
        page.locator(BUTTON).wait_for(timeout=LONGEST_MS)
        figures[START].append(time.perf_counter() - began)
        _run(page)  # loads the models
        if (tab := page.get_by_role("tab", name="Agreement")).count():  # earlier pages have none
            tab.click()
        truth = page.locator(".st-key-compare_truth label").first
        for _ in range(often):
            figures[RUN].append(_run(page))
            figures[CLICK].append(_answer(page, TRUTH, truth.click))
        for link in ("Models", "Benchmark") * often:
            press = page.get_by_role("link", name=link, exact=True).click
            figures[PAGE].append(_answer(page, TITLE, press))


def _answer(page: Page, state: str, press: Callable[[], None]) -> float:
    """Milliseconds from the last click event in `press` to the change of `state` in the page."""
    page.wait_for_timeout(REST_MS)
    page.evaluate(f"() => ({ANSWER})({state})")
    press()
    page.wait_for_function("() => window.answered !== null", timeout=LONGEST_MS)
    return float(page.evaluate("() => window.answered"))


def _run(page: Page) -> float:
    """Milliseconds from the click on Run to the first change of a card; then all have ended."""
    button = page.locator(BUTTON)
    button.wait_for(timeout=LONGEST_MS)
    took = _answer(page, CARDS, button.click)
    page.wait_for_timeout(REST_MS)  # Run is disabled by now
    button.wait_for(timeout=LONGEST_MS)
    return took


def _gaps(page: Page, cache: Path) -> list[float]:
    """The 95th percentile, without interpolation, of the gaps in each answer's words."""
    with served(ROOT, cache, "benchmarks.paced") as (url, _):
        page.goto(url)
        _run(page)  # the first one loads the models
        page.evaluate(WATCH)
        _run(page)
        seen: dict[str, list[float]] = page.evaluate("() => window.words")
    gaps = (sorted(b - a for a, b in pairwise(redraws(times))) for times in seen.values())
    return [some[int(0.95 * (len(some) - 1))] for some in gaps if some]


def redraws(times: list[float]) -> list[float]:
    """The first of each burst: one redraw changes the document several times."""
    found: list[float] = []
    for at in times:
        if not found or at - found[-1] > BURST_MS:
            found.append(at)
    return found


def _command(cache: Path) -> float:
    """Seconds of `python -m engine samples`."""
    own = {"STAGESCOPE_CACHE_DIR": str(cache), "STAGESCOPE_DEVICE": "cpu"}
    command, began = [sys.executable, "-m", "engine", "samples"], time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=os.environ | own, check=True, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
