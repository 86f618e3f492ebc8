"""The Verify page as a person meets it: verdicts fill in, pages are left, evidence is opened."""

import re

import pytest
from playwright.sync_api import expect

from engine.verify.verdict import CHECKS, ONCE
from tests.browser.conftest import APP, Visitor

pytestmark = pytest.mark.browser
QUICK = "verify?verify_samples=2&verify_runs=8&verify_tokens=12&verify_models=Tiny+llava"
MARKS = 2 * (len(CHECKS) - len(ONCE)) + len(ONCE)  # of two samples
BUTTON = ".st-key-verify_{} button:not([disabled])"


def test_verdicts_fill_in_open_their_evidence_and_stay_when_cancelled(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(visitor.server + QUICK)
    page.locator(BUTTON.format("run")).wait_for()
    page.keyboard.press("Control+Enter")
    page.get_by_text(re.compile(rf"\d+ of {MARKS} checks")).wait_for()
    page.locator(".proof-passed").first.wait_for()
    page.get_by_role("link", name="Models").click()
    page.get_by_role("heading", name="Models").wait_for()
    page.get_by_role("link", name="Verify", exact=True).click()
    page.get_by_text(re.compile("^Ended after")).wait_for()
    page.get_by_text(re.compile(r"Tiny llava: \d+ passed")).first.wait_for()
    # Drawn a last time, with Verify enabled: until the script ends, the rows of the drawing before
    # stay below it, and a click may meet one of them while it goes.
    page.locator(BUTTON.format("run")).wait_for()
    page.locator(f"{APP} .st-key-verify_limits").wait_for()
    page.locator(".st-key-verify_passed summary").click()
    # By keyboard: the rows still move while the box opens, and a click may meet another one.
    page.get_by_role("button", name="Stages add up").press("Enter")
    charts = page.locator('[class*="st-key-proof_evidence"] [data-testid="stVegaLiteChart"] svg')
    expect(charts).to_have_count(6)
    page.reload()
    expect(charts).to_have_count(6)
    row = page.locator('[class*="st-key-verify_kept_"] summary').first
    row.press("Enter")
    page.get_by_text("Its checks are shown above.").wait_for()
    assert "verify_certificate=" in page.url
    row.press("Enter")
    expect(page.get_by_text("Its checks are shown above.")).to_have_count(0)
    assert "verify_certificate=" not in page.url

    runs = page.get_by_role("spinbutton", name="Warm runs")
    runs.fill("100")
    runs.press("Enter")
    page.wait_for_url("**verify_runs=100**")
    page.locator(BUTTON.format("run")).click()
    page.get_by_text(re.compile(rf"\d+ of {MARKS} checks")).wait_for()
    page.locator(".proof-passed").first.wait_for()
    # Nothing of the earlier report is left while the new one runs.
    expect(page.locator(".st-key-verify_limits")).to_have_count(0)
    expect(page.locator(".st-key-verify_passed")).to_have_count(0)
    expect(page.get_by_role("heading", name="Certificates")).to_have_count(1)
    expect(page.locator('[class*="st-key-verify_kept_"]')).to_have_count(1)
    page.locator(BUTTON.format("cancel")).click()
    page.get_by_text(re.compile("^Cancelled after")).wait_for()
    page.locator(BUTTON.format("run")).wait_for()
    expect(page.locator(".proof-state.proof-unfinished")).to_have_count(1)
    page.locator(".st-key-verify_passed summary").click()
    expect(page.locator(".proof-passed").first).to_be_visible()
    assert visitor.outside == []
