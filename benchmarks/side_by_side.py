"""Speed as felt: this checkout and another one, measured by turns on one machine.

`python -m benchmarks.app --against FOLDER [--rounds N] [--clicks N]`: FOLDER is a checkout of an
earlier commit.  A round starts a server of each checkout, one after the other, in alternating
order; each figure is the median of all rounds.  Only what both pages have is pressed:

- click to changed page: the toggle "Show the known answer", as in app.py
- Run to first change: from the click on Run to the first change of an answer's card
- page change: from the click on a link of the navigation to the other page's title
- server start to first page: until Run can be pressed
- first answer on a fresh machine: an empty cache folder; from the moment the server is ready
  until words of an answer are there, with Run pressed as soon as it can be

Boundary: measures and returns figures; app.py stores them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Page

from benchmarks import clicks
from benchmarks.machine import spread

# figure -> (unit, limit)
LIMITS: dict[str, tuple[str, float]] = {
    "click to changed page": ("ms", 100.0),
    "Run to first change": ("ms", 150.0),
    "page change": ("ms", 150.0),
    "server start to first page": ("s", 2.0),
    "first answer on a fresh machine": ("s", 10.0),
}
Figures = dict[str, list[float]]
Start = Callable[[Path, Path], "Served"]  # checkout, cache folder
RUN = ".st-key-compare_run button:enabled"
TITLE = "() => document.querySelector('h1')?.textContent"
CARDS = """() => [...document.querySelectorAll('[class*="st-key-card_"]')]
  .map(card => card.textContent).join()"""
WORDS = """() => [...document.querySelectorAll(
  '[class*="st-key-answer_"], [class*="st-key-stream_"]')]
  .some(one => one.textContent.trim() && !/Press Run/.test(one.textContent))"""
LONGEST_MS = 300_000


class Served:
    """A running server; `close` ends it."""

    def __init__(self, url: str, began: float, close: Callable[[], None]) -> None:
        self.url, self.began, self.close = url, began, close
        self.ready = time.perf_counter()


def measure(page: Page, start: Start, roots: dict[str, Path], rounds: int, often: int) -> Any:
    """Each figure of each checkout as a spread, and the rows of targets of "this"."""
    found: dict[str, Figures] = {name: {figure: [] for figure in LIMITS} for name in roots}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            names = list(roots) if number % 2 == 0 else list(reversed(roots))
            for name in names:
                fresh = Path(folder) / f"{name}-{number}"
                fresh.mkdir()
                _fresh(page, start, roots[name], fresh, found[name])
                _warm(page, start, roots[name], fresh, found[name], often)
    figures = {
        name: {figure: spread(values) for figure, values in one.items()}
        for name, one in found.items()
    }
    return {"rows": rows(found), **figures}


def rows(found: dict[str, Figures]) -> list[dict[str, Any]]:
    """Each target: a ratio of 1 or more meets it; what the other checkout takes stands beside."""
    lines = []
    for figure, (unit, limit) in LIMITS.items():
        ours, theirs = (median(found[name][figure]) for name in ("this", "other"))
        lines.append(
            {
                "what": f"{figure}: {ours:.4g} {unit}, before {theirs:.4g} {unit}",
                "against": f"a limit of {limit:g} {unit}",
                "ratio": round(limit / ours, 2),
                "target": 1.0,
                "repeat": "python -m benchmarks.app --against FOLDER",
            }
        )
    return lines


def _fresh(page: Page, start: Start, root: Path, folder: Path, found: Figures) -> None:
    """The first answer of a server that has nothing in its cache folder."""
    served = start(root, folder)
    try:
        page.goto(served.url)
        page.locator(RUN).click(timeout=LONGEST_MS)
        page.wait_for_function(WORDS, timeout=LONGEST_MS, polling=20)
        found["first answer on a fresh machine"].append(time.perf_counter() - served.ready)
        page.locator(RUN).wait_for(timeout=LONGEST_MS)
    finally:
        served.close()


def _warm(page: Page, start: Start, root: Path, folder: Path, found: Figures, often: int) -> None:
    """A second start, and clicks once the models are loaded."""
    served = start(root, folder)
    try:
        page.goto(served.url)
        page.locator(RUN).wait_for(timeout=LONGEST_MS)
        found["server start to first page"].append(time.perf_counter() - served.began)
        _run(page)  # loads the models
        for _ in range(often):
            found["Run to first change"].append(_run(page))
            found["click to changed page"].append(clicks.known_answer(page))
        for link in ("Models", "Benchmark") * often:
            press = page.get_by_role("link", name=link, exact=True).click
            found["page change"].append(clicks.answer(page, TITLE, press))
            page.wait_for_timeout(clicks.REST_MS)
    finally:
        served.close()


def _run(page: Page) -> float:
    """Milliseconds from the click on Run to the first change of a card; then all have ended."""
    button = page.locator(RUN)
    button.wait_for(timeout=LONGEST_MS)
    took = clicks.answer(page, CARDS, button.click)
    page.wait_for_timeout(clicks.REST_MS)  # Run is disabled by now
    button.wait_for(timeout=LONGEST_MS)
    return took
