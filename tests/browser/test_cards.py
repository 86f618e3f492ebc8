"""The cards of Compare as a person meets them: figures, scrolling, copy, run again."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
LONG = "?compare_tokens=700"
SHORT = "?compare_tokens=12"
# What a person could not read: a number outside its card, over its neighbour, or on two lines.
UNREADABLE = """() => [...document.querySelectorAll('[class*="st-key-card_"]')].flatMap(card => {
  const box = card.getBoundingClientRect();
  const numbers = [...card.querySelectorAll('.card-figures b')];
  const rows = numbers.map(b => b.getBoundingClientRect());
  return numbers.filter((b, i) => b.getClientRects().length != 1
    || rows[i].left < box.left || rows[i].right > box.right
    || rows.some((r, j) => j > i && r.top == rows[i].top && r.left < rows[i].right)
  ).map(b => b.textContent);
})"""
TOPS = """() => ['.card-figures b', '[class*="st-key-answer_"]', '[class*="st-key-actions_"]'].map(
  part => new Set([...document.querySelectorAll('[class*="st-key-card_"]')].map(
    card => card.querySelector(part).getBoundingClientRect().top)).size)"""


def ran(visitor: Visitor, query: str) -> Page:
    page = visitor.open(query).page
    visitor.run()
    visitor.ready()
    expect(page.locator(".card-figures")).to_have_count(3)
    return page


def test_no_figure_is_clipped_and_the_cards_are_aligned(visitor: Visitor) -> None:
    page = ran(visitor, SHORT)
    for width in (1400, 1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"() => window.innerWidth == {width}")
        assert page.locator(".card-figures b").count() == 18
        assert page.evaluate(UNREADABLE) == []
        if width > 640:
            assert page.evaluate(TOPS) == [1, 1, 1]
    # control: the same look finds numbers in columns that are too narrow
    page.add_style_tag(
        content="dl.card-figures { grid-template-columns: repeat(6, 4px) !important; }"
    )
    assert page.evaluate(UNREADABLE) != []


def test_a_growing_answer_shows_its_end_and_a_finished_one_its_beginning(visitor: Visitor) -> None:
    page = visitor.open(LONG).page
    page.set_viewport_size({"width": 1024, "height": 900})
    visitor.run()
    # In one look: the run may end between two.
    below = page.wait_for_function(
        """() => { for (const box of document.querySelectorAll('[class*="st-key-stream_"]'))
          if (box.scrollHeight > box.clientHeight + 40) return [
            box.lastElementChild.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom
          ]; }"""
    )
    assert abs(below.json_value()[0]) < 3
    visitor.ready()
    expect(page.locator('[class*="st-key-answer_"]')).to_have_count(3)
    page.wait_for_function(
        """() => {
          const boxes = [...document.querySelectorAll('[class*="st-key-answer_"]')];
          const long = boxes.filter(box => box.scrollHeight > box.clientHeight + 40);
          return long.length >= 2 && boxes.every(box => box.scrollTop == 0
            && box.querySelector('[data-testid="stText"]').getBoundingClientRect().top
              >= box.getBoundingClientRect().top); }"""
    )


def test_the_copy_button_gives_the_answer(visitor: Visitor) -> None:
    page = ran(visitor, SHORT)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for name in ("tiny-eventgpt", "tiny-llava"):
        page.locator(f".st-key-copy_{name} button").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        shown = page.locator(f".st-key-answer_{name}").text_content()
        assert copied.strip() and copied.strip() == (shown or "").strip()


def test_run_again_replaces_one_card(visitor: Visitor) -> None:
    page = ran(visitor, SHORT)
    answers, figures = visitor.answers(), page.locator(".card-figures").all_inner_texts()
    before = page.url
    page.locator(".st-key-compare_again_tiny-llava button").filter(visible=True).click()
    page.wait_for_function("before => location.href != before", arg=before)
    visitor.ready()
    expect(page.locator(".card-figures")).to_have_count(3)
    assert visitor.answers() == answers
    cards = page.locator('[class*="st-key-card_"]').all()
    place = [card.locator(".st-key-answer_tiny-llava").count() for card in cards].index(1)
    now = page.locator(".card-figures").all_inner_texts()
    assert [old == new for old, new in zip(figures, now, strict=True)] == [
        index != place for index in range(3)
    ]


def test_all_settings_and_formulas_are_one_key_away(visitor: Visitor) -> None:
    page = ran(visitor, SHORT)
    chips = page.locator(".st-key-settings .stMarkdownBadge").filter(visible=True)
    expect(chips).to_have_text(["at most 12 new tokens"])
    page.get_by_role("button", name="All settings").press("Enter")
    expect(page.get_by_role("row", name="Feature cache cache on cache on")).to_be_visible()
    expect(page.get_by_text("(end of the run − TTFT) / (N − 1)").last).to_be_visible()
