"""The section "What each model saw": a person points at the time line, plays and scrubs."""

from __future__ import annotations

import contextlib
import re

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from tests.browser.conftest import SETTLED, Visitor

pytestmark = pytest.mark.browser


def opened(visitor: Visitor) -> Page:
    page = visitor.open("?compare_tokens=12").page
    page.get_by_text("What each model saw").click()
    page.locator(".seen-mark").first.wait_for()
    return page


def test_hover_and_focus_show_the_picture_of_a_mark(visitor: Visitor) -> None:
    page = opened(visitor)
    assert "compare_seen=true" in page.url
    marks, pictures = page.locator(".seen-mark"), page.locator(".seen-picture:visible")
    expect(marks).to_have_count(5 + 8 + 1)
    expect(pictures).to_have_count(1)
    expect(pictures).to_contain_text("Event image 1 of 5")

    marks.nth(1).hover()
    expect(pictures).to_have_count(1)
    expect(pictures).to_contain_text("Event image 2 of 5")
    shown = pictures.locator("img")
    expect(shown).to_have_attribute("alt", re.compile("Event image 2 of 5: .* events"))
    assert shown.evaluate("image => image.complete && image.naturalWidth") == 160

    page.mouse.move(5, 5)
    marks.nth(0).focus()
    for number in range(1, 6):
        expect(pictures).to_contain_text(f"Event image {number} of 5")
        page.keyboard.press("Tab")
    expect(pictures).to_contain_text("Frame 0 of 20")
    expect(pictures).to_have_count(1)
    assert visitor.outside == []


def test_the_clip_plays(visitor: Visitor) -> None:
    page = opened(visitor)
    clip = page.locator("video")
    clip.wait_for()
    page.wait_for_function("document.querySelector('video').readyState >= 2")
    assert clip.evaluate("video => [video.videoWidth, video.videoHeight]") == [160, 120]
    clip.evaluate("video => video.play()")
    page.wait_for_function("document.querySelector('video').currentTime > 0.3")
    assert visitor.outside == []


def test_the_events_are_scrubbed_with_the_keyboard(visitor: Visitor) -> None:
    page = opened(visitor)
    words = page.get_by_text("brighter (red)")
    picture = page.get_by_alt_text(re.compile("^Events from "))
    first, source = words.inner_text(), picture.get_attribute("src")
    assert first.startswith("0.0 to 20.0 ms")
    page.get_by_role("slider", name="Start of the window").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect(words).not_to_have_text(re.compile(r"^0\.0 to "))
    expect(picture).not_to_have_attribute("src", source or "")
    choose_window(page, "1000")
    expect(page.get_by_text("holds the whole recording")).to_be_visible()
    expect(words).to_contain_text("0.0 to 1,000.0 ms")


def choose_window(page: Page, length: str) -> None:
    """A redraw for an earlier key may close the list again."""
    option = page.get_by_role("option", name=length, exact=True)
    for _ in range(20):
        page.locator(SETTLED).wait_for()
        page.get_by_role("combobox", name=re.compile("Window length")).click()
        with contextlib.suppress(TimeoutError):
            option.click(timeout=2000)
            return
    raise AssertionError("the list did not stay open")


def test_a_run_leaves_the_section_open_and_its_window_where_it_was(visitor: Visitor) -> None:
    page = opened(visitor)
    words = page.get_by_text("brighter (red)")
    page.get_by_role("slider", name="Start of the window").focus()
    page.keyboard.press("End")
    expect(words).not_to_have_text(re.compile(r"^0\.0 to "))
    moment = words.inner_text()
    visitor.run()
    visitor.ready()
    expect(page.get_by_text(re.compile("^Done"))).to_have_count(3)
    expect(page.locator(".seen-mark")).to_have_count(5 + 8 + 1)
    assert words.inner_text() == moment and "compare_seen=true" in page.url
