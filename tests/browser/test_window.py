"""The event rates of a long recording: a person drags, moves, clicks and types the window."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import SETTLED, Visitor

pytestmark = pytest.mark.browser
SECONDS = 10


@pytest.fixture
def page(fresh: Callable[..., Visitor], tiny_folder: Path, tmp_path: Path) -> Page:
    """Compare with a recording of 10 s and a model that is shown its event images."""
    root = tmp_path / "drive"
    (root / "event_npy").mkdir(parents=True)
    rng = np.random.default_rng(0)
    events = np.zeros(20_000, [("x", "<u2"), ("y", "<u2"), ("t", "<i8"), ("p", "u1")])
    events["x"], events["y"] = rng.integers(0, 60, (2, len(events)))
    events["t"] = np.linspace(0, SECONDS * 1e6 - 1, len(events))
    np.save(root / "event_npy" / "a.npy", events)
    (root / "EventGPT_Instruction_Subset.json").write_text('[{"event_data": "a.npy"}]')
    variables = {
        "STAGESCOPE_MODELS": str(tiny_folder / "models.toml"),
        "STAGESCOPE_DATASETS": os.fspath(root),
    }
    query = f"?compare_root={root}&compare_models=Tiny+eventgpt&compare_tokens=5"
    return fresh(variables).open(query).page


def chart(page: Page) -> Locator:
    found = page.locator('[class*="st-key-compare_rates_chart"] .stVegaLiteChart')
    found.locator(":is(canvas, svg)").first.wait_for()
    page.locator(SETTLED).wait_for()
    return found


def drag(page: Page, begin: float, end: float) -> None:
    """With the mouse, from one share of the chart's width to another."""
    box = chart(page).bounding_box()
    assert box is not None
    places = [box["x"] + box["width"] * share for share in (begin, end)]
    y = box["y"] + box["height"] * 0.35
    page.mouse.move(places[0], y)
    page.mouse.down()
    page.mouse.move(sum(places) / 2, y, steps=5)
    page.mouse.move(places[1], y, steps=5)
    page.mouse.up()


def said(page: Page) -> tuple[float, float]:
    """Start and length in seconds, from the sentence beside the chart."""
    words = page.locator(".st-key-small_rates").inner_text()
    found = re.search(r"the window ([0-9.]+)(m?s)\+([0-9.]+)(m?s) is shown", words)
    assert found, words
    units = {"s": 1.0, "ms": 0.001}
    return float(found[1]) * units[found[2]], float(found[3]) * units[found[4]]


def open_field(page: Page) -> Locator:
    page.get_by_text("Window, split, perturb").click()
    field = page.get_by_role("textbox", name="Window")
    field.wait_for()
    return field


def test_a_dragged_window_reaches_the_field_the_link_and_the_run(page: Page) -> None:
    sentence = page.locator(".st-key-small_rates")
    expect(sentence).to_contain_text("20,000 events in 10s; all of them are shown.")
    drag(page, 0.5, 0.75)
    expect(sentence).to_contain_text("the window ")
    start, length = said(page)
    assert 4 < start < 5.5 and 2.2 < length < 3.2
    text = sentence.inner_text().split("window ")[1].split(" is")[0]
    assert f"compare_part={text.replace('+', '%2B')}" in page.url
    expect(open_field(page)).to_have_value(text)

    drag(page, 0.6, 0.4)  # from inside: the window moves and keeps its length
    expect(sentence).not_to_contain_text(text)
    moved, same = said(page)
    assert 1.5 < start - moved < 2.8 and abs(same - length) < 0.05

    page.locator(".st-key-compare_run button:not([disabled])").click()
    expect(page.get_by_text(re.compile(r"raw events: .* from [0-9.]+s on")).first).to_be_visible()
    page.get_by_text("Done").first.wait_for()
    shown = page.get_by_text(re.compile(r"^window .*\+.*")).first  # a chip of the settings
    expect(shown).to_be_visible()


def test_a_click_moves_the_window_and_a_click_without_one_changes_nothing(page: Page) -> None:
    sentence = page.locator(".st-key-small_rates")
    middle = {"x": chart(page).bounding_box()["width"] * 0.5, "y": 60}  # type: ignore[index]
    chart(page).click(position=middle)  # type: ignore[arg-type]
    page.wait_for_timeout(1000)  # the click draws the chart again, which nothing on the page tells
    page.locator(SETTLED).wait_for()
    expect(sentence).to_contain_text("all of them are shown")
    drag(page, 0.8, 0.85)
    expect(sentence).to_contain_text("the window ")
    before, length = said(page)
    text = sentence.inner_text()
    chart(page).click(position=middle)  # type: ignore[arg-type]
    expect(sentence).not_to_have_text(text)
    after, same = said(page)
    assert after < before - 2 and same == length
    page.get_by_role("button", name="Whole recording").click()
    expect(sentence).to_contain_text("all of them are shown")
    assert "compare_part" not in page.url


def test_the_window_is_typed_and_marked_with_the_keyboard_alone(page: Page) -> None:
    field = open_field(page)
    field.focus()
    page.keyboard.type("2.5s+500ms")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-small_rates")).to_contain_text("the window 2.5s+500ms is shown")
    marked = page.locator('[aria-label*="the window 2.5s+500ms is marked"]')
    expect(marked.first).to_be_attached()
    expect(page.get_by_text(re.compile("raw events: .* from 2.5s on")).first).to_be_visible()
    field.fill("soon")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The window is 'soon'").first).to_be_visible()
    expect(page.locator(".st-key-compare_run button")).to_be_disabled()
