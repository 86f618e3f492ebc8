"""From an answer to the map of what the answer rests on, with the keyboard."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
MAP = re.compile("^Heat map over what the model sees of ")


def test_keys_lead_to_the_map(visitor: Visitor) -> None:
    page = visitor.open("?compare_tokens=12").page
    visitor.run()
    visitor.ready()
    section, picture = page.locator(".st-key-compare_explain"), page.get_by_alt_text(MAP)
    page.get_by_role("tab", name="Why this answer").press("Enter")
    page.get_by_role("combobox", name="Answer of").fill("video")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"^41 encodings, 6 prefills; time: "))).to_be_visible()
    page.get_by_role("button", name="Explain", exact=True).press("Enter")
    picture.wait_for()
    shown = page.locator('[class*="st-key-explained_words"]').inner_text()
    answer = page.locator(".st-key-answer_tiny-video_llava").inner_text()
    assert " ".join(shown.split()) in " ".join(answer.split())
    chart = section.locator(".stVegaLiteChart")
    expect(
        chart.get_by_role("graphics-document").or_(chart.locator("svg, canvas")).first
    ).to_be_visible()
    page.goto(page.url)  # the link
    picture.wait_for()
    assert visitor.outside == []
