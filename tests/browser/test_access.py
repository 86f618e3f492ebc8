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

from tests.browser.conftest import PATIENCE_MS, SETTLED, Visitor
from tests.browser.test_imported import drop

pytestmark = pytest.mark.browser
AUDIT = Path(__file__).with_name("page_audit.js").read_text()
BUTTON = ".st-key-{} button:not([disabled])"


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    page.locator(SETTLED).wait_for()
    page.wait_for_timeout(1000)  # charts are drawn after the script has ended
    page.evaluate(AUDIT)


def faults(page: Page, kind: str) -> list[str]:
    found: list[str] = page.evaluate(f"() => window.audit.{kind}()")
    return found


EMPTY = ("compare", "verify", "benchmark", "models")
SWITCHED = "&compare_words=true&compare_replay=true&compare_seen=true"
VIEWS = ("Comparison", "Samples", "Deck", "What ran", "Reports")  # as in the URL
PAGES = (
    *EMPTY,
    "answers",
    "explained",
    "switches",
    "overview",
    "proof",
    *(f"view {one}" for one in VIEWS),
)


@pytest.fixture(scope="module")
def wide(browser: Browser) -> Iterator[Page]:
    """One page for all: a page per look would load everything three times."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def addresses(wide: Page, server: str) -> dict[str, str]:
    """The address of each of PAGES: empty ones, and those with a finished run of their kind."""
    visitor = Visitor(wide, server)
    found = {name: f"{server}{name.removeprefix('compare')}" for name in EMPTY}
    found |= {"answers": _compared(visitor), "overview": _benchmarked(visitor)}
    found |= {"explained": _explained(visitor, found["answers"])}
    found |= {"proof": _verified(visitor), "switches": found["answers"] + SWITCHED}
    return found | {f"view {one}": f"{found['overview']}&results_view={one}" for one in VIEWS}


def _compared(visitor: Visitor) -> str:
    visitor.open("?compare_tokens=12")
    visitor.run()
    visitor.ready()
    return visitor.page.url


def _explained(visitor: Visitor, address: str) -> str:
    page = visitor.page
    page.goto(f"{address}&compare_explain=true")
    page.locator(BUTTON.format("compare_explain_run")).click()
    page.locator(".heat-legend").wait_for()
    return page.url


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


Theme = Literal["light", "dark"]
LOOKS: tuple[tuple[int, Theme], ...] = (
    (1400, "light"),
    (1024, "dark"),
    (390, "light"),
)
# Texts between the colours of two themes are as pale as nobody sees them.
END_TRANSITIONS = """() => document.getAnimations()
  .filter(one => one instanceof CSSTransition).forEach(one => one.finish())"""
GROUND = "() => getComputedStyle(document.querySelector('.stApp')).backgroundColor"


def every_look(page: Page) -> dict[str, list[str]]:
    """The open page at each width and theme: its faults, by kind."""
    found: dict[str, list[str]] = {}
    grounds: set[tuple[str, str]] = set()
    for width, theme in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        page.wait_for_timeout(400)  # charts are drawn anew
        page.evaluate(END_TRANSITIONS)
        grounds.add((theme, page.evaluate(GROUND)))
        found |= {f"{width} {theme}, {kind}": faults(page, kind) for kind in PLANTED}
    assert len(grounds) == len(set(dict(grounds).values())) == 2, "the theme did not change"
    return {where: what for where, what in found.items() if what}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_fault_at_any_width_and_in_any_theme(
    wide: Page, addresses: dict[str, str], name: str
) -> None:
    wide.set_viewport_size({"width": 1400, "height": 900})
    open_page(wide, addresses[name])
    assert every_look(wide) == {}


def test_published_files_can_be_read(wide: Page, server: str) -> None:
    wide.set_viewport_size({"width": 1400, "height": 900})
    wide.goto(f"{server}results")
    drop(wide)
    found: dict[str, list[str]] = {}
    for view in ("Files and findings", "Figures", "Acceptance", "Claims"):
        wide.set_viewport_size({"width": 1400, "height": 900})
        wide.locator(".st-key-results_recorded_view").get_by_text(view, exact=True).click()
        wide.locator(SETTLED).wait_for()
        wide.evaluate(AUDIT)
        found |= {f"{view}, {where}": what for where, what in every_look(wide).items()}
    assert found == {}


PLANT = "html => document.body.insertAdjacentHTML('beforeend', html)"
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


def test_each_planted_fault_is_found(context: BrowserContext, server: str) -> None:
    page = context.new_page()
    open_page(page, f"{server}models")
    for kind, html in PLANTED.items():
        assert faults(page, kind) == []
        page.evaluate(PLANT, f"<div id='planted'>{html}</div>")
        assert len(faults(page, kind)) == 1, kind
        page.evaluate("document.getElementById('planted').remove()")


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
