"""Dataset runs in the queue: watched, cancelled, and giving way to a Compare."""

from pathlib import Path
from typing import Any

import pytest

from engine.benchmark.cluster import run_session
from engine.benchmark.cluster.ray_link import ClusterOptions
from engine.jobs import queue as jobs
from engine.jobs.benchmark_job import BenchmarkJob
from engine.media import dataset
from engine.storage import run_store
from engine.storage.plan import Plan
from engine.types import DecodeConfig
from tests import recordings
from tests.benchmark.cluster.pools import one_thread
from tests.jobs.waiting import wait

pytestmark = pytest.mark.loads

__all__ = ["one_thread"]


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path) -> Path:
    return recordings.root(tmp_path / "root")


def plan(root: Path, tokens: int = 4, **more: Any) -> Plan:
    samples = tuple(sample.id for sample in dataset.read(root).samples)
    forced = DecodeConfig(max_new_tokens=tokens, min_new_tokens=tokens)
    return Plan(**({"models": ("tiny-llava",), "samples": samples, "decode": forced} | more))


def test_cancel_and_resume(root: Path) -> None:
    queue = jobs.Jobs()
    job = BenchmarkJob(plan=plan(root, tokens=100), root=root)
    queue.submit(job)
    view = wait(job, lambda view: view.seen is not None and view.seen.done >= 1)
    job.cancel()
    view = wait(job)
    assert view.state == "cancelled" and view.seen.done < 4
    rest = BenchmarkJob(resume=view.folder)
    queue.submit(rest)
    done = wait(rest)
    assert done.state == "done" and done.seen.done == 4 and done.folder == view.folder
    kept = [row.task for _, row in run_store.read(view.folder).results()]
    assert len(set(kept)) == len(kept)


def test_a_refusal_is_the_jobs_sentence(root: Path, tmp_path: Path) -> None:
    for job, words in (
        (BenchmarkJob(plan=plan(root, models=("tiny-lava",)), root=root), "did you mean"),
        (BenchmarkJob(plan=plan(root), root=tmp_path / "none"), "does not exist"),
        (BenchmarkJob(resume=tmp_path), "holds no run.json"),
        (BenchmarkJob(), "needs a plan"),
    ):
        job.work()
        assert job.state == "failed" and words in job.error and job.seen is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"models": ("nobody",)}, "nobody"),
        ({"samples": ("none",)}, "1 of 1 samples are not in"),
        ({"batch": 2, "order": "sequential"}, "batch is 2"),
        ({}, "already contains a.txt"),
    ],
)
def test_what_needs_no_cluster_is_refused_before_ray_starts(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], why: str
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "a.txt").touch()
    connected: list[object] = []
    monkeypatch.setattr(run_session, "Link", lambda *options: connected.append(options))
    folder = tmp_path / "new" if wrong else taken
    job = BenchmarkJob(plan=plan(root, **wrong), root=root, folder=folder, cluster=ClusterOptions())
    job.work()
    assert job.state == "failed" and why in job.error
    assert not connected and not (tmp_path / "new").exists()
