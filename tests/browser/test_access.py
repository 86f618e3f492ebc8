"""Every page for weak eyes, a keyboard, a screen reader and a phone, with its content in place.

page_audit.js looks for the faults; a control plants each fault and sees it found.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SETTLED, Visitor
from tests.browser.test_imported import drop
from tests.conftest import slow_unless

pytestmark = pytest.mark.browser
AUDIT = Path(__file__).with_name("page_audit.js").read_text()
BUTTON = ".st-key-{} button:not([disabled])"
LOOKS = ((1400, "light"), (1024, "dark"), (390, "light"))
# The page is at rest when each of its charts is drawn and 15 frames in a row changed nothing.
WATCH = """() => { window.still = 0;
  new MutationObserver(() => { window.still = 0; }).observe(document,
    {subtree: true, childList: true, attributes: true, characterData: true});
  const frame = () => { window.still += 1; requestAnimationFrame(frame); };
  requestAnimationFrame(frame); }"""
REST = """() => window.still > 15 && [...document.querySelectorAll(
  '[data-testid="stVegaLiteChart"]')].every(chart => chart.querySelector('svg.marks, canvas'))"""
# Texts between the colours of two themes are as pale as nobody sees them.
END_TRANSITIONS = """() => document.getAnimations()
  .filter(one => one instanceof CSSTransition).forEach(one => one.finish())"""
# Whether the ground has the theme's lightness.
THEMED = """theme => (getComputedStyle(document.querySelector('.stApp')).backgroundColor
  .match(/[0-9]+/g)[0] > 127) === (theme === 'light')"""


def at_rest(page: Page) -> None:
    page.locator(SETTLED).wait_for()
    page.evaluate("window.still = 0")
    page.wait_for_function(REST)
    page.evaluate(END_TRANSITIONS)


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    page.evaluate(WATCH)
    page.evaluate(AUDIT)
    at_rest(page)


def faults(page: Page, kind: str) -> list[str]:
    found: list[str] = page.evaluate(f"() => window.audit.{kind}()")
    return found


def every_look(page: Page) -> dict[str, list[str]]:
    """The open page at each width and theme: its faults, by kind."""
    found: dict[str, list[str]] = {}
    for width, theme in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.wait_for_function(THEMED, arg=theme)
        at_rest(page)
        found |= {f"{width} {theme}, {kind}": faults(page, kind) for kind in PLANTED}
    return {where: what for where, what in found.items() if what}


def empty(visitor: Visitor) -> Iterator[str]:
    yield from (visitor.server + name for name in ("", "models"))


def compared(visitor: Visitor) -> Iterator[str]:
    visitor.open("?compare_tokens=12")
    visitor.run()
    visitor.ready()
    yield visitor.page.url


def explained(visitor: Visitor) -> Iterator[str]:
    address = next(compared(visitor))
    yield f"{address}&compare_replay=true"
    yield f"{address}&compare_words=true&compare_tab=Agreement"
    yield f"{address}&compare_tab=What+each+model+saw"
    yield f"{address}&compare_tab=Draft"
    visitor.page.goto(f"{address}&compare_tab=Why+this+answer")
    visitor.page.locator(BUTTON.format("compare_explain_run")).click()
    visitor.page.locator(".heat-legend").wait_for()
    yield visitor.page.url


def benchmarked(visitor: Visitor) -> Iterator[str]:
    page = visitor.page
    yield f"{visitor.server}benchmark"
    page.goto(f"{visitor.server}benchmark?benchmark_tokens=8")
    page.locator(BUTTON.format("benchmark_start")).click()
    page.get_by_role("link", name="Open the results").click()
    page.get_by_text("Medians of all results").wait_for()
    address = page.url
    yield address
    for view in ("Comparison", "Samples", "Samples&results_vote=true", "Quality", "Export"):
        yield f"{address}&results_view={view}"


def verified(visitor: Visitor) -> Iterator[str]:
    page = visitor.page
    yield f"{visitor.server}verify"
    page.goto(
        f"{visitor.server}verify?verify_samples=1&verify_runs=3&verify_tokens=8"
        "&verify_models=Tiny+llava"
    )
    page.locator(BUTTON.format("verify_run")).click()
    page.get_by_text(re.compile("^Ended after")).wait_for()
    yield page.url


@pytest.mark.parametrize(
    "pages", slow_unless([compared], [compared, empty, explained, benchmarked, verified])
)
def test_a_page_has_no_fault_at_any_width_and_in_any_theme(
    visitor: Visitor, pages: Callable[[Visitor], Iterator[str]]
) -> None:
    found: dict[str, list[str]] = {}
    for address in pages(visitor):
        visitor.page.set_viewport_size({"width": 1400, "height": 900})
        open_page(visitor.page, address)
        found |= {f"{address} {look}": what for look, what in every_look(visitor.page).items()}
    assert found == {} and visitor.outside == []


@pytest.mark.slow
def test_published_files_can_be_read(visitor: Visitor) -> None:
    page, found = visitor.page, dict[str, list[str]]()
    open_page(page, f"{visitor.server}published")
    drop(page)
    for view in ("Files and findings", "Figures", "Acceptance", "Claims"):
        page.set_viewport_size({"width": 1400, "height": 900})
        page.locator(".st-key-published_view").get_by_text(view, exact=True).click()
        at_rest(page)
        found |= {f"{view}, {where}": what for where, what in every_look(page).items()}
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


def test_each_planted_fault_is_found_and_the_keyboard_is_seen(visitor: Visitor) -> None:
    page = visitor.page
    open_page(page, f"{visitor.server}models")
    link = page.get_by_role("link", name="Verify", exact=True)
    style = "e => [getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth)]"
    assert link.evaluate(style)[0] == "none"
    for _ in range(20):
        page.keyboard.press("Tab")
        if link.evaluate("e => e === document.activeElement"):
            break
    kind, width = link.evaluate(style)
    assert kind == "solid" and width >= 2

    for fault, html in PLANTED.items():
        assert faults(page, fault) == []
        page.evaluate(PLANT, f"<div id='planted'>{html}</div>")
        assert len(faults(page, fault)) == 1, fault
        page.evaluate("document.getElementById('planted').remove()")


def test_a_screen_reader_hears_of_each_answer(visitor: Visitor) -> None:
    """The region is the same element before and after: a new one would not be read aloud."""
    page = visitor.open("?compare_tokens=12").page
    region = page.locator(".st-key-spoken_runs")
    expect(region).to_have_attribute("aria-live", "polite")
    region.evaluate("e => { e.same = true; }")
    for _ in range(2):
        visitor.run()
        visitor.ready()
        expect(region.get_by_text(re.compile(r"answered in [\d.,]+ m?s"))).to_have_count(3)
        assert region.evaluate("e => e.same && e.getAttribute('role') === 'status'")
