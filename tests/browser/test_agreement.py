"""Agreement on Compare and the deck on Results, with the shipped models and a blind visitor."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
DISAGREED = "scene_200002+·+f11c1abe"  # two demo models name different motions
CHOICE = ".st-key-results_deck_{} button"


def test_contradictions_ticks_and_word_differences(context: BrowserContext, shipped: str) -> None:
    visitor = Visitor(context.new_page(), shipped)
    page = visitor.open(f"?compare_sample={DISAGREED}").page
    expect(page.get_by_role("heading", name="Agreement")).to_have_count(0)
    visitor.run()
    visitor.ready()
    page.get_by_role("heading", name="Agreement").wait_for()
    page.get_by_text("• motion: approaching / steady").wait_for()
    table = page.locator("table.agreement")
    expect(table.locator("tbody th").first).to_have_text("motion")
    expect(table.get_by_role("img", name="approaching: correct")).to_have_count(1)
    expect(table.get_by_role("img", name="steady: incorrect")).to_have_count(1)
    expect(table.get_by_text("not said")).not_to_have_count(0)

    page.get_by_text("Show word differences").click()
    page.locator(".words-between del").first.wait_for()
    expect(page.locator(".words-between ins").first).to_be_visible()
    assert "compare_words=true" in page.url
    page.reload()
    page.locator(".words-between del").first.wait_for()


def test_the_deck_hides_the_names_until_a_blind_vote_and_keys_drive_it(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}benchmark?benchmark_tokens=8")
    page.locator(".st-key-benchmark_start button:not([disabled])").wait_for()
    page.keyboard.press("Control+Enter")
    page.get_by_role("link", name="Open the results").click()
    page.get_by_text("Medians with their spread").wait_for()
    page.goto(f"{page.url}&results_view=Deck")
    page.get_by_text("Answer A", exact=True).wait_for()
    main = page.get_by_test_id("stMain")
    labels = names(page)
    assert len(labels) == 3 and not any(label in main.inner_text() for label in labels)
    assert page.locator('[class*="card_llava"], [class*="card_eventgpt"]').count() == 0

    page.get_by_role("heading", level=3).first.click()
    page.keyboard.press("2")
    page.get_by_text("Your blind vote").wait_for()
    shown = main.inner_text()
    assert sum(label in shown for label in labels) >= 2
    expect(page.locator(CHOICE.format("first"))).to_be_disabled()
    first = page.url
    page.keyboard.press("n")
    page.get_by_text(re.compile(r"^2 of \d+ samples$")).wait_for()
    page.get_by_text("Answer A", exact=True).wait_for()
    page.get_by_text("The names, the reference and the counts appear after your vote.").wait_for()
    for label in labels:
        expect(main.get_by_text(label).filter(visible=True)).to_have_count(0)
    assert page.url != first

    page.keyboard.press("p")
    page.get_by_text(re.compile(r"^1 of \d+ samples$")).wait_for()
    page.get_by_text("Your blind vote").wait_for()
    page.reload()  # a new visit: the vote is still counted
    page.get_by_text("Answer A", exact=True).wait_for()
    page.locator(CHOICE.format("both")).click()
    page.get_by_text("Blind votes: ").wait_for()
    assert visitor.outside == []


def names(page: Page) -> list[str]:
    """The labels of the run's models, which the list of runs names."""
    words = page.locator('[class*="st-key-small_run"]').first.inner_text()
    return [name for name in re.split(r"\s*[\n,]\s*", words) if name.startswith("Tiny")]
