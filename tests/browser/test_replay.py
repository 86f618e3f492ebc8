"""The replay of a comparison as a person sees it."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from engine.report import bundle
from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser


def letters(text: str) -> str:
    """Tiny models also say control characters, which the two places show in different ways."""
    return re.sub(r"[^A-Za-z0-9]", "", text)


@pytest.mark.slow
def test_a_replay_has_the_answers_of_the_cards_and_pauses_by_keyboard(
    visitor: Visitor, tmp_path: Path
) -> None:
    page = visitor.open("?compare_tokens=12&compare_replay=true").page
    visitor.run()
    visitor.ready()
    frame = page.frame_locator("iframe")
    expect(frame.locator(".card")).to_have_count(len(visitor.answers()))
    texts = frame.locator(".card > .answer").all_text_contents()
    assert list(map(letters, texts)) == list(map(letters, visitor.answers()))
    frame.get_by_role("button", name="at 0.1x").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(frame.get_by_role("button", name="Continue")).to_be_visible()
    held = frame.locator(".choose span").text_content()
    page.evaluate(
        "async () => { for (let n = 0; n < 10; n++) await new Promise(requestAnimationFrame); }"
    )
    assert frame.locator(".choose span").text_content() == held
    page.keyboard.press("Space")
    expect(frame.locator(".card > .answer")).to_have_text(texts, timeout=60_000)  # its end
    assert frame.locator(".choose span").text_content() != held
    assert visitor.outside == []
    with page.expect_download() as download:
        page.locator(".st-key-history_bundle button").filter(visible=True).click()
    shutil.unpack_archive(download.value.path(), tmp_path, "zip")
    page.goto((tmp_path / "stagescope" / bundle.INDEX).as_uri())
    expect(page.locator("#sample .card > .answer")).to_have_text(texts)
    expect(page.locator("#sample .media img").first).to_have_js_property("complete", True)
