"""10,000 results in the Results page, measured from outside with a real browser.

`python -m benchmarks.results_page`: seconds from a link to the stage bars and figures of a run of
10,000 results that the server has not read before, and again once it has; milliseconds from a typed
word to the filtered list of samples.
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
# Milliseconds from the key that completes a word to the list's new count.
FILTERED = """word => new Promise(done => {
  const count = () => document.querySelector('.st-key-results_pager')?.innerText;
  const before = count(), field = document.querySelector('.st-key-results_text input');
  const put = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  put.call(field, word);
  field.dispatchEvent(new Event('input', {bubbles: true}));
  field.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
  const start = performance.now();
  const timer = setInterval(() => {
    if (count() && count() !== before) { clearInterval(timer); done(performance.now() - start); }
  }, 2);
})"""


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
    """Every run is opened by a link of its own, once unread and once read before."""
    page.goto(url)  # what every first visit pays for, imports above all, is paid for here
    page.locator(".st-key-compare_run button:enabled").wait_for(timeout=120_000)
    page.wait_for_timeout(8_000)
    names = [f"many-{number}" for number in range(OPENINGS)]
    first = [_open(page, url, name) for name in names]
    again = [_open(page, url, names[-1]) for _ in range(OPENINGS)]
    return {
        "link_to_figures_unread_s": spread(first),
        "link_to_figures_read_before_s": spread(again),
        "word_to_filtered_list_ms": spread(_filter(page, url, names[-1])),
    }


def _open(page: Page, url: str, name: str) -> float:
    """Seconds from the link to both charts and the table of figures."""
    page.goto("about:blank")
    start = time.perf_counter()
    page.goto(f"{url}/results?results_runs={name}")
    page.locator(CHART).nth(1).wait_for(timeout=120_000)
    page.get_by_text("Medians with their spread").wait_for(timeout=120_000)
    return time.perf_counter() - start


def _filter(page: Page, url: str, name: str) -> list[float]:
    page.goto(f"{url}/results?results_runs={name}&results_view=Samples")
    page.locator(".st-key-results_pager").wait_for(timeout=120_000)
    found = []
    for number in range(WORDS):
        page.wait_for_timeout(1_000)
        found.append(float(page.evaluate(FILTERED, f"sample-{number}")))
    return found


if __name__ == "__main__":
    main()
