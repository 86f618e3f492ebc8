"""The gallery and the keys that step through samples, in a browser and with 5,000 samples."""

from __future__ import annotations

import json
import re
import time
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS, Visitor
from tests.conftest import picture

pytestmark = pytest.mark.slow

MANY, PER_SEQUENCE = 5_000, 100
FIRST_PAINT_S = 2.0
LOADED = """(count) => {
  const found = [...document.querySelectorAll('[role=dialog] img')];
  return found.length >= count && found.every(one => one.complete && one.naturalWidth > 0);
}"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A query that opens a dataset of MANY samples with an event image each."""
    root, records = tmp_path_factory.mktemp("many"), list[dict[str, object]]()
    for number in range(MANY):
        sequence = f"drive_{number // PER_SEQUENCE:02d}"
        name = f"{sequence}/{number:06d}_0.png"
        picture(root / "event_image" / name, number % 60)
        talk = [{"from": "human", "value": "<event>\nWhy?"}, {"from": "gpt", "value": "So."}]
        records.append({"id": f"sample-{number:04d}", "event_image": [name], "conversations": talk})
    (root / "EventGPT_Instruction_Subset.json").write_text(json.dumps(records))
    return f"?compare_root={quote(str(root))}"


@pytest.fixture
def page(visitor: Visitor, many: str) -> Page:
    return visitor.open(many).page


def open_gallery(page: Page, pictures: int = 1) -> float:
    """Opens it; the seconds until that many pictures are painted."""
    start = time.monotonic()
    page.locator(".st-key-compare_gallery button").click()
    page.locator(".st-key-gallery_cell_0").wait_for()
    page.wait_for_function(LOADED, arg=pictures)
    return time.monotonic() - start


def waiting() -> float:
    """How many times longer work takes here than its CPU time; 1 on an idle machine."""
    start, used = time.monotonic(), time.process_time()
    while time.process_time() - used < 0.2:
        pass
    return max(1.0, (time.monotonic() - start) / (time.process_time() - used))


def names(page: Page) -> list[str]:
    return page.locator("[class*=st-key-compare_gallery_choose] button").all_inner_texts()


def test_the_gallery_of_5000_samples_paints_within_two_seconds(
    browser: Browser, server: str, many: str
) -> None:
    """The best of three visits; on a busy machine the bound is longer by what others take."""
    took = []
    for _ in range(3):
        waits = waiting()
        visitor = Visitor(browser.new_page(), server)
        visitor.page.set_default_timeout(PATIENCE_MS)
        visitor.open(many)
        took.append(open_gallery(visitor.page) / max(waits, waiting()))
        visitor.page.wait_for_function(LOADED, arg=24)
        assert names(visitor.page)[:2] == ["sample-0000", "sample-0001"]
        visitor.page.close()
    assert min(took) < FIRST_PAINT_S, took


def test_a_search_and_a_page_lead_to_a_sample_and_a_link(page: Page) -> None:
    open_gallery(page)
    expect(page.get_by_text("5,000 samples, page")).to_be_visible(timeout=PATIENCE_MS)
    pages = page.locator(".st-key-compare_gallery_page input")
    pages.fill("209")
    pages.press("Enter")
    expect(page.get_by_role("button", name="sample-4999", exact=True)).to_be_visible(
        timeout=PATIENCE_MS
    )
    search = page.locator(".st-key-compare_gallery_words input")
    search.fill("sample-42")
    search.press("Enter")
    expect(page.get_by_text("100 samples of 5,000, page")).to_be_visible(timeout=PATIENCE_MS)
    page.wait_for_function(LOADED, arg=24)
    assert all(image.get_attribute("alt") for image in page.locator("[role=dialog] img").all())
    box = page.locator(".st-key-gallery_cell_3 img").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 20, box["y"] + 20)  # the picture is part of the button
    expect(page.locator("[role=dialog]")).to_have_count(0, timeout=PATIENCE_MS)
    page.wait_for_url(re.compile("compare_sample=.*sample-4203"))
    open_gallery(page, 24)  # at the page of the chosen sample
    expect(page.locator(".st-key-compare_gallery_page input")).to_have_value("176")
    expect(page.get_by_role("button", name="sample-4203", exact=True)).to_be_visible(
        timeout=PATIENCE_MS
    )
    page.keyboard.press("Escape")
    expect(page.locator("[role=dialog]")).to_have_count(0, timeout=PATIENCE_MS)


def test_answers_keep_their_look_while_the_gallery_opens_and_closes(visitor: Visitor) -> None:
    page = visitor.open().page
    visitor.run()
    assert visitor.answers()
    shown = "one => getComputedStyle(one).display"
    assert page.locator(".verdict-models").evaluate(shown) == "grid"
    open_gallery(page)
    page.keyboard.press("Escape")
    expect(page.locator("[role=dialog]")).to_have_count(0, timeout=PATIENCE_MS)
    assert page.locator(".verdict-models").evaluate(shown) == "grid"


def test_a_filter_by_model_leaves_nothing_that_it_cannot_use(page: Page) -> None:
    open_gallery(page)
    page.locator(".st-key-compare_gallery_usable input").click()
    page.get_by_role("option", name="Tiny llava", exact=True).click()
    expect(page.get_by_text("No sample matches")).to_be_visible(timeout=PATIENCE_MS)


def test_keys_step_through_samples_but_not_while_typing(page: Page) -> None:
    for key, wanted in (("n", "0001"), ("n", "0002"), ("p", "0001")):
        page.keyboard.press(key)
        page.wait_for_url(re.compile(f"compare_sample=.*sample-{wanted}"))
    question = page.locator(".st-key-compare_question textarea")
    question.fill("")
    question.press_sequentially("nnpg")
    expect(question).to_have_value("nnpg")
    page.wait_for_timeout(500)
    assert "sample-0001" in page.url
    expect(page.locator("[role=dialog]")).to_have_count(0, timeout=PATIENCE_MS)
    page.evaluate("document.activeElement.blur()")
    page.wait_for_url(re.compile("compare_question=nnpg"))
    page.keyboard.press("g")
    expect(page.locator("[role=dialog]")).to_be_visible(timeout=PATIENCE_MS)
