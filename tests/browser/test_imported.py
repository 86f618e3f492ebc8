"""Published files as a person meets them: dropped, judged, corrected, kept under a link."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SETTLED, Visitor
from tests.published.read import synthetic as made

pytestmark = pytest.mark.browser
IMPORT = ".st-key-published_import"
MARKS = "svg.marks, canvas.marks"
SIGN = '<img src="http://elsewhere.example/x.png"> ![x](http://elsewhere.example/y.png)'


def dropped() -> list[dict[str, object]]:
    rows = made.flat()
    for row in rows:
        row["id"], row["egpt"] = SIGN, f"{SIGN} {made.SENTENCE}"
    files = {"legacy.json": made.to_bytes(made.legacy()), "hostile.json": made.to_bytes(rows),
             "torn.json": b'{"results": ['}  # fmt: skip
    return [
        {"name": name, "mimeType": "application/json", "buffer": data}
        for name, data in files.items()
    ]


def drop(page: Page) -> None:
    page.locator(f'{IMPORT} input[type="file"]').set_input_files(dropped())
    page.get_by_text("3 files: 2 with results, 1 that cannot be used").wait_for()


def switch(page: Page, name: str, control: str = "view") -> None:
    page.locator(f".st-key-published_{control}").get_by_text(name, exact=True).click()


def test_files_are_dropped_judged_kept_and_ask_for_nothing(visitor: Visitor, other: Page) -> None:
    page = visitor.page
    page.goto(visitor.server + "published")
    drop(page)
    expect(page.get_by_text("torn.json is not JSON")).to_be_visible()
    page.get_by_text("The prompt is counted as output.").click()
    # By keyboard: the switch still moves while the finding opens.
    page.locator('[class*="st-key-published_show_"] input').first.press("Space")
    page.get_by_text("tokens_recorded").wait_for()
    expect(page.locator('[data-testid="stDataFrame"]')).to_be_visible()
    assert "published_" not in page.url  # no link reopens it

    switch(page, "Figures")
    table = page.locator("table.figures").nth(1)
    expect(table).to_contain_text("LLaVA-1.5 (videollava)")
    expect(page.locator(MARKS)).to_have_count(2)
    switch(page, "As recorded", "values")
    expect(table).not_to_contain_text("LLaVA-1.5 (videollava)")
    for name, words in (("Claims", "within 10 %"), ("Acceptance", "Acceptance by token ids")):
        switch(page, name)
        page.get_by_text(words).first.wait_for()
        page.locator(SETTLED).wait_for()
        expect(page.locator('img[src*="elsewhere"]')).to_have_count(0)
    page.get_by_role("button", name="Keep as a set").click()
    page.get_by_label("Name of the set").fill("from a browser")
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_role("button", name="Remove this set").wait_for()
    assert re.search(r"published_sets=from", page.url)
    other.goto(page.url)
    other.get_by_text("Acceptance by token ids").first.wait_for()
    expect(other.get_by_text("As recorded", exact=True)).to_be_visible()
    assert visitor.outside == []
