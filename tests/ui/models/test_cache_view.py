"""The cache per checkpoint, under the names of models.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from engine.models.checkpoint import ModelEntry
from engine.palette import FAMILY_COLOURS, NEUTRAL
from engine.pipeline.feature_cache import CacheState
from engine.verify import certificates
from tests.report.test_card_rows import ENTRY
from ui.models import cache_view

FIRST, TWIN = replace(ENTRY, label="One"), replace(ENTRY, name="n", label="Two")
LAST = replace(ENTRY, name="last", label="Last", family="eventgpt")
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
    found = cache_view.parts(state(held), [FIRST, TWIN, LAST])
    assert [part.name for part in found[:2]] == ["One, Two", "Last"]
    assert found[2].name == f"{cache_view.UNKNOWN} (zz9)" and found[2].colour == NEUTRAL
    assert [part.size for part in found[:3]] == [2**20, 20, 10]
    assert found[1].colour == FAMILY_COLOURS["eventgpt"]


def test_the_bar_ends_at_the_limit() -> None:
    now = state({"bb": (1, 1000)})
    found = cache_view.parts(now, [LAST])
    assert [(part.name, part.size) for part in found] == [
        ("Last", 1000),
        (cache_view.INDEX, 1024),
        ("free", 2**20 - 2024),
    ]
    over = state({"bb": (1, 2**21)})
    assert cache_view.parts(over, [LAST])[-1].size == 0


def test_the_hit_rate_says_of_how_many_reads_and_is_no_number_without_any() -> None:
    assert cache_view.hit_rate(state({})).startswith("no reads")
    assert cache_view.hit_rate(state({}, hits=3, misses=1)).startswith("75% (3 of 4 reads")
    assert cache_view.hit_rate(state({}, misses=1)).startswith("0% (0 of 1 read ")
