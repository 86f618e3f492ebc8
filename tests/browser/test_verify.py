"""The Verify page as a person meets it: verdicts fill in, pages are left, evidence is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from engine.verify.verdict import CHECKS, ONCE
from tests.browser.conftest import Visitor, serve

pytestmark = pytest.mark.browser
QUICK = "verify?verify_samples=2&verify_runs=20&verify_tokens=12&verify_models=Tiny+llava"
MARKS = 2 * (len(CHECKS) - len(ONCE)) + len(ONCE)  # of two samples
BUTTON = ".st-key-verify_{} button:not([disabled])"


def press_verify(page: Page) -> None:
    page.locator(BUTTON.format("run")).click()
    page.locator(BUTTON.format("cancel")).wait_for()


def ended(page: Page) -> None:
    page.get_by_text(re.compile("^(Ended|Cancelled) after")).wait_for()
    page.locator(BUTTON.format("run")).wait_for()


def test_verdicts_fill_in_and_outlive_a_look_at_another_page(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(visitor.server + QUICK)
    page.get_by_text("Press Verify (Ctrl+Enter)").wait_for()
    press_verify(page)
    page.get_by_text(re.compile(rf"\d+ of {MARKS} checks")).wait_for()
    page.locator(".proof-passed").first.wait_for()
    expect(page.get_by_text("Press Verify (Ctrl+Enter)")).to_have_count(0)

    page.get_by_role("link", name="Models").click()
    page.get_by_role("heading", name="Models").wait_for()
    page.get_by_role("link", name="Verify", exact=True).click()
    ended(page)
    expect(page.locator(".proof-mark")).to_have_count(MARKS)
    assert "verify_job=" in page.url

    page.get_by_role("button", name="Decoupled = plain").click()
    evidence = page.locator('[class*="st-key-proof_evidence"]')
    expect(evidence.locator(".proof-tokens")).to_have_count(2)
    page.get_by_role("button", name="Stages add up").click()
    charts = page.locator('[class*="st-key-proof_evidence"] [data-testid="stVegaLiteChart"] svg')
    expect(charts).to_have_count(6)
    page.reload()
    expect(charts).to_have_count(6)
    page.locator('[class*="st-key-verify_open_"] button').first.click()  # at the end of the page
    expect(page.locator(".st-key-verify_opened")).to_be_in_viewport()
    assert visitor.outside == []


def test_cancel_leaves_what_was_found_and_proves_nothing(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(visitor.server + QUICK.replace("runs=20", "runs=100"))
    press_verify(page)
    page.locator(".proof-passed").first.wait_for()
    page.locator(BUTTON.format("cancel")).click()
    ended(page)
    expect(page.locator(".proof-state.proof-unfinished")).to_have_count(1)
    expect(page.locator(".proof-passed").first).to_be_visible()


@pytest.fixture
def unvisited(tiny_folder: Path, tmp_path: Path) -> Iterator[str]:
    """A server that nobody has opened a page of."""
    yield from serve(tmp_path, {"STAGESCOPE_MODELS": str(tiny_folder / "models.toml")})


def test_the_first_visit_of_a_server_may_be_a_link_to_a_page(
    context: BrowserContext, unvisited: str
) -> None:
    page = context.new_page()
    page.goto(f"{unvisited}verify?verify_runs=3")
    page.locator(BUTTON.format("run")).wait_for()
    expect(page.get_by_role("link", name="Compare", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="app", exact=True)).to_have_count(0)
    expect(page.locator(".st-key-verify_runs input")).to_have_value("3")
