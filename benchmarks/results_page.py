"""10,000 results in the Results page, measured from outside with a real browser.

`python -m benchmarks.results_page`: seconds from the click that chooses a run of 10,000 results to
its charts and figures, for runs that the server has not read before; seconds from a link to those
of a run that it has, the browser's start of the app included; milliseconds from a typed word to the
filtered list of samples.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks.app import FLAGS, serve
from benchmarks.machine import keep, spread
from benchmarks.runs import RESULTS, write_run

OPENINGS, WORDS = 5, 11
CHART = "svg.marks, canvas.marks"
# Notes the moment of the next change of the list's count.
WATCH = """() => {
  const count = () => document.querySelector('.st-key-results_pager')?.innerText;
  const before = count();
  window.changed = new Promise(done => {
    const timer = setInterval(() => {
      if (count() && count() !== before) {
        clearInterval(timer);
        done(performance.now() - window.typed);
      }
    }, 2);
  });
  document.querySelector('.st-key-results_text input').addEventListener(
    'keydown', () => { window.typed = performance.now(); });
}"""


def main() -> None:
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("No Chromium was found: install Debian's package chromium.")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        for number in range(OPENINGS):
            write_run(Path(folder) / "runs" / f"many-{number}")
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        server, url, _ = serve(Path(folder))
        try:
            figures = _visit(page, url)
        finally:
            server.terminate()
            server.wait()
        browser.close()
    keep("results_page", {"results": RESULTS, **figures})


def _visit(page: Page, url: str) -> dict[str, Any]:
    """Opens each run once without a cache, then the last one again by its link."""
    page.goto(url)  # what every first visit pays for, imports above all, is paid for here
    page.locator(".st-key-compare_run button:enabled").wait_for(timeout=120_000)
    page.wait_for_timeout(8_000)
    names = [f"many-{number}" for number in range(OPENINGS)]
    page.goto(f"{url}/results")
    first = [_choose(page, name) for name in names]
    again = [_open(page, url, names[-1]) for _ in range(OPENINGS)]
    return {
        "click_to_figures_unread_s": spread(first),
        "link_to_figures_read_before_s": spread(again),
        "word_to_filtered_list_ms": spread(_filter(page, url, names[-1])),
    }


def _choose(page: Page, name: str) -> float:
    """Seconds from the click on an unread run; taken out of the choice again afterwards."""
    box = page.locator(f".st-key-results_pick_{name} label")
    box.wait_for(timeout=120_000)
    page.wait_for_timeout(1_000)
    start = time.perf_counter()
    box.click()
    _drawn(page)
    found = time.perf_counter() - start
    box.click()
    page.get_by_text("Choose a run on the left").wait_for(timeout=120_000)
    return found


def _drawn(page: Page) -> None:
    """Waits for both charts and the table of figures."""
    page.locator(CHART).nth(1).wait_for(timeout=120_000)
    page.get_by_text("Medians with their spread").wait_for(timeout=120_000)


def _open(page: Page, url: str, name: str) -> float:
    """Seconds from the link."""
    page.goto("about:blank")
    start = time.perf_counter()
    page.goto(f"{url}/results?results_runs={name}")
    _drawn(page)
    return time.perf_counter() - start


def _filter(page: Page, url: str, name: str) -> list[float]:
    page.goto(f"{url}/results?results_runs={name}&results_view=Samples")
    page.locator(".st-key-results_pager").wait_for(timeout=120_000)
    found = []
    field = page.locator(".st-key-results_text input")
    for number in range(WORDS):  # many samples and few of them by turns
        page.wait_for_timeout(1_000)
        page.evaluate(WATCH)
        field.fill(f"sample-{number + 100 if number % 2 else number % 9 + 1}")
        field.press("Enter")
        found.append(float(page.evaluate("() => window.changed")))
    return found


if __name__ == "__main__":
    main()
