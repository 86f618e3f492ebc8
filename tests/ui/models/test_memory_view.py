"""The memory of a device: its models in the file's order, and the rest; the cache per checkpoint,
under the names of models.toml."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from engine.machine.device import Memory
from engine.models.checkpoint import ModelEntry
from engine.pipeline.feature_cache import CacheState
from engine.verify import certificates
from tests.report.test_card_rows import ENTRY
from ui.models import memory_view

GIB = 2**30
SLY = '<img src=x onerror="1">'
CPU = Memory("cpu", "system memory", 32 * GIB, 20 * GIB)
FIRST, TWIN = replace(ENTRY, label="One"), replace(ENTRY, name="n", label="Two")
DIGESTS = {"m": "aa", "n": "aa", "last": "bb"}


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
