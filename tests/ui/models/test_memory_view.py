"""The memory of a device: its models in the file's order, and the rest; the cache per checkpoint,
under the names of models.toml.  What a job says of itself, and that nobody starts a second one for
the same model."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from engine.jobs import queue as jobs
from engine.jobs.model_work import ModelJob
from engine.jobs.queue import Jobs
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


CANCEL = threading.Event()
CANCEL.set()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Loading … 3 s"),
        (
            {"step": "hash", "progress": (2**30, 2**31)},
            "Loading: 1.0 GiB of 2.0 GiB read for the hash … 3 s",
        ),
        ({"step": "weights", "progress": (7, 1200)}, "Loading: 7 of 1,200 weights … 3 s"),
        ({"_cancel": CANCEL}, "Cancelling … 3 s"),
        ({"action": "unload"}, "Unloading … 3 s"),
    ],
)
def test_what_a_job_does_now(changes: dict[str, object], words: str) -> None:
    started = {"entry": ENTRY, "state": "loading", "_started": 1.0, "_ended": 4.4}
    assert memory_view.doing(ModelJob(**started | changes)) == words


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """A queue whose worker never starts."""
    found = Jobs()
    monkeypatch.setattr(found, "_start", lambda: None)
    monkeypatch.setattr(jobs, "manager", lambda: found)
    yield found
