"""The replay of a comparison, and repeated runs, as a person sees them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
FRAME_MS = 50.0  # the bound: within one frame of the recorded time
EARLY_MS = 1.0  # the browser rounds its clocks
ATTEMPTS = 8  # other work on the machine may hold up the frames of a whole replay
LINK = "?compare_tokens=12&compare_replay=true"
# When each event is drawn: an animation starts in the frame that shows its element.
RECORD = """() => {
  window.drawn = [];
  window.frames_ms = [];
  const frame = (now) => { window.frames_ms.push(now); requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  document.querySelector(".replay").addEventListener("animationstart", (event) => {
    const at = parseFloat(event.target.style.getPropertyValue("--at") || "0");
    window.drawn.push([at, document.timeline.currentTime, performance.now()]);
  });
}"""
# Stops the replay, starts it at a speed, and tells when its clock started.
PLAY = """async (slower) => {
  const press = (value) => document.querySelector(`.replay [value="${value}"]`).click();
  const clock = () => document.getAnimations().find(
    (one) => (one.animationName || "").startsWith("count"));
  press(0);
  clock();
  window.drawn = [];
  press(slower);
  const started = clock();
  await started.ready;
  return started.startTime;
}"""


def letters(text: str) -> str:
    """Tiny models also say control characters, which the two places show in different ways."""
    return re.sub(r"[^A-Za-z0-9]", "", text)


@dataclass(frozen=True)
class Drawn:
    """When an event was due and drawn, and the browser's frame before; milliseconds."""

    due: float
    drawn: float
    frame_before: float

    @property
    def within_a_frame(self) -> bool:
        return -EARLY_MS <= self.drawn - self.due <= FRAME_MS

    @property
    def at_once(self) -> bool:
        """In time, or in the first frame after a pause in which a busy machine drew nothing."""
        late = self.drawn > self.due and self.frame_before < self.due + EARLY_MS
        return self.within_a_frame or late


def replayed(page: Page, speed: int, slower: int) -> list[Drawn]:
    """Every event of a replay at a speed, due as if it were `slower` times slower."""
    begin = page.evaluate(PLAY, speed)
    wanted = page.locator(".replay [style*='--at'], .replay-clock").count()
    page.wait_for_function(f"window.drawn.length >= {wanted}")
    frames: list[float] = page.evaluate("window.frames_ms")
    found = []
    for at, frame, drawn in page.evaluate("window.drawn"):
        before = max((one for one in frames if one < frame), default=0.0)
        found.append(Drawn(begin + at * slower, drawn, before))
    return found


def test_a_replay_draws_each_event_within_a_frame_of_its_recorded_time(visitor: Visitor) -> None:
    page = visitor.open(LINK).page
    visitor.run()
    visitor.ready()
    area = page.locator(".replay")
    expect(area).to_contain_text("Replay of recorded times")
    texts = page.locator(".replay-text").all_text_contents()
    assert list(map(letters, texts)) == list(map(letters, visitor.answers()))
    page.evaluate(RECORD)
    for slower in (1, 4, 10):
        shares: list[float] = []
        while not shares or (max(shares) <= 0.5 and len(shares) < ATTEMPTS):
            events = replayed(page, slower, slower)
            late = [(one.drawn - one.due, one.due - one.frame_before) for one in events]
            assert len(events) > 3 * 12 and all(one.at_once for one in events), late
            shares.append(sum(one.within_a_frame for one in events) / len(events))
        assert max(shares) > 0.5, shares
    wrong = replayed(page, 10, 4)  # control: the events of another speed are not on time
    assert not all(one.at_once for one in wrong)
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
