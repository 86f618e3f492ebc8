"""Own files in a browser: checked when dropped; bad ones are named, good ones and results stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.conftest import picture

pytestmark = pytest.mark.slow

MARKUP = "<img src=x onerror=alert(1)> **b** $x$.png"


def drop(page: Page, *paths: Path) -> None:
    page.locator(".st-key-compare_files input[type=file]").set_input_files(list(paths))


@pytest.fixture
def page(visitor: Visitor) -> Page:
    page = visitor.open("?compare_tokens=5").page
    page.get_by_text("Own files", exact=True).click()
    return page


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_bad_files_are_named_and_the_good_ones_run(
    page: Page, visitor: Visitor, tmp_path: Path
) -> None:
    expect(page.get_by_text("Run needs a file that can be used")).to_be_visible()
    drop(page, written(tmp_path / "empty.png", b""), written(tmp_path / MARKUP, b"no picture"))
    problems = page.locator("[class*=st-key-problem_file]")
    expect(problems).to_have_count(2)
    expect(problems.first).to_have_text("'empty.png' is empty (0 bytes): export it again.")
    expect(problems.nth(1)).to_contain_text(f"'{MARKUP}' is not a complete PNG or JPEG")
    expect(page.get_by_text("Run needs a file that can be used")).to_be_visible()
    expect(page.locator(".st-key-compare_run button")).to_be_disabled()

    drop(page, picture(tmp_path / "one.png", 1), picture(tmp_path / "two.png", 2))
    left_out = page.locator("[class*=st-key-notice_left]")
    expect(left_out).to_have_text(
        "Tiny eventgpt is left out. Needs event images or a raw .npy.", timeout=30_000
    )
    visitor.run()
    visitor.ready()
    cards = page.locator("[class*=st-key-answer_]")
    expect(cards).to_have_count(2)
    answers, pictures = cards.all_inner_texts(), sources(page)
    assert len(pictures) == 2 and all(pictures)

    drop(page, written(tmp_path / "late.png", b""))  # earlier results stay, with their pictures
    expect(page.get_by_text("'late.png' is empty")).to_be_visible(timeout=30_000)
    drop(page, picture(tmp_path / "three.png", 3))
    visitor.ready()
    assert cards.all_inner_texts() == answers and sources(page) == pictures
    expect(page.locator("[data-testid=stException]")).to_have_count(0)


def sources(page: Page) -> list[str]:
    """The pictures of the cards."""
    images = page.locator("[class*=st-key-seen_] img")
    return [str(image.get_attribute("src")) for image in images.all()]
