"""Six columns as a person meets them: rows of cards, colours, adding and removing one."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
SIX = [
    *("Tiny eventgpt", "Tiny eventgpt, shown video", "Tiny video_llava", "Tiny llava"),
    *("Tiny llava, shown events", "Tiny llava, float16"),
]
CARDS = '.st-key-compare_cards [class*="st-key-card_"]'
# Cards in each row; the distances of a row's answers from a common line; colours of the edges.
LOOK = """selector => {
  const cards = [...document.querySelectorAll(selector)], rows = {};
  for (const card of cards) (rows[card.getBoundingClientRect().top] ??= []).push(
    card.querySelector('[class*="st-key-answer_"]').getBoundingClientRect().top);
  return [Object.values(rows).map(tops => tops.length),
    Object.values(rows).map(tops => new Set(tops).size),
    new Set(cards.map(card => getComputedStyle(card).borderTopColor)).size,
    document.documentElement.scrollWidth <= window.innerWidth];
}"""


def query(labels: list[str]) -> str:
    return "?" + urlencode({"compare_models": labels, "compare_tokens": 8}, doseq=True)


def test_six_cards_stand_in_rows_and_each_has_its_colour(visitor: Visitor) -> None:
    page = visitor.open(query(SIX)).page
    visitor.run()
    assert len([text for text in visitor.answers() if text.strip()]) == 6
    for width, rows in ((1400, [3, 3]), (900, [2, 2, 2]), (390, [1] * 6)):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"() => window.innerWidth == {width}")
        page.wait_for_timeout(300)
        assert page.evaluate(LOOK, CARDS) == [rows, [1] * len(rows), 6, True]
    page.set_viewport_size({"width": 1400, "height": 900})
    visitor.open(query(SIX[:4]))  # a control: four are two rows of two
    assert page.evaluate(LOOK, CARDS) == [[2, 2], [1, 1], 4, True]


def test_a_column_is_added_removed_and_kept_in_the_link(visitor: Visitor) -> None:
    page = visitor.open(query(["Tiny llava"])).page
    heads = page.locator(f"{CARDS} h3")
    expect(heads).to_have_text(["Tiny llava"])
    page.get_by_role("button", name="Add a column").click()
    page.locator(".st-key-compare_add_model input").click()
    page.get_by_role("option", name="Tiny llava").click()
    page.locator(".st-key-compare_add_kind input").click()
    page.get_by_role("option", name="Event images").click()
    page.locator(".st-key-compare_add_it button:not([disabled])").click()
    both = ["Tiny llava, shown image", "Tiny llava, shown events"]
    expect(heads).to_have_text(both)
    visitor.page.goto(page.url)
    expect(heads).to_have_text(both)
    page.get_by_role("button", name="Remove Tiny llava", exact=True).filter(visible=True).click()
    expect(heads).to_have_text(["Tiny llava, shown events"])
