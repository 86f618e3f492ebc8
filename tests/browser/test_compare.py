"""The Compare page as a person meets it: Run, the cache, links, Cancel, own files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import PATIENCE_MS, Visitor
from tests.conftest import picture

pytestmark = pytest.mark.browser
LONG = "?compare_tokens=700"
LONGER = f"{LONG}&compare_repeat=10"  # runs that have not ended when they are to be watched
SHORT = "?compare_tokens=12"


def badges(page: Page, words: str) -> Locator:
    """The badges a person sees; Streamlit keeps a hidden twin of those with a help text."""
    return page.locator(".stMarkdownBadge", has_text=words).filter(visible=True)


def test_run_shows_three_answers_and_a_chart_and_the_next_run_reads_the_cache(
    tiny_folder: Path, fresh: Callable[..., Visitor]
) -> None:
    visitor = fresh({"STAGESCOPE_MODELS": str(tiny_folder / "models.toml")})
    page = visitor.open("?compare_tokens=60").page
    visitor.run()
    first = visitor.answers()
    assert len(first) == 3 and all(text.strip() for text in first)
    expect(page.get_by_text(re.compile("^Done"))).to_have_count(3)
    expect(page.locator(".st-key-compare_stages .run-bar")).to_have_count(3)
    expect(page.locator(".run-thin")).to_have_count(0)
    page.get_by_text("All times and their sources").click()
    expect(page.locator('.st-key-compare_times [data-testid="stTable"]')).to_be_visible()
    expect(badges(page, "from cache")).to_have_count(0)

    visitor.run()
    assert visitor.answers() == first
    expect(badges(page, "from cache")).to_have_count(3)
    expect(page.locator(".run-thin")).to_have_count(3)
    assert visitor.outside == []


def opacity(page: Page) -> float:
    found = page.locator(".st-key-compare_board").evaluate("e => getComputedStyle(e).opacity")
    return float(found)


def test_the_verdict_and_the_stage_bars_are_on_the_first_screen(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1400, "height": 900})
    page = visitor.open(SHORT).page
    expect(page.locator(".verdict")).to_have_count(0)  # control: nothing ran
    visitor.run()
    visitor.ready()
    page.keyboard.press("Control+Home")
    heading = page.locator(".st-key-compare_verdict h2")
    expect(heading).to_have_text(re.compile("^No winner: .|was (fastest|first): [0-9.,]+ ms, "))
    models = page.locator(".verdict-model")
    expect(models).to_have_count(3)
    for words in models.all_inner_texts():
        assert re.search(r"\d ms\n12 tokens", words)
    places = [page.locator(selector).first.bounding_box()
              for selector in (".verdict h2", ".run-row", '[class*="st-key-card_"]')]  # fmt: skip
    tops = [place["y"] for place in places if place]
    assert len(tops) == 3 and tops == sorted(tops) and tops[1] + 30 < 900


def test_changed_inputs_dim_the_answers_until_the_next_run(visitor: Visitor) -> None:
    page = visitor.open(SHORT).page
    visitor.run()
    visitor.ready()
    said = page.get_by_text("Changed since these runs: question.")
    assert opacity(page) == 1  # control
    expect(said).to_have_count(0)
    before = visitor.answers()
    question = page.locator(".st-key-compare_question textarea")
    question.fill("Is it dark?")
    question.press("Tab")
    expect(said).to_be_visible(timeout=PATIENCE_MS)
    assert opacity(page) < 1 and visitor.answers() == before
    page.locator(visitor.button("run_changed")).click()
    expect(said).to_have_count(0, timeout=PATIENCE_MS)
    visitor.ready()
    assert opacity(page) == 1
    expect(page.get_by_text(re.compile("Is it dark")).filter(visible=True).nth(1)).to_be_visible()


def test_a_fresh_clone_answers_about_the_scene(fresh: Callable[..., Visitor]) -> None:
    visitor = fresh({})
    page = visitor.open().page
    visitor.run()
    answers = visitor.answers()
    assert len(answers) == 3 and all("road" in text.lower() for text in answers)
    expect(page.get_by_text("Demo checkpoints know", exact=False)).to_have_count(1)
    expect(badges(page, "cold run")).to_have_count(3)

    visitor.run()
    assert visitor.answers() == answers
    expect(badges(page, "from cache")).to_have_count(3)


def test_answers_grow_while_the_page_is_watched(visitor: Visitor) -> None:
    page = visitor.open(LONGER).page
    visitor.run()
    page.get_by_text("tok/s").first.wait_for()
    expect(page.get_by_text(re.compile("^Done"))).not_to_have_count(3)
    visitor.ready()


# What each frame shows: the verdict's head, the first total, the last row.
WATCH = """() => { window.seen = []; const look = () => {
  const rows = [...document.querySelectorAll('.run-row')];
  window.seen.push([document.querySelector('.verdict h2')?.innerText ?? '',
    parseFloat(rows[0]?.querySelector('.run-total').innerText.replace(',', '') ?? 'NaN'),
    rows[2]?.innerText ?? '']);
  requestAnimationFrame(look); }; look(); }"""


def test_the_bars_grow_while_models_run(visitor: Visitor) -> None:
    page = visitor.open(LONGER).page
    page.evaluate(WATCH)
    visitor.run()
    visitor.ready()
    seen = page.evaluate("window.seen")
    running = [one for one in seen if one[0].startswith("Running: 0 of 3 models done")]
    totals = {total for _, total, _ in running if total is not None}
    assert len(totals) > 3 and any("queued" in row for *_, row in running)
    expect(page.locator(".verdict h2")).not_to_have_text(re.compile("Running"))


def test_cancel_stops_all_and_leaves_no_numbers_made_up(visitor: Visitor) -> None:
    page = visitor.open(LONGER).page
    visitor.run()
    page.locator(visitor.button("cancel")).click()
    visitor.ready()
    expect(page.get_by_text(re.compile("Cancelled$")).first).to_be_visible()


@pytest.mark.compiles
@pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no C++ compiler")
def test_cancel_while_a_model_compiles_leaves_run_to_press(visitor: Visitor) -> None:
    """The compiler goes on to its end; the next run queues behind it and answers."""
    page = visitor.open(f"{SHORT}&compare_models=Tiny+llava&compare_backend=Compiled").page
    visitor.run()
    page.get_by_text("Running: compile").filter(visible=True).wait_for()
    page.locator(visitor.button("cancel")).click()
    expect(page.get_by_text("Cancelling: compiling")).to_be_visible(timeout=PATIENCE_MS)
    visitor.run()
    expect(page.get_by_text("Queued: 1 run ahead")).to_be_visible(timeout=PATIENCE_MS)
    page.locator(visitor.button("run")).wait_for(timeout=5 * PATIENCE_MS)  # the compiler's end
    expect(badges(page, "compiled").first).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


def test_a_link_reopens_choice_and_results_elsewhere(visitor: Visitor, browser: Browser) -> None:
    page = visitor.open(SHORT).page
    page.locator(".st-key-compare_question textarea").fill("Is **this** $x$ plain?")
    page.locator(".st-key-compare_question textarea").press("Control+Enter")
    page.get_by_text("Is **this** $x$ plain?").nth(1).wait_for()
    answers = visitor.answers()

    other = Visitor(browser.new_page(), "")
    other.page.set_default_timeout(PATIENCE_MS)
    other.open(page.url)
    expect(other.page.locator(".st-key-compare_question textarea")).to_have_value(
        "Is **this** $x$ plain?"
    )
    expect(other.page.get_by_text(re.compile("^Done"))).to_have_count(3)
    assert other.answers() == answers
    other.page.close()


def test_own_files_run_and_are_not_part_of_the_link(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.open(SHORT).page
    page.get_by_text("Own files", exact=True).click()
    files = page.locator(".st-key-compare_files input[type=file]")
    files.set_input_files([picture(tmp_path / "one.png", 1), picture(tmp_path / "two.png", 2)])
    page.get_by_text("own files · one.png, two.png").wait_for()
    visitor.run()
    visitor.ready()
    expect(page.get_by_text(re.compile("^Done"))).to_have_count(2)
    expect(page.get_by_text("Tiny eventgpt is left out.")).to_be_visible()
    expect(page.get_by_text("Failed", exact=True)).to_have_count(0)
    assert "one.png" not in page.url


def test_pictures_and_charts_have_words(visitor: Visitor) -> None:
    page = visitor.open(SHORT).page
    visitor.run()
    visitor.ready()
    images = page.locator("[data-testid=stMain] img, [data-testid=stSidebarUserContent] img")
    expect(images).to_have_count(4)
    assert all(image.get_attribute("alt") for image in images.all())
    assert "load" in (page.locator(".run-bars").get_attribute("aria-label") or "")
