"""The Compare page as a person meets it: Run, cards that grow, six columns, Cancel, own files."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Visitor, serve, visit
from tests.conftest import picture

pytestmark = pytest.mark.browser
COPIED = """async texts => { const copied = await navigator.clipboard.readText();
  return texts.every(text => copied.includes(text)); }"""
LONG = "?compare_tokens=700"
SHORT = "?compare_tokens=12"
SIX = [
    *("Tiny eventgpt", "Tiny eventgpt · shown video", "Tiny video_llava", "Tiny llava"),
    *("Tiny llava · shown events", "Tiny llava · float16"),
]
# The controls that the first screen shows; what only opens, clears or enlarges another one is part
# of it.
CONTROLS = """() => [...document.querySelectorAll('button, a[href], input, textarea, summary')]
  .filter(e => { const r = e.getBoundingClientRect(); return r.width > 2 && r.bottom > 0
    && r.top < innerHeight && e.type !== 'checkbox' && e.checkVisibility()
    && e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2))
    && !/^(Open|Clear|Fullscreen)/.test(e.ariaLabel ?? ''); })
  .map(e => e.ariaLabel || e.innerText)"""
# The words that the first screen shows, without answers, names of models, figures, units, and what
# only a screen reader or the keyboard meets.
WORDS = """() => { const shown = [], range = document.createRange();
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) { range.selectNodeContents(nodes.currentNode);
    const { width, height, top, bottom } = range.getBoundingClientRect();
    const around = nodes.currentNode.parentElement;
    if (width > 2 && height > 2 && bottom > 0 && top < innerHeight && !around.closest('script,'
      + 'style, [class*="st-key-answer_"], [class*="st-key-spoken"], a[href^="#"],'
      + '[data-testid="stIconMaterial"]')
      && around.checkVisibility({ opacityProperty: true })) shown.push(nodes.currentNode.data); }
  return shown.join(' ').replace(/(EventGPT|Video-LLaVA|LLaVA-1.5) .demo.|\\bms\\b/g, '')
    .replace(/busy machine|Other work slowed [^.]*\\./g, '')  // what only a busy machine adds
    .match(/\\p{L}[\\p{L}\\p{N}'’.-]*/gu); }"""
CARDS = '.st-key-compare_cards [class*="st-key-card_"]'
# Whether the cards stand in rows of these lengths, with the answers of a row on one line, each
# with a colour of its own, and nothing wider than the window.
STANDS = """([selector, wanted]) => {
  const cards = [...document.querySelectorAll(selector)], rows = {};
  for (const card of cards) (rows[card.getBoundingClientRect().top] ??= []).push(
    card.querySelector('[class*="st-key-answer_"]').getBoundingClientRect().top);
  return Object.values(rows).map(tops => tops.length).join() === wanted.join()
    && Object.values(rows).every(tops => new Set(tops).size === 1)
    && new Set(cards.map(card => getComputedStyle(card).borderTopColor)).size === cards.length
    && document.documentElement.scrollWidth <= window.innerWidth; }"""
# What each frame shows: the verdict's head and the rows of bars; and how far the end of a growing
# answer that is higher than its box lies below the box.
WATCH = """() => { window.seen = []; window.below = []; const look = () => {
  window.seen.push([document.querySelector('.verdict h2')?.innerText ?? '',
    ...[...document.querySelectorAll('.run-row')].map(row => row.innerText)]);
  for (const box of document.querySelectorAll('[class*="st-key-stream_"]'))
    if (box.scrollHeight > box.clientHeight + 40) window.below.push(
      box.lastElementChild.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom);
  requestAnimationFrame(look); }; look(); }"""
# Whether every finished answer shows its beginning, and two are longer than their boxes.
BEGINNINGS = """() => {
  const boxes = [...document.querySelectorAll('[class*="st-key-answer_"]')];
  const long = boxes.filter(box => box.scrollHeight > box.clientHeight + 40);
  return long.length >= 2 && boxes.every(box => box.scrollTop == 0
    && box.querySelector('[data-testid="stText"]').getBoundingClientRect().top
      >= box.getBoundingClientRect().top); }"""


def wide(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(f"() => window.innerWidth == {width}")


@pytest.fixture
def shipped(tmp_path: Path) -> Iterator[str]:
    """The app as it is after a clone: the shipped checkpoints, nothing cached, no demo scenes."""
    yield from serve(tmp_path, {})


@pytest.mark.slow
def test_a_fresh_clone_answers_about_the_scene(context: BrowserContext, shipped: str) -> None:
    """The verdict, the bars and the cards are on the first screen, in this order."""
    visitor = visit(context, shipped)
    page = visitor.open().page
    wide(page, 1400)
    expect(page.locator(".verdict")).to_have_count(0)  # control: nothing ran
    visitor.run()
    answers = visitor.answers()
    assert len(answers) == 3 and all("road" in text.lower() for text in answers)
    badges = page.locator(".stMarkdownBadge").filter(visible=True)
    expect(badges.filter(has_text="cold run")).to_have_count(3)
    for card in page.locator('[class*="st-key-answer_"]').all():  # whole, above the fold
        place = card.bounding_box()
        assert place and place["y"] + place["height"] < 900
    assert len(page.evaluate(CONTROLS)) <= 25
    expect(page.locator(".st-key-compare_stages .run-bar")).to_have_count(3)
    page.keyboard.press("Control+Home")
    places = [page.locator(selector).first.bounding_box()
              for selector in (".verdict h2", '[class*="st-key-card_"]', ".run-row")]  # fmt: skip
    tops = [place["y"] for place in places if place]
    assert len(tops) == 3 and tops == sorted(tops)
    images = page.locator("[data-testid=stMain] img, [data-testid=stSidebarUserContent] img")
    expect(images).to_have_count(1)
    page.get_by_role("tab", name="What each model saw").click()
    page.get_by_text("1 frame").wait_for()
    assert all(image.get_attribute("alt") for image in images.all())

    visitor.run()
    assert visitor.answers() == answers
    page.keyboard.press("Control+Home")
    page.locator(visitor.button("decide")).first.wait_for()
    words = page.evaluate(WORDS)
    assert "Common" in words and "pedestrian" not in words and len(words) <= 120, words
    expect(page.get_by_text(re.compile(" ms without cache$"))).not_to_have_count(0)
    assert visitor.outside == []


@pytest.mark.slow
def test_bars_and_answers_grow_and_cancel_stops_all(visitor: Visitor) -> None:
    """A growing answer shows its end, a finished one its beginning."""
    page = visitor.open(f"{LONG}&compare_repeat=3").page
    wide(page, 1024)
    page.evaluate(WATCH)
    visitor.run()
    visitor.ready()
    seen, below = page.evaluate("[window.seen, window.below]")
    running = [rows for head, *rows in seen if head.startswith("Running: ")]
    # Any row: how long a random checkpoint answers differs from machine to machine.
    assert len({row for rows in running for row in rows if re.search("run . of 3$", row)}) > 3
    assert any("queued" in row for rows in running for row in rows)
    assert below and sum(abs(one) < 3 for one in below) > len(below) / 2
    expect(page.locator('[class*="st-key-answer_"]')).to_have_count(3)
    page.wait_for_function(BEGINNINGS)

    page = visitor.open(f"{LONG}&compare_repeat=10").page
    visitor.run()
    page.get_by_text("tok/s").first.wait_for()
    page.locator(visitor.button("cancel")).click()
    visitor.ready()
    expect(page.get_by_text(re.compile("Cancelled$")).first).to_be_visible()


@pytest.mark.slow
def test_answers_are_copied_and_dim_when_inputs_change(visitor: Visitor) -> None:
    page = visitor.open(SHORT).page
    visitor.run()
    answers = visitor.answers()
    page.get_by_role("button", name="All settings").press("Enter")
    expect(page.get_by_role("row", name="Feature cache cache on cache on")).to_be_visible()

    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown = [one.strip() for one in page.locator('[class*="st-key-answer_"]').all_text_contents()]
    assert len(shown) == 3 and all(shown)
    page.get_by_role("button", name="Copy the answers").click()
    page.wait_for_function(COPIED, arg=shown)

    board, said = page.locator(".st-key-compare_board"), page.get_by_text("Changed since these")
    expect(board).to_have_css("opacity", "1")  # control
    question = page.locator(".st-key-compare_question textarea")
    question.fill("Is **this** $x$ plain?")
    question.press("Tab")
    expect(said).to_contain_text("Changed since these runs: question.")
    expect(board).not_to_have_css("opacity", "1")
    assert visitor.answers() == answers
    page.keyboard.press("Control+Enter")
    expect(said).to_have_count(0)
    expect(page.get_by_text("Is **this** $x$ plain?").filter(visible=True)).to_have_count(2)
    visitor.ready()
    expect(board).to_have_css("opacity", "1")

    page.get_by_role("link", name="Models").click()
    page.get_by_role("heading", name="Models", exact=True).wait_for()
    page.go_back()
    expect(question).to_have_value("Is **this** $x$ plain?")
    expect(said).to_have_count(0)


@pytest.mark.slow
def test_six_cards_stand_in_rows_and_each_has_its_colour(visitor: Visitor) -> None:
    def query(labels: list[str]) -> str:
        return "?" + urlencode({"compare_models": labels, "compare_tokens": 8}, doseq=True)

    page = visitor.open(query(SIX)).page
    visitor.run()
    assert len([text for text in visitor.answers() if text.strip()]) == 6
    for width, rows in ((1400, [3, 3]), (900, [2, 2, 2]), (390, [1] * 6)):
        wide(page, width)
        page.wait_for_function(STANDS, arg=[CARDS, rows])
    wide(page, 1400)
    visitor.open(query(SIX[:4]))  # a control: four are two rows of two
    page.wait_for_function(STANDS, arg=[CARDS, [2, 2]])


def test_own_files_run_bad_ones_are_named_and_none_is_in_the_link(
    visitor: Visitor, tmp_path: Path
) -> None:
    page = visitor.open("?compare_tokens=5").page
    visitor.own_files()
    expect(page.get_by_text("Run needs a file: drop your own files")).to_be_visible()
    bad = tmp_path / "<img src=x onerror=alert(1)> **b** $x$.png"
    bad.write_bytes(b"no picture")
    upload = page.locator(".st-key-compare_files input[type=file]")
    good = [picture(tmp_path / name, seed) for seed, name in enumerate(("one.png", "two.png"))]
    upload.set_input_files([bad, *good])
    problem = page.locator("[class*=st-key-problem_file]")
    expect(problem).to_contain_text(f"'{bad.name}' is not a complete PNG or JPEG")
    page.get_by_alt_text("Preview of sample one.png, two.png.").wait_for()
    expect(page.get_by_text("Tiny eventgpt is left out.")).to_be_visible()
    visitor.run()
    answers = visitor.answers()
    page.get_by_role("tab", name="What each model saw").click()
    pictures = page.locator("[data-testid=stTabs] [data-testid=stImage] img")
    expect(pictures).to_have_count(2)
    sources = [image.get_attribute("src") for image in pictures.all()]
    assert len(answers) == len(sources) == 2 and all(sources) and "one.png" not in page.url

    upload.set_input_files(picture(tmp_path / "three.png", 3))  # earlier results stay
    page.get_by_text("three.png").first.wait_for()
    assert visitor.answers() == answers
    expect(pictures).to_have_count(2)
    assert [image.get_attribute("src") for image in pictures.all()] == sources
    assert visitor.outside == []
