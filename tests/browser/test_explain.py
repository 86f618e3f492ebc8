"""From a click on a sentence in a card to the map of what it rests on, also with the keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
MAP = re.compile("^Heat map over what the model sees of ")


def test_a_click_or_a_key_on_a_sentence_leads_to_the_map(visitor: Visitor) -> None:
    page = visitor.open("?compare_tokens=12").page
    visitor.run()
    visitor.ready()
    section, picture = page.locator(".st-key-compare_explain"), page.get_by_alt_text(MAP)
    page.locator(".st-key-more_tiny-video_llava button").first.click()
    sentence = page.locator('[class*="st-key-explain_menu_tiny-video_llava"] button').first
    sentence.wait_for()
    expect(page.get_by_text(re.compile(r"^41 encodings, 6 prefills; time: "))).to_be_visible()
    words = sentence.inner_text()
    sentence.click()
    picture.wait_for()
    expect(section).to_be_in_viewport()
    shown = page.locator('[class*="st-key-explained_words"]').inner_text()
    assert " ".join(shown.split()) == " ".join(words.split())
    chart = section.locator(".stVegaLiteChart")
    expect(
        chart.get_by_role("graphics-document").or_(chart.locator("svg, canvas")).first
    ).to_be_visible()
    page.goto(page.url)  # the link
    picture.wait_for()

    first = page.url
    page.locator(".st-key-more_tiny-llava button").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-more_menu_tiny-llava button").first).to_be_focused()
    sentence = page.locator('[class*="st-key-explain_menu_tiny-llava"] button').first
    sentence.press("Enter")
    page.wait_for_function("first => location.href !== first", arg=first)
    picture.wait_for()
    expect(section.locator("button").first).to_be_focused()
    assert visitor.outside == []
