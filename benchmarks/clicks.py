"""How long a click takes until the page answers it, seen from inside the browser.

Two ways to measure.  `known_answer` is the figure that earlier versions kept and stays as it was:
from before Playwright begins to click on "Show the known answer" (it looks whether the toggle
stands still and moves the mouse first) until the words of the box are there or gone, looked for
every 2 ms.  All others begin with the browser's own click event and end with the change of the
document that answers it: what the visitor waits for, without what the measuring does before.

Boundary: drives an open Compare page; app.py stores the figures.
"""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

REST_MS = 300  # between two clicks: the last one's rerun has ended
# Resolves with the milliseconds from the last click event to the moment `state()` has changed.
ANSWER = """state => {
  const before = state();
  let pressed = NaN;
  document.addEventListener('click', () => { pressed = performance.now(); }, true);
  window.answered = new Promise(done => {
    let over = false;
    const look = () => {
      if (over || pressed !== pressed || state() === before) return;
      over = true;
      watch.disconnect();
      done(performance.now() - pressed);
    };
    const watch = new MutationObserver(look);
    watch.observe(document.body, {subtree: true, childList: true, attributes: true});
    const frame = () => { look(); if (!over) requestAnimationFrame(frame); };
    frame();  // what unfolds by an animation changes no element
  });
}"""
TRUTH = "() => document.body.textContent.includes('Reference answer')"
PREVIEW = """() => document.querySelector('img[alt^="Preview of"]')?.alt"""
CARDS = """() => document.querySelectorAll('[class*="st-key-card_"]').length"""
UNFOLDED = """() => { const field = document.querySelector('.st-key-compare_tokens');
  return field ? field.checkVisibility() : false; }"""


def known_answer(page: Page) -> float:
    """Milliseconds from before the click on the toggle to the box that it opens or closes."""
    box = page.locator(".st-key-compare_truth label").first
    script = """() => new Promise(done => {
      const words = () => document.body.innerText.includes('Reference answer');
      const before = words(), start = performance.now();
      const timer = setInterval(() => {
        if (words() !== before) { clearInterval(timer); done(performance.now() - start); }
      }, 2);
    })"""
    page.wait_for_timeout(REST_MS)
    waiting = page.evaluate_handle(f"() => {{ window.seen = ({script})(); }}")
    box.click()
    found: float = page.evaluate("() => window.seen")
    waiting.dispose()
    return found


def answer(page: Page, state: str, press: Callable[[], None]) -> float:
    """Milliseconds from the last click event in `press` to the change of `state` in the page."""
    page.wait_for_timeout(REST_MS)
    page.evaluate(f"() => ({ANSWER})({state})")
    press()
    found: float = page.evaluate("() => window.answered")
    return found


def toggle(page: Page) -> float:
    """The same toggle, from the click event."""
    return answer(page, TRUTH, page.locator(".st-key-compare_truth label").first.click)


def settings(page: Page) -> float:
    """Opening the folded settings of decoding, which is the browser's work alone."""
    fold = page.locator(".st-key-compare_decoding summary")
    found = answer(page, UNFOLDED, fold.click)
    fold.click()
    page.wait_for_function(f"() => !({UNFOLDED})()")  # it closes at its leisure
    return found


def another_sample(page: Page, number: int) -> float:
    """The sample of this place in the list: until its preview is there."""

    def press() -> None:
        page.locator(".st-key-compare_sample input").click()
        page.get_by_role("option").nth(number).click()

    return answer(page, PREVIEW, press)


def another_model(page: Page) -> tuple[float, float]:
    """The last model taken out of the choice and put in again: until its card has gone or come.

    On a page without runs: the cards of runs stay until the next one.
    """
    field = page.locator(".st-key-compare_models")

    def put_in() -> None:
        field.locator("input").click()
        page.get_by_role("option").first.click()

    out = answer(page, CARDS, field.get_by_role("button", name="Remove").last.click)
    back = answer(page, CARDS, put_in)
    page.keyboard.press("Escape")
    return out, back
