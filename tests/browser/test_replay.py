"""The replay of a comparison, and repeated runs, as a person sees them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
FRAME_MS = 50.0  # the bound: within one frame of the recorded time
EARLY_MS = 1.0  # the browser rounds its clocks
ATTEMPTS = 5  # other work on the machine may hold up a whole replay
LINK = "?compare_tokens=12&compare_replay=true"
# When each event is drawn: an animation starts in the frame that shows its element.
RECORD = """() => {
  window.drawn = [];
  document.querySelector(".replay").addEventListener("animationstart", (event) => {
    const at = parseFloat(event.target.style.getPropertyValue("--at") || "0");
    window.drawn.push([at, performance.now()]);
  });
}"""
BEGIN = """() => document.getAnimations().find(
  (one) => (one.animationName || "").startsWith("count")).startTime"""


def letters(text: str) -> str:
    """Tiny models also say control characters, which the two places show in different ways."""
    return re.sub(r"[^A-Za-z0-9]", "", text)


def replayed(page: Page, speed: str, slower: float) -> list[float]:
    """How late each event of a replay was drawn, in milliseconds after its recorded time."""
    area = page.locator(".replay")
    area.get_by_label("Stop", exact=True).check()
    page.evaluate("window.drawn = []")
    area.get_by_label(speed, exact=True).check()
    begin = page.evaluate(BEGIN)
    wanted = area.locator("[style*='--at']").count() + 1  # and the clock
    page.wait_for_function(f"window.drawn.length >= {wanted}")
    drawn: list[tuple[float, float]] = page.evaluate("window.drawn")
    return [now - begin - at * slower for at, now in drawn]


def on_time(late: list[float]) -> bool:
    return all(-EARLY_MS <= one <= FRAME_MS for one in late)


def test_a_replay_draws_each_event_within_a_frame_of_its_recorded_time(visitor: Visitor) -> None:
    page = visitor.open(LINK).page
    visitor.run()
    visitor.ready()
    area = page.locator(".replay")
    expect(area).to_contain_text("Replay of recorded times")
    texts = page.locator(".replay-text").all_text_contents()
    assert list(map(letters, texts)) == list(map(letters, visitor.answers()))
    page.evaluate(RECORD)
    for speed, slower in (("1x", 1), ("0.25x", 4), ("0.1x", 10)):
        tries: list[list[float]] = []
        while not tries or (not on_time(tries[-1]) and len(tries) < ATTEMPTS):
            tries.append(replayed(page, speed, slower))
        assert on_time(tries[-1]), [(min(late), max(late)) for late in tries]
        assert len(tries[-1]) > 3 * 12
    assert not on_time(replayed(page, "0.25x", 1)), "control: another speed is not on time"
    assert visitor.outside == []


def test_a_replay_hides_what_has_not_happened_and_can_pause_by_keyboard(visitor: Visitor) -> None:
    page = visitor.open(LINK).page
    visitor.run()
    visitor.ready()
    area = page.locator(".replay")
    total = area.locator(".replay-head i").last
    expect(total).to_be_visible()
    area.get_by_label("Stop", exact=True).focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(area.get_by_label("0.1x", exact=True)).to_be_checked()
    area.get_by_label("Pause").focus()
    page.keyboard.press("Space")
    expect(total).to_be_hidden()
    clock = (
        "() => getComputedStyle(document.querySelector('.replay-clock')).getPropertyValue('--ms')"
    )
    held = page.evaluate(clock)
    page.wait_for_timeout(300)
    assert page.evaluate(clock) == held
    page.keyboard.press("Space")
    expect(total).to_be_visible()


def test_repeats_are_counted_on_the_cards_and_cancel_stops_all(visitor: Visitor) -> None:
    page = visitor.open("?compare_tokens=12&compare_repeat=3&compare_cache=Off").page
    visitor.run()
    visitor.ready()
    expect(page.get_by_text(re.compile("^Run 3 of 3 · Done"))).to_have_count(3)
    ids: Any = page.url.count("compare_jobs=")
    assert ids == 9

    page = visitor.open("?compare_tokens=700&compare_repeat=10").page
    visitor.run()
    page.locator(visitor.button("cancel")).click()
    visitor.ready()
    expect(page.get_by_text(re.compile("^Run .* of 10 · "))).to_have_count(3)
    expect(page.get_by_text(re.compile("^Run 10 of 10 · Done"))).to_have_count(0)
