"""The tab "What each model saw": a person points at the time line, plays and scrubs."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_marks_show_their_picture_the_clip_plays_and_a_run_keeps_the_moment(
    visitor: Visitor,
) -> None:
    page = visitor.open("?compare_tokens=12").page
    page.get_by_role("tab", name="What each model saw").click()
    marks, pictures = page.locator(".seen-mark"), page.locator(".seen-picture:visible")
    expect(marks).to_have_count(5 + 8 + 1)
    expect(pictures).to_have_count(1)
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

    page.wait_for_function("document.querySelector('video')?.readyState >= 2")
    page.locator("video").evaluate("video => video.play()")
    page.wait_for_function("document.querySelector('video').currentTime > 0.3")

    words, picture = page.get_by_text("brighter (red)"), page.get_by_alt_text(re.compile("^Events"))
    source = picture.get_attribute("src")
    page.get_by_role("slider", name="Start of the window").focus()
    page.keyboard.press("End")
    expect(words).not_to_have_text(re.compile(r"^0\.0 to "))
    expect(picture).not_to_have_attribute("src", source or "")
    moment = words.inner_text()
    visitor.run()
    visitor.ready()
    expect(marks).to_have_count(5 + 8 + 1)
    assert words.inner_text() == moment and "compare_tab=What" in page.url
    assert visitor.outside == []
