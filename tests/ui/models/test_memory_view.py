"""The memory of a device: its models in the file's order, and the rest; the cache per checkpoint,
under the names of models.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from engine.machine.device import Memory
from engine.models.checkpoint import ModelEntry
from engine.pipeline import feature_cache
from engine.pipeline.feature_cache import CacheState
from engine.verify import certificates
from tests.report.test_card_rows import ENTRY
from ui.models import memory_view
from ui.widgets import preparation

GIB = 2**30
SLY = '<img src=x onerror="1">'
CPU = Memory("cpu", "system memory", 32 * GIB, 20 * GIB)
FIRST, TWIN = replace(ENTRY, label="One"), replace(ENTRY, name="n", label="Two")
LAST = replace(ENTRY, name="last", label="Last")
DIGESTS = {"m": "aa", "n": "aa", "last": "bb"}


def test_sizes_add_up_to_what_is_used_in_a_fixed_order() -> None:
    first, second = replace(ENTRY, name="a", label="A"), replace(ENTRY, name="b", label="B")
    gone = replace(ENTRY, name="c", label="C")
    held = {gone: GIB, second: 2 * GIB, first: 4 * GIB}
    assert memory_view.sizes(CPU, held, [first, second]) == [
        ("A", "4.0 GiB"),
        ("B", "2.0 GiB"),
        ("C", "1.0 GiB"),
        (memory_view.OTHER_USE, "5.0 GiB"),
    ]


def test_models_that_share_pages_with_a_file_leave_no_negative_rest() -> None:
    found = memory_view.sizes(CPU, {ENTRY: 13 * GIB}, [ENTRY])
    assert found[-1] == (memory_view.OTHER_USE, "0 bytes")


@pytest.mark.parametrize(
    ("place", "device", "there"),
    [
        ("cpu", "cpu", True),
        ("cuda", "cuda:0", True),
        ("cuda:1", "cuda:1", True),
        ("cuda:1", "cuda:0", False),
        ("cuda", "cpu", False),
        ("mps", "cpu", True),
    ],
)
def test_where_a_model_keeps_its_weights(place: str, device: str, there: bool) -> None:
    assert memory_view._is_on(Memory(device, "", 0, 0), place) is there


def test_facts_let_nothing_in_and_break_paths_at_slashes() -> None:
    html = memory_view.facts([("From", f"/a/b{SLY}"), (SLY, "1")], SLY)
    assert "<img" not in html and html.count("&lt;img") == 3
    assert "<dd>/<wbr>a/<wbr>b&lt;img" in html


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
    assert memory_view.cached_sizes(state(held), [FIRST, TWIN, LAST]) == [
        ("One, Two", "1.0 MiB"),
        ("Last", "20 bytes"),
        (f"{memory_view.UNKNOWN} (zz9)", "10 bytes"),
        (memory_view.INDEX, "1.0 KiB"),
    ]


def test_the_bar_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def page() -> None:
        from ui.models import memory_view

        memory_view.cache([])

    over = SimpleNamespace(state=lambda: state({"bb": (1, 2**21)}))
    monkeypatch.setattr(feature_cache, "shared", lambda: over)
    preparation.cache_code().result()
    at = AppTest.from_function(page).run()
    (bar,) = at.get("progress")
    assert not at.exception and bar.proto.value == 100
    assert "2.0 MiB of 1.0 MiB" in bar.proto.text.replace("\\", "")


def test_the_hit_rate_says_of_how_many_reads_and_is_no_number_without_any() -> None:
    assert memory_view.hit_rate(state({})).startswith("no reads")
    assert memory_view.hit_rate(state({}, hits=3, misses=1)).startswith("75% (3 of 4 reads")
    assert memory_view.hit_rate(state({}, misses=1)).startswith("0% (0 of 1 read ")
