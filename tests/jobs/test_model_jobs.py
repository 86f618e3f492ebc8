"""Loading, unloading and hashing as jobs: what a page sees of them, and what Cancel leaves."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine import settings
from engine.jobs.model_work import ModelJob
from engine.models import checkpoint_files, registry
from engine.models.checkpoint import ModelEntry
from engine.models.checkpoint_files import Step

pytestmark = pytest.mark.loads

Report = tuple[Step, int, int]


@pytest.fixture
def entry(tiny_models: Path) -> Iterator[ModelEntry]:
    found = registry.entry("tiny-llava")
    registry.unload(found)
    yield found
    registry.unload(found)


def reports(entry: ModelEntry) -> list[Report]:
    """All that a load says of its progress."""
    told: list[Report] = []
    with checkpoint_files.reported_to(lambda *report: told.append(report)):
        registry.load(entry)
    return told


@pytest.mark.parametrize(("step", "action"), [("hash", "load"), ("weights", "load"), ("hash",) * 2])
def test_cancel_ends_at_the_next_report_and_leaves_nothing(
    entry: ModelEntry, step: Step, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ModelJob(entry=entry, action="hash" if action == "hash" else "load")
    follow = job._follow

    def cancelled_there(now: Step, done: int, total: int) -> None:
        if now == step:
            job.cancel()
        follow(now, done, total)

    monkeypatch.setattr(job, "_follow", cancelled_there)
    job.work()
    assert job.state == "cancelled" and "nothing is kept" in job.error
    assert job.step == step and entry not in registry.resident()
    known = (settings.load().cache_dir / checkpoint_files.MEMO).exists()
    assert known == (step == "weights")  # a hash that was finished is kept, half of one never
    again = ModelJob(entry=entry)
    again.work()
    assert again.state == "done" and entry in registry.resident()


def test_what_cannot_be_loaded_is_refused_before_it_is_hashed(entry: ModelEntry) -> None:
    other = replace(entry, family="video_llava")
    job = ModelJob(entry=other)
    job.work()
    assert job.state == "failed" and "model_type" in job.error and job.step is None
