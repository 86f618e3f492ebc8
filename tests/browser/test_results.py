"""A dataset run as a person meets it: started, watched, left, found again, read in Results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from engine.report import drawers
from engine.report.blocks import Bullets, Contents, Heading, Paragraph, ReportTable
from tests.browser.conftest import PATIENCE_MS, SETTLED, Visitor

pytestmark = pytest.mark.browser
MARKS = "svg.marks, canvas.marks"  # a chart with many marks is a canvas
BUTTON = ".st-key-benchmark_{} button:not([disabled])"
LONG = "benchmark?benchmark_repeat=40&benchmark_tokens=24"
SHORT = "benchmark?benchmark_tokens=8"


def start(visitor: Visitor, query: str) -> Page:
    page = visitor.page
    page.goto(visitor.server + query)
    page.locator(BUTTON.format("start")).wait_for()
    page.keyboard.press("Control+Enter")
    page.locator(BUTTON.format("cancel")).wait_for()
    return page


def done(page: Page) -> Locator:
    return page.get_by_text(re.compile(r"\d+ of 42 results · Finished"))


def test_a_run_outlives_a_look_at_another_page_and_another_session_cancels_it(
    visitor: Visitor, browser: Browser
) -> None:
    page = start(visitor, LONG)
    page.get_by_text(re.compile(r"[1-9]\d* of 1,680 results")).wait_for()
    page.get_by_role("link", name="Models").click()
    page.get_by_role("heading", name="Models").wait_for()
    page.get_by_role("link", name="Benchmark").click()
    page.get_by_text(re.compile(r"[1-9]\d* of 1,680 results")).wait_for()
    chart = page.locator(MARKS)
    expect(chart).to_be_visible()

    other = browser.new_page()
    other.set_default_timeout(PATIENCE_MS)
    other.goto(page.url)
    other.locator(BUTTON.format("cancel")).click()
    other.get_by_text(re.compile("results · Cancelled")).wait_for()
    other.close()
    page.get_by_text(re.compile("results · Cancelled")).wait_for()
    page.locator(BUTTON.format("go_on")).wait_for()
    assert visitor.outside == []


def test_a_finished_run_is_read_down_to_one_answer(visitor: Visitor, browser: Browser) -> None:
    page = start(visitor, SHORT)
    done(page).wait_for()
    page.get_by_role("link", name="Open the results").click()
    page.get_by_text("Medians with their spread").wait_for()
    marks = page.locator(MARKS)
    expect(marks).to_have_count(2)

    page.get_by_text("Comparison", exact=True).click()
    page.get_by_text("Click a point to open its sample.").wait_for()
    points = page.locator('.st-key-results_scatter [aria-roledescription="circle"]')
    points.first.click(force=True)
    page.get_by_role("heading", name="Word by word").wait_for()
    assert "results_sample=" in page.url
    images = page.locator('[data-testid="stImage"] img')
    expect(images).to_have_count(3)
    assert all(image.get_attribute("alt") for image in images.all())

    note = page.locator('[class*="st-key-results_note_"] input').first
    note.fill("an **odd** one")
    note.press("Enter")
    thumb = page.get_by_role("radio", name="Thumbs up").first
    thumb.click()
    expect(thumb).to_be_checked()
    page.locator(SETTLED).wait_for()

    other = browser.new_page()
    other.set_default_timeout(PATIENCE_MS)
    other.goto(page.url)
    expect(other.locator('[class*="st-key-results_note_"] input').first).to_have_value(
        "an **odd** one"
    )
    expect(other.get_by_role("radio", name="Thumbs up").first).to_be_checked()
    expect(other.locator(".words-between")).to_be_visible()
    other.close()
    assert visitor.outside == []


def test_a_report_is_downloaded(visitor: Visitor, tmp_path: Path) -> None:
    page = start(visitor, SHORT)
    done(page).wait_for()
    page.get_by_role("link", name="Open the results").click()
    page.get_by_text("Reports", exact=True).click()
    with page.expect_download() as found:
        page.get_by_role("button", name="Report, one HTML file").click()
    found.value.save_as(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert text.startswith("<!doctype html>") and "<script" not in text


def test_a_long_word_widens_no_report(context: BrowserContext) -> None:
    word, page = "W" * 20_000, context.new_page()
    texts = (Heading(2, word), Paragraph(word), Bullets((word,)), Contents((word,)))
    table = ReportTable(word, (word, "n"), ((word, "1.0"),), 1)
    page.set_content(drawers.html(word, [*texts, table]))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.querySelector('.figures-wide').scrollWidth <= innerWidth")
