"""From a click on a sentence in a card to the map of what it rests on, also with the keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
MENU = ".st-key-explain_menu_tiny-video_llava button"


def answered(visitor: Visitor) -> Page:
    page = visitor.open("?compare_tokens=12").page
    expect(page.get_by_text("What the answer rests on")).to_have_count(0)
    visitor.run()
    visitor.ready()
    return page


def test_a_click_on_a_sentence_leads_to_the_map(visitor: Visitor) -> None:
    page = answered(visitor)
    page.locator(".st-key-explain_tiny-video_llava button").first.click()
    sentence = page.locator(MENU).first
    sentence.wait_for()
    expect(page.get_by_text(re.compile(r"^41 encodings, 6 prefills; time: "))).to_be_visible()
    words = sentence.inner_text()
    sentence.click()
    picture = page.get_by_alt_text(re.compile("^Heat map over what the model sees of "))
    picture.wait_for()
    expect(page.locator(".st-key-compare_explain summary").first).to_be_in_viewport()
    expect(page.locator(".heat-legend")).to_contain_text("nats: the words rest on it")
    shown = page.locator('[class*="st-key-explained_words"]').inner_text()
    assert " ".join(shown.split()) == " ".join(words.split())
    chart = page.locator(".st-key-compare_explain .stVegaLiteChart")
    expect(
        chart.get_by_role("graphics-document").or_(chart.locator("svg, canvas")).first
    ).to_be_visible()

    page.goto(page.url)  # the link
    picture.wait_for()
    page.get_by_role("link", name="Models").click()
    page.get_by_role("heading", name="Models").first.wait_for()
    page.get_by_role("link", name="Compare").click()
    page.get_by_text("What the answer rests on").wait_for()
    assert "compare_explained=" in page.url and visitor.outside == []


def test_the_keyboard_is_enough(visitor: Visitor) -> None:
    page = answered(visitor)
    page.locator(".st-key-explain_tiny-llava button").first.focus()
    page.keyboard.press("Enter")
    sentence = page.locator(".st-key-explain_menu_tiny-llava button").first
    sentence.wait_for()
    expect(sentence).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_alt_text(re.compile("^Heat map over ")).wait_for()
    expect(page.locator(".st-key-compare_explain summary").first).to_be_focused()
