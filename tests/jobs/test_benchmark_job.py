"""Dataset runs in the queue: watched, cancelled, and giving way to a Compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.benchmark.cluster import run_session
from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.errors import ClusterError
from engine.jobs import queue as jobs
from engine.jobs.benchmark_job import BenchmarkJob
from engine.jobs.run_job import RunJob
from engine.media import dataset
from engine.storage import run_store
from engine.storage.plan import Plan
from engine.types import DecodeConfig, RunOptions, RunRequest
from tests import recordings
from tests.benchmark.cluster.pools import HerePool, one_thread
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


def test_a_run_in_the_queue_is_watched_to_its_end(root: Path) -> None:
    queue = jobs.Jobs()
    first, second = (BenchmarkJob(plan=plan(root), root=root) for _ in range(2))
    for job in (first, second):
        queue.submit(job)
    assert second.position in (0, 1)
    view = wait(first)
    assert view.state == "done" and not view.error and view.seen
    assert (view.seen.done, view.seen.planned) == (4, 4)
    assert view.seen.models[0].medians["decode"] > 0
    assert run_store.read(view.folder).state == "finished"
    assert wait(second).folder != view.folder
    infos = run_store.listing(view.folder.parent)
    assert {info.folder for info in infos} == {view.folder, second.folder}


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


def test_a_compare_gets_the_device_between_two_samples_and_the_run_notes_it(root: Path) -> None:
    queue = jobs.Jobs()
    long = BenchmarkJob(plan=plan(root, tokens=100, repeat=2), root=root)
    queue.submit(long)
    wait(long, lambda view: view.seen is not None and view.seen.done >= 1)
    sample = dataset.read(root).samples[0]
    brief = RunJob(
        request=RunRequest(
            sample, "tiny-llava", "Why?", RunOptions(decode=DecodeConfig(max_new_tokens=2))
        )
    )
    queue.submit(brief)
    wait(brief)
    assert long.state == "running"
    view = wait(long)
    assert view.state == "done" and view.seen.paused_ms > 0
    found = [row for _, row in run_store.read(view.folder).results()]
    paused = [row for row in found if row.paused_ms]
    assert len(paused) == 1 and brief.result is not None


def test_a_refusal_is_the_jobs_sentence(root: Path, tmp_path: Path) -> None:
    for job, words in (
        (BenchmarkJob(plan=plan(root, models=("tiny-lava",)), root=root), "did you mean"),
        (BenchmarkJob(plan=plan(root), root=tmp_path / "none"), "does not exist"),
        (BenchmarkJob(resume=tmp_path), "holds no run.json"),
        (BenchmarkJob(), "needs a plan"),
    ):
        job.work()
        assert job.state == "failed" and words in job.error and job.seen is None


def test_two_jobs_on_one_run(root: Path, tmp_path: Path) -> None:
    job = BenchmarkJob(plan=plan(root), root=root, folder=tmp_path / "run")
    job.work()
    with run_store.reopen(tmp_path / "run"):
        again = BenchmarkJob(resume=tmp_path / "run")
        again.work()
    assert again.state == "failed" and "another process" in again.error


@pytest.mark.parametrize(("address", "lost"), [("local", False), ("head:6379", True)])
def test_a_run_on_a_cluster_says_what_it_does_before_and_after(
    root: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch, address: str, lost: bool
) -> None:
    job = BenchmarkJob(plan=plan(root), root=root, cluster=ClusterOptions(address))
    said: list[tuple[str, str]] = []

    class Telling(HerePool):
        def start(self, *about: Any) -> str:
            said.append(("begun", job.doing))
            if lost:
                raise ClusterError("The connection is lost.")
            return super().start(*about)

        def close(self) -> None:
            said.append(("closed", job.doing))

    def connect(*_: object) -> Telling:
        said.append(("connected", job.doing))
        return Telling({"x": "n1"})

    ready = job._ready

    def prepared() -> Any:
        said.append(("prepared", job.doing))
        return ready()

    monkeypatch.setattr(run_session, "Link", connect)
    monkeypatch.setattr(run_session, "TICK_S", 0.0)
    monkeypatch.setattr(job, "_ready", prepared)
    jobs.Jobs().submit(job)
    view = wait(job)
    assert view.cluster and view.state == ("failed" if lost else "done"), view.error
    assert said == [
        ("connected", "starting Ray" if address == "local" else "connecting to Ray at head:6379"),
        ("prepared", "checking the dataset and the checkpoints"),
        ("begun", ""),
        ("closed", "leaving Ray"),
    ]


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
