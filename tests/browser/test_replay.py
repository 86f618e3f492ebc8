"""The replay of a comparison as a person sees it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
FRAME_MS = 50.0  # the bound: within one frame of the recorded time
EARLY_MS = 1.0  # the browser rounds its clocks
# When each event is drawn: an animation starts in the frame that shows its element.
RECORD = """() => {
  window.drawn = [];
  window.frames_ms = [];
  const frame = (now) => { window.frames_ms.push(now); requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  document.querySelector(".replay").addEventListener("animationstart", (event) => {
    const at = parseFloat(event.target.style.getPropertyValue("--at") || "0");
    window.drawn.push([at, document.timeline.currentTime]);
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
CLOCK = "getComputedStyle(document.querySelector('.replay-clock')).getPropertyValue('--ms')"


def letters(text: str) -> str:
    """Tiny models also say control characters, which the two places show in different ways."""
    return re.sub(r"[^A-Za-z0-9]", "", text)


def late(page: Page, speed: int, slower: int) -> list[tuple[float, float]]:
    """Events of a replay at a speed, due as if it were `slower` times slower, that were not drawn
    in time, nor in the first frame after a pause in which a busy machine drew nothing: by how
    many milliseconds, and how long the frame before was past the due time."""
    begin = page.evaluate(PLAY, speed)
    wanted = page.locator(".replay [style*='--at'], .replay-clock").count()
    assert wanted > 3 * 12
    page.wait_for_function(f"window.drawn.length >= {wanted}")
    frames: list[float] = page.evaluate("window.frames_ms")
    found = []
    for at, drawn in page.evaluate("window.drawn"):
        before = max((one for one in frames if one < drawn), default=0.0)
        found.append((drawn - begin - at * slower, before - begin - at * slower))
    return [
        (after, before)
        for after, before in found
        if not -EARLY_MS <= after <= FRAME_MS and not (after > 0 and before < EARLY_MS)
    ]


@pytest.mark.slow
def test_a_replay_draws_each_event_in_time_and_pauses_by_keyboard(visitor: Visitor) -> None:
    page = visitor.open("?compare_tokens=12&compare_replay=true").page
    visitor.run()
    visitor.ready()
    area = page.locator(".replay")
    texts = page.locator(".replay-text").all_text_contents()
    assert list(map(letters, texts)) == list(map(letters, visitor.answers()))
    page.evaluate(RECORD)
    for slower in (1, 4, 10):
        assert late(page, slower, slower) == []
    assert late(page, 10, 4)  # control: the events of another speed are not on time

    total = area.locator(".replay-head i").last
    area.get_by_label("Stop", exact=True).focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(area.get_by_label("0.1x", exact=True)).to_be_checked()
    area.get_by_label("Pause").focus()
    page.keyboard.press("Space")
    expect(total).to_be_hidden()  # what has not happened
    held, drawn = page.evaluate(f"[{CLOCK}, window.frames_ms.length]")
    page.wait_for_function("drawn => window.frames_ms.length > drawn + 10", arg=drawn)
    assert page.evaluate(CLOCK) == held
    page.keyboard.press("Space")
    expect(total).to_be_visible()
    assert visitor.outside == []
