"""A dataset run as a person meets it: started, left, resumed, read in Results, voted on, judged."""

import re
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from engine.report import drawers
from engine.report.blocks import Bullets, Contents, Heading, Paragraph, Table
from engine.storage import annotations, run_store
from engine.storage.run_header import HEADER, new_id
from tests.browser.conftest import PATIENCE_MS, SETTLED, Visitor, free_port, serve, visit

pytestmark = pytest.mark.browser
MARKS = "svg.marks, canvas.marks"  # a chart with many marks is a canvas
BUTTON = ".st-key-benchmark_{} button:not([disabled])"
LONG = "benchmark?benchmark_repeat=40&benchmark_tokens=24"
SHORT = "benchmark?benchmark_tokens=8"
TABLE = '[data-testid="stDataFrame"]'
# Whether the table of samples shows its head and 14 rows without scrolling.
WHOLE = """() => { const found = document.querySelector('[data-testid="stDataFrame"]');
  const rows = found?.querySelector('.dvn-scroller');
  return rows && found.querySelector('canvas') && found.clientHeight >= 15 * 35
    && rows.scrollHeight <= found.clientHeight + 1; }"""
# Every marked table, by its caption.
TABLES = """() => [...document.querySelectorAll("table.figures")].map(table =>
  [table.caption?.textContent ?? "", [...table.rows].map(row =>
    [...row.cells].map(cell => cell.textContent.trim()))])"""
CHOICE = ".st-key-results_deck_{} button"


def start(visitor: Visitor, query: str) -> Page:
    page = visitor.page
    page.goto(visitor.server + query)
    page.locator(BUTTON.format("start")).wait_for()
    page.keyboard.press("Control+Enter")
    return page


def finished(visitor: Visitor) -> str:
    """Makes a run of the 14 demo scenes and opens its results; the run's name."""
    page = start(visitor, SHORT)
    page.get_by_role("link", name="Open the results").click()
    page.get_by_text("Medians of all results").wait_for()
    return page.url.partition("results_runs=")[2].partition("&")[0]


@pytest.fixture(scope="module")
def made() -> list[str]:
    """The names of finished runs."""
    return []


@pytest.fixture
def copied(visitor: Visitor, served: Path, made: list[str]) -> Callable[[], str]:
    """Copies a finished run as another one that nobody has marked; the copy's name."""

    def copy() -> str:
        if not made:
            made.append(finished(visitor))
        folder, name = served / "runs" / made[0], new_id()
        marks = shutil.ignore_patterns(annotations.MARKS, annotations.VOTES)
        other = shutil.copytree(folder, folder.with_name(name), ignore=marks)
        for file in (other / HEADER, other / run_store.SUMMARY):
            text = file.read_text(encoding="utf-8")
            assert made[0] in text
            file.write_text(text.replace(made[0], name), encoding="utf-8")
        return name

    return copy


@pytest.mark.slow
def test_a_run_is_left_cancelled_by_another_person_and_resumed_on_a_restarted_server(
    context: BrowserContext, other: Page, tiny_folder: Path, tmp_path: Path
) -> None:
    serving, port = contextmanager(serve), free_port()
    variables = {"STAGESCOPE_MODELS": str(tiny_folder / "models.toml")}
    some = re.compile(r"[1-9]\d* of 1,680 results")
    with serving(tmp_path, variables, port) as address:
        visitor = visit(context, address)
        page = start(visitor, LONG)
        page.get_by_text(some).wait_for()
        page.get_by_role("link", name="Models").click()
        page.get_by_role("heading", name="Models").wait_for()
        page.go_back()
        page.get_by_text(some).wait_for()
        expect(page.locator(MARKS)).to_be_visible()
        other.goto(page.url)
        other.locator(BUTTON.format("cancel")).click()
        for one in (other, page):
            one.get_by_text(re.compile("results · Cancelled")).wait_for()
        page.locator(BUTTON.format("resume")).click()
        page.locator(BUTTON.format("cancel")).wait_for()
    with serving(tmp_path, variables, port):  # the open page finds the new server by itself
        # It asks for the server at growing intervals, the last ones of 16 and 32 s.
        page.locator(".st-key-benchmark_force").wait_for(timeout=3 * PATIENCE_MS)
        expect(page.get_by_role("link", name="Compare", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="app", exact=True)).to_have_count(0)
        page.locator(BUTTON.format("resume")).click()
        page.get_by_text(some).wait_for()
        page.locator(BUTTON.format("cancel")).click()
        page.locator(BUTTON.format("resume")).wait_for()
    assert visitor.outside == []


