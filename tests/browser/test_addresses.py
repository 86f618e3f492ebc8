"""Odd addresses in a real browser: whatever a link says, no page shows an exception."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.addresses import PAGES, addresses, query
from tests.browser.conftest import PATIENCE_MS, SETTLED, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.slow]
BY_HAND = (
    "%s_models=a&%s_models=a",
    "%s_root=%%00&%s_root=..%%2F..",
    "%s_frames=%%ff%%fe&%s_frames",
    "=&&%s_job=&=x&%s_job=%%",
)


def exceptions(page: Page, address: str) -> list[str]:
    """Texts of exceptions that the page at this address shows once it has settled."""
    page.goto(address)
    page.locator(SETTLED).wait_for(timeout=PATIENCE_MS)
    return page.locator('[data-testid="stException"]').all_inner_texts()


@pytest.mark.parametrize("name", PAGES)
def test_no_address_ends_in_an_exception(visitor: Visitor, name: str) -> None:
    found = [query(address) for address in addresses(name, 2)]
    found += ["?" + form % (name, name) for form in BY_HAND]
    path = "" if name == "compare" else name
    shown = {one: exceptions(visitor.page, f"{visitor.server}{path}{one}") for one in found}
    assert not {one: told for one, told in shown.items() if told}
