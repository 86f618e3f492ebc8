"""A comparison is saved, pinned and deleted; earlier questions are one click away."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SETTLED, Visitor
from tests.browser.test_results import SHORT, done, start

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ASK = "?compare_tokens=12&compare_cache=Off&compare_models=Tiny+llava&compare_models=Tiny+eventgpt"
TABLE = '[data-testid="stDataFrame"]'


def ask(visitor: Visitor, question: str) -> None:
    """Asks and waits for the answers."""
    page = visitor.page
    page.locator(".st-key-compare_question textarea").fill(question)
    page.keyboard.press("Tab")
    page.wait_for_url(re.compile("compare_question="))
    page.locator(SETTLED).wait_for()
    visitor.run()
    visitor.ready()
    page.locator(SETTLED).wait_for()


def save(visitor: Visitor) -> str:
    """Saves the shown comparison and opens it; the run's name."""
    page = visitor.page
    page.locator(".st-key-history_save button").filter(visible=True).click()
    page.get_by_text("Saved: open").click()
    page.wait_for_url(re.compile("results_runs="))
    page.locator(SETTLED).wait_for()
    return page.url.partition("results_runs=")[2].partition("&")[0]


def edit(page: Page, name: str) -> None:
    """Opens the box in which a chosen run is named, pinned and deleted."""
    page.locator(f".st-key-results_edit_{name} button").first.click()
    page.get_by_text(f"Run {name}", exact=True).wait_for()


def test_a_comparison_is_saved_and_an_earlier_one_reopened(visitor: Visitor) -> None:
    page = visitor.open(ASK).page
    ask(visitor, "Is it dark?")
    first, link = visitor.answers(), page.url
    ask(visitor, "Is there a car?")
    assert page.url != link
    page.locator(".st-key-history_box summary").click()
    # By key: the opening box moves the button between the press and the release of a mouse.
    page.locator(".st-key-history_open_1 button").press("Enter")
    expect(page.locator(".st-key-compare_question textarea")).to_have_value("Is it dark?")
    page.locator(SETTLED).wait_for()
    assert visitor.answers() == first

    rows = page.locator('.st-key-compare_times [data-testid="stTable"] tr')
    total = rows.filter(has_text=re.compile(r"^total\s*\d")).first.text_content() or ""
    times = re.findall(r"[\d,.]+ m?s", total)
    assert len(times) == 2
    save(visitor)
    expect(page.get_by_text("comparison", exact=True).filter(visible=True)).to_have_count(1)
    page.get_by_text("Samples", exact=True).click()
    page.locator(f"{TABLE} canvas").first.wait_for()
    box = page.locator(TABLE).first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 400, box["y"] + 35 + 17)  # a cell of the first row, not its tick
    page.wait_for_url(re.compile("results_sample="))
    page.get_by_role("heading", name="Timeline").wait_for()
    for time in times:
        expect(page.get_by_test_id("stMetricValue").filter(has_text=time)).to_be_visible()
    assert visitor.outside == []


def test_the_newest_run_the_baseline_and_deleting(visitor: Visitor) -> None:
    visitor.open(ASK)
    ask(visitor, "Is it dark?")
    old, page = save(visitor), visitor.page
    edit(page, old)
    page.locator(f".st-key-results_pin_{old} button").filter(visible=True).click()
    page.get_by_text("Unpin the baseline").first.wait_for()

    visitor.open(ASK)
    ask(visitor, "Is there a car?")
    new = save(visitor)
    page.goto(f"{visitor.server}results")
    page.wait_for_url(re.compile(f"results_runs={new}"))  # the newest, although no link says so
    page.locator(SETTLED).wait_for()
    page.locator(".st-key-results_beside_baseline button:not([disabled])").click()
    page.wait_for_url(re.compile(f"results_runs={old}&results_runs={new}"))
    page.locator(SETTLED).wait_for()
    expect(page.get_by_text("Baseline: ").filter(visible=True).first).to_be_visible()
    page.locator(".st-key-results_beside_baseline button[disabled]").wait_for()

    question = page.get_by_text("Delete this run?")
    for name in (old, new):
        edit(page, name)
        page.locator(f".st-key-results_delete_{name} button").click()
        question.wait_for()
        page.locator(f".st-key-results_delete_no_{name} button").click()
        expect(question).to_have_count(0)
        expect(page.locator(f".st-key-results_pick_{name}")).to_have_count(1)  # asked and kept
        page.locator(f".st-key-results_delete_{name} button").click()
        page.locator(f".st-key-results_delete_yes_{name} button").click()
        expect(page.locator(f".st-key-results_pick_{name}")).to_have_count(0)
        page.locator(SETTLED).wait_for()
    page.goto(f"{visitor.server}results?results_runs={new}")
    page.get_by_text("in the link was not found").wait_for()


def test_what_the_list_counts_is_on_the_screen(visitor: Visitor) -> None:
    """The demo scenes are 14 samples."""
    page = start(visitor, SHORT)
    done(page).wait_for()
    page.get_by_role("link", name="Open the results").click()
    page.get_by_text("Samples", exact=True).click()
    page.get_by_text("1 to 14 of 14 samples").wait_for()
    page.locator(f"{TABLE} canvas").first.wait_for()
    high = page.locator(TABLE).first.evaluate(
        "found => [found.clientHeight, found.querySelector('.dvn-scroller').scrollHeight]"
    )
    assert high[0] >= 15 * 35 and high[1] <= high[0] + 1