def test_a_finished_run_is_read_down_to_one_answer_and_downloaded(
    visitor: Visitor, other: Page, made: list[str], tmp_path: Path
) -> None:
    made.append(finished(visitor))
    page = visitor.page
    expect(page.locator(MARKS)).to_have_count(3)
    page.get_by_text("Samples", exact=True).click()
    page.get_by_text("14 samples", exact=True).wait_for()
    page.wait_for_function(WHOLE)
    page.locator(SETTLED).wait_for()
    box = page.locator(TABLE).first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 400, box["y"] + 35 + 17)  # a cell of the first row, not its tick
    page.wait_for_url(re.compile("results_sample="))
    page.get_by_role("heading", name="Timeline").wait_for()

    page.get_by_text("Overview", exact=True).click()
    page.get_by_text("Spread, percentiles, extremes").click()
    page.get_by_text("Medians of all results").wait_for()
    expect(page.locator("table.figures")).to_have_count(7)
    tables = page.evaluate(TABLES)

    page.get_by_text("Comparison", exact=True).click()
    page.get_by_text("Click a point to open its sample.").wait_for()
    page.locator(SETTLED).wait_for()
    tables += page.evaluate(TABLES)
    points = page.locator('.st-key-results_scatter [aria-roledescription="circle"]')
    points.first.click(force=True)
    page.get_by_role("heading", name="Word by word").wait_for()
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
    other.goto(page.url)
    notes = other.locator('[class*="st-key-results_note_"] input')
    expect(notes.first).to_have_value("an **odd** one")
    expect(other.get_by_role("radio", name="Thumbs up").first).to_be_checked()

    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as found:
        page.get_by_role("button", name="Report, one HTML file").click()
    found.value.save_as(tmp_path / "report.html")
    assert visitor.outside == []
    page.goto((tmp_path / "report.html").as_uri())  # a bundle of one file
    page.locator("#sample .card").first.wait_for()
    there = page.evaluate(TABLES)
    shared = [one for one in tables if one[0] in {caption for caption, _ in there}]
    assert len(shared) == 7 and [one for one in shared if one not in there] == []
    shared[0][1][1][1] += "0"
    assert shared[0] not in there  # control


@pytest.mark.slow
def test_the_deck_hides_the_names_until_a_blind_vote_and_keys_drive_it(
    visitor: Visitor, copied: Callable[[], str]
) -> None:
    page = visitor.page
    page.goto(
        f"{visitor.server}results?results_runs={copied()}&results_view=Samples&results_vote=true"
    )
    page.get_by_text("Answer A", exact=True).wait_for()
    page.locator(SETTLED).wait_for()
    main = page.get_by_test_id("stMain")
    words = page.locator(".st-key-results_pick").inner_text()  # where runs are chosen
    labels = re.findall(r"Tiny [^,·]*\w", words)
    rest = main.inner_text().replace(words, "")
    assert len(labels) == 3 and not any(label in rest for label in labels)
    assert page.locator('[class*="card_llava"], [class*="card_eventgpt"]').count() == 0

    page.get_by_role("heading", level=3).first.click()
    page.keyboard.press("2")
    page.get_by_text("Your blind vote").wait_for()
    page.locator(f"{CHOICE.format('first')}[disabled]").wait_for()
    shown = main.inner_text()
    assert sum(label in shown for label in labels) >= 2
    page.keyboard.press("n")
    page.get_by_text(re.compile(r"^2 of \d+ samples$")).wait_for()
    page.get_by_text("The names, the reference and the counts appear after your vote.").wait_for()
    for label in labels:  # in the choice of runs only
        places = main.get_by_text(label).filter(visible=True)
        expect(places).to_have_count(
            page.locator(".st-key-results_pick").get_by_text(label).count()
        )
    page.keyboard.press("p")
    page.get_by_text(re.compile(r"^1 of \d+ samples$")).wait_for()
    page.get_by_text("Your blind vote").wait_for()
    page.reload()  # a new visit: the vote is still counted
    page.get_by_text("Answer A", exact=True).wait_for()
    page.locator(f"{CHOICE.format('both')}:not([disabled])").click()
    page.get_by_text("Blind votes: ").wait_for()
    assert visitor.outside == []


def test_the_gate_draws_a_run_against_the_baseline(
    visitor: Visitor, copied: Callable[[], str]
) -> None:
    old, new, page = copied(), copied(), visitor.page
    page.goto(
        f"{visitor.server}results?results_runs={old}&results_runs={new}&results_view=Comparison"
    )
    page.get_by_text("BASE: ").first.wait_for()
    expect(page.locator(MARKS).first).to_be_visible()
    with page.expect_download() as found:
        page.get_by_role("button", name="Markdown, for a pull request").click()
    assert old in found.value.suggested_filename and new in found.value.suggested_filename
    assert visitor.outside == []


def test_a_long_word_widens_no_report(context: BrowserContext) -> None:
    word, page = "W" * 20_000, context.new_page()
    texts = (Heading(2, word), Paragraph(word), Bullets((word,)), Contents((word,)))
    table = Table(word, (word, "n"), ((word, "1.0"),), 1)
    page.set_content(drawers.html(word, [*texts, table]))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.querySelector('.figures-wide').scrollWidth <= innerWidth")
