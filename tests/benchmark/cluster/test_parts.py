"""The smaller parts: serialization, the worker in an actor."""

from pathlib import Path
from typing import Any

import pytest

from engine.benchmark.cluster.worker import Worker, pack, versions
from engine.media import dataset
from engine.models import registry
from engine.storage import provenance
from engine.storage.plan import Plan
from engine.types import DecodeConfig
from tests import recordings
from tests.benchmark.cluster.pools import one_thread

__all__ = ["one_thread"]


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path, one_thread: None) -> Path:
    return recordings.root(tmp_path / "root")


def plan(**more: Any) -> Plan:
    models = ("tiny-llava", "tiny-eventgpt")
    return Plan(models, ("id-0", "id-1"), decode=DecodeConfig(max_new_tokens=3), **more)


def worker(root: Path) -> Worker:
    found = Worker(1, pack(plan(), root, dataset.read(root).samples[:2]))
    about = found.begin(True)
    holds = about["holds"]
    assert holds["code"] == provenance.describe_code() and holds["versions"] == versions()
    assert len(set(holds["samples"])) == 2
    assert {len(model["digest"]) for model in holds["models"].values()} == {32}
    assert set(found.begin(False)) == {"device"}
    return found


@pytest.mark.loads
def test_a_worker_holds_one_model_at_a_time(root: Path) -> None:
    found = worker(root)
    for name in plan().models:
        row = found.ask(name, "id-0", 0, "measured")["row"]
        assert [entry.name for entry in registry.resident()] == [name]
        assert row["model"] == name and row["new_tokens"] == 3 and row["error"] is None
    assert "did you mean" in found.ask("tiny-lava", "id-0", 0, "measured")["unloadable"]


def test_a_worker_tells_a_lost_file_from_a_broken_one(root: Path) -> None:
    found = worker(root)
    pictures = sorted((root / "event_image" / "q1").iterdir())
    pictures[0].write_bytes(b"odd")
    assert "row" in found.ask("tiny-eventgpt", "id-1", 0, "measured")
    pictures[0].unlink()
    absent = found.ask("tiny-eventgpt", "id-1", 0, "measured")
    assert absent == {"absent": "files of sample id-1 are not on this node"}
