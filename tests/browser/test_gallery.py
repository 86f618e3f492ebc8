"""The gallery and the keys that step through samples, in a browser."""

import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SETTLED, Visitor
from tests.conftest import picture

pytestmark = [pytest.mark.browser, pytest.mark.loads]

MANY, PER_SEQUENCE = 300, 100
SHOWN = 24  # pictures of a page of the gallery
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


def open_gallery(page: Page) -> None:
    page.locator(".st-key-compare_gallery button").click()
    page.locator(".st-key-gallery_cell_0").wait_for()
    page.wait_for_function(LOADED, arg=1)


@pytest.mark.slow
def test_search_click_and_keys_lead_to_one_of_many_samples(visitor: Visitor, many: str) -> None:
    page = visitor.open(many).page
    dialog = page.locator("[role=dialog]")
    open_gallery(page)
    names = page.locator("[class*=st-key-compare_gallery_choose] button")
    assert names.all_inner_texts()[:2] == ["sample-0000", "sample-0001"]
    page.get_by_role("button", name="Page 13").click()
    expect(page.get_by_role("button", name="sample-0299", exact=True)).to_be_visible()
    search = page.locator(".st-key-compare_gallery_words input")
    search.fill("sample-02")
    search.press("Enter")
    expect(page.get_by_text("100 samples of 300")).to_be_visible()
    page.wait_for_function(LOADED, arg=SHOWN)
    expect(dialog.locator("img")).to_have_count(SHOWN)  # the others are not read
    assert all(image.get_attribute("alt") for image in dialog.locator("img").all())
    box = page.locator(".st-key-gallery_cell_3 img").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 20, box["y"] + 20)  # the picture is part of the button
    expect(dialog).to_have_count(0)
    page.wait_for_url(re.compile("compare_sample=.*sample-0203"))
    open_gallery(page)  # at the page of the chosen sample
    expect(page.get_by_role("button", name="Page 9")).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("button", name="sample-0203", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    for key, wanted in (("n", "0204"), ("n", "0205"), ("p", "0204")):
        page.keyboard.press(key)
        page.wait_for_url(re.compile(f"compare_sample=.*sample-{wanted}"))
    question = page.locator(".st-key-compare_question textarea")
    question.fill("")
    question.press_sequentially("nnpg")  # typed, not obeyed
    page.evaluate("document.activeElement.blur()")
    page.wait_for_url(re.compile("compare_question=nnpg"))
    page.locator(SETTLED).wait_for()
    assert "sample-0204" in page.url
    expect(dialog).to_have_count(0)
    page.keyboard.press("g")
    dialog.wait_for()
    page.locator(".st-key-compare_gallery_usable input").click()
    page.get_by_role("option", name="Tiny llava", exact=True).click()
    expect(page.get_by_text("No sample matches")).to_be_visible()
