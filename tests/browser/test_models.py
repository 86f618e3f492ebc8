"""The Models page as a person meets it: load, unload, clear the cache, come back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser
NAME = "tiny-llava"


def button(page: Page, key: str) -> Locator:
    """The button a person sees; Streamlit keeps a hidden twin of those with a help text."""
    return page.locator(f".st-key-models_{key} button").filter(visible=True)


@pytest.fixture
def visitor(tiny_folder: Path, fresh: Callable[..., Visitor]) -> Visitor:
    """Of a server on which nobody has loaded a variant, which has a card while it is loaded."""
    return fresh({"STAGESCOPE_MODELS": str(tiny_folder / "models.toml")})


def test_unload_load_and_clear_the_cache(visitor: Visitor) -> None:
    page = visitor.open("?compare_tokens=12").page
    visitor.run()
    visitor.answers()
    page.get_by_role("link", name="Models").click()
    card = page.locator(f".st-key-card_llava_{NAME}")
    expect(card.get_by_text("loaded on cpu", exact=True)).to_be_visible()
    memory = page.locator(".st-key-memory_cpu")
    expect(memory.get_by_role("img")).to_have_attribute("aria-label", re.compile("Tiny llava"))

    button(page, f"unload_{NAME}").click()
    expect(card.get_by_text("ready to load", exact=True)).to_be_visible()
    expect(card.get_by_text("of weights freed")).to_be_visible()
    expect(memory.get_by_role("img")).not_to_have_attribute("aria-label", re.compile("Tiny llava"))

    button(page, f"load_{NAME}").click()
    expect(card.get_by_text("loaded on cpu", exact=True)).to_be_visible()
    expect(memory.get_by_role("img")).to_have_attribute("aria-label", re.compile("Tiny llava"))

    clear = page.locator(".st-key-models_clear button").first
    clear.click()
    expect(page.get_by_text(re.compile(r"^Clear all \d+ entries \(.*\?"))).to_be_visible()
    button(page, "clear_yes").click()
    expect(page.get_by_text(re.compile(r"^Cleared all \d+ entries"))).to_be_visible()
    expect(clear).to_be_disabled()
    assert visitor.outside == []


def test_back_and_forward_lead_where_they_should(visitor: Visitor) -> None:
    page = visitor.open("?compare_tokens=12").page
    page.get_by_role("link", name="Models").click()
    expect(page.get_by_role("heading", name="Feature cache")).to_be_visible()
    page.go_back()
    visitor.ready()
    page.go_forward()
    expect(page.get_by_role("heading", name="Feature cache")).to_be_visible()
    expect(page.locator('[class*="st-key-card_"]')).to_have_count(3)
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)
