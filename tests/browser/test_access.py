"""Every page for weak eyes, a keyboard, a screen reader and a phone, with its content in place.

page_audit.js looks for the faults; a control plants each fault and sees it found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import PATIENCE_MS, Visitor
from tests.browser.test_imported import drop

pytestmark = pytest.mark.browser
AUDIT = Path(__file__).with_name("page_audit.js").read_text()
STILL = '[data-testid="stApp"][data-test-script-state="notRunning"] [data-testid="stMain"]'
BUTTON = ".st-key-{} button:not([disabled])"


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    page.locator(STILL).wait_for()
    page.wait_for_timeout(1000)  # charts are drawn after the script has ended
    page.evaluate(AUDIT)


def faults(page: Page, kind: str) -> list[str]:
    found: list[str] = page.evaluate(f"() => window.audit.{kind}()")
    return found


@pytest.fixture(scope="module")
def addresses(browser: Browser, server: str) -> dict[str, str]:
    """Each page's address: empty, and with a finished run of its kind."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    found = {name: f"{server}{name}" for name in ("", "verify", "benchmark", "results", "models")}
    for name, make in (("answers", _compared), ("runs", _benchmarked), ("proof", _verified)):
        found[name] = make(Visitor(context.new_page(), server))
    for view in ("Comparison", "Samples"):
        found[view] = f"{found['runs']}&results_view={view}"
    context.close()
    return found


def _compared(visitor: Visitor) -> str:
    visitor.open("?compare_tokens=12")
    visitor.run()
    visitor.ready()
    return visitor.page.url


def _benchmarked(visitor: Visitor) -> str:
    page = visitor.page
    page.goto(f"{visitor.server}benchmark?benchmark_tokens=8")
    page.locator(BUTTON.format("benchmark_start")).click()
    page.get_by_role("link", name="Open the results").click()
    page.get_by_text("Medians with their spread").wait_for()
    return page.url


def _verified(visitor: Visitor) -> str:
    page = visitor.page
    page.goto(
        f"{visitor.server}verify?verify_samples=1&verify_runs=3&verify_tokens=8"
        "&verify_models=Tiny+llava"
    )
    page.locator(BUTTON.format("verify_run")).click()
    page.get_by_text(re.compile("^Ended after")).wait_for()
    return page.url


@pytest.fixture
def seen(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of the width and the theme in the parameter."""
    width, theme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


def everywhere(page: Page, addresses: dict[str, str], *kinds: str) -> dict[str, list[str]]:
    """(page, kind) -> faults, without those pages that have none."""
    found = {}
    for name, address in addresses.items():
        open_page(page, address)
        found |= {f"{name or 'compare'}, {kind}": faults(page, kind) for kind in kinds}
    return {where: what for where, what in found.items() if what}


Theme = Literal["light", "dark"]


@pytest.mark.parametrize("seen", [(1400, "light"), (1400, "dark")], indirect=True)
def test_every_text_can_be_read_and_every_button_and_chart_has_a_name(
    seen: Page, addresses: dict[str, str]
) -> None:
    """And letters have four sizes."""
    assert everywhere(seen, addresses, "pale", "nameless", "ticks", "titles", "odd_sizes") == {}


@pytest.mark.parametrize("seen", [(390, "light"), (1024, "light")], indirect=True)
def test_nothing_is_cut_on_a_phone_or_a_small_screen(seen: Page, addresses: dict[str, str]) -> None:
    assert everywhere(seen, addresses, "cut", "wide", "broken") == {}


@pytest.mark.parametrize("seen", [(1400, "light"), (390, "dark")], indirect=True)
def test_published_files_can_be_read(seen: Page, server: str) -> None:
    seen.goto(f"{server}results")
    drop(seen)
    found: dict[str, list[str]] = {}
    for view in ("Files and findings", "Figures", "Acceptance", "Claims"):
        seen.locator(".st-key-recorded_view").get_by_text(view, exact=True).click()
        seen.locator(STILL).wait_for()
        seen.wait_for_timeout(1000)
        seen.evaluate(AUDIT)
        kinds = ("pale", "nameless", "ticks", "titles", "cut", "wide", "broken")
        found |= {f"{view}, {kind}": faults(seen, kind) for kind in kinds}
    assert {where: what for where, what in found.items() if what} == {}


PLANTED = {
    "pale": "<p style='color: #999; background: #fff'>pale</p>",
    "nameless": "<button style='width: 9px; height: 9px'></button>",
    "odd_sizes": "<p style='font-size: 13px'>odd</p>",
    "titles": "<h1>a second title</h1>",
    "cut": "<p style='width: 20px; overflow: hidden; white-space: nowrap'>much too long</p>",
    "wide": "<p style='width: 3000px'>wide</p>",
    "broken": "<table style='width: 9px; table-layout: fixed'><tr>"
    "<td style='overflow-wrap: anywhere'>unbreakable</td></tr></table>",
    "ticks": "<svg class='marks'><g aria-roledescription='axis' aria-label='a linear scale'>"
    f"<g class='role-axis-label'>{'<text>1</text>' * 9}</g></g></svg>",
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_fault_is_found(context: BrowserContext, server: str, kind: str) -> None:
    page = context.new_page()
    open_page(page, f"{server}models")
    assert faults(page, kind) == []
    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", PLANTED[kind])
    assert len(faults(page, kind)) == 1


def test_the_navigation_shows_where_the_keyboard_is(context: BrowserContext, server: str) -> None:
    page = context.new_page()
    open_page(page, f"{server}models")
    link = page.get_by_role("link", name="Verify", exact=True)
    style = "e => [getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth)]"
    assert link.evaluate(style)[0] == "none"
    for _ in range(20):
        page.keyboard.press("Tab")
        if link.evaluate("e => e === document.activeElement"):
            break
    kind, width = link.evaluate(style)
    assert kind == "solid" and width >= 2


def test_a_screen_reader_hears_of_each_answer(visitor: Visitor) -> None:
    """The region is the same element before and after: a new one would not be read aloud."""
    page = visitor.open("?compare_tokens=12").page
    region = page.locator(".st-key-spoken_runs")
    expect(region).to_have_attribute("aria-live", "polite")
    region.evaluate("e => { e.same = true; }")
    visitor.run()
    visitor.ready()
    for _ in range(2):
        expect(region.get_by_text(re.compile(r"answered in [\d.,]+ m?s"))).to_have_count(3)
        assert region.evaluate("e => e.same && e.getAttribute('role') === 'status'")
        visitor.run()
        visitor.ready()
