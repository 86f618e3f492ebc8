"""The cache per checkpoint, under the names of models.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from engine.models.checkpoint import ModelEntry
from engine.pipeline import feature_cache
from engine.pipeline.feature_cache import CacheState
from engine.verify import certificates
from tests.report.test_card_rows import ENTRY
from ui.models import cache_view
from ui.widgets import preparation

FIRST, TWIN = replace(ENTRY, label="One"), replace(ENTRY, name="n", label="Two")
LAST = replace(ENTRY, name="last", label="Last")
DIGESTS = {"m": "aa", "n": "aa", "last": "bb"}


@pytest.fixture(autouse=True)
def digests(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(entry: ModelEntry) -> str | None:
        return DIGESTS.get(entry.name)

    monkeypatch.setattr(certificates, "digest_now", known)


def state(checkpoints: Mapping[str, tuple[int, int]], hits: int = 0, misses: int = 0) -> CacheState:
    entries = sum(number for number, _ in checkpoints.values())
    size = sum(size for _, size in checkpoints.values())
    return CacheState(Path("/c"), entries, size + 1024, 2**20, hits, misses, checkpoints)


def test_checkpoints_in_the_files_order_then_those_it_does_not_name() -> None:
    held = {"zz9": (1, 10), "bb": (2, 20), "aa": (1200, 2**20)}
    assert cache_view.sizes(state(held), [FIRST, TWIN, LAST]) == [
        ("One, Two", "1.0 MiB"),
        ("Last", "20 bytes"),
        (f"{cache_view.UNKNOWN} (zz9)", "10 bytes"),
        (cache_view.INDEX, "1.0 KiB"),
    ]


def test_the_bar_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def page() -> None:
        from ui.models import cache_view

        cache_view.show([])

    over = SimpleNamespace(state=lambda: state({"bb": (1, 2**21)}))
    monkeypatch.setattr(feature_cache, "shared", lambda: over)
    preparation.cache_code().result()
    at = AppTest.from_function(page).run()
    (bar,) = at.get("progress")
    assert not at.exception and bar.proto.value == 100
    assert "2.0 MiB of 1.0 MiB" in bar.proto.text.replace("\\", "")


def test_the_hit_rate_says_of_how_many_reads_and_is_no_number_without_any() -> None:
    assert cache_view.hit_rate(state({})).startswith("no reads")
    assert cache_view.hit_rate(state({}, hits=3, misses=1)).startswith("75% (3 of 4 reads")
    assert cache_view.hit_rate(state({}, misses=1)).startswith("0% (0 of 1 read ")
