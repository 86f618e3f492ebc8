"""A sweep: folders, names and plans of its runs, and how it goes on."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.benchmark import execute
from engine.errors import BadInput, StoreError
from engine.jobs import benchmark_job
from engine.media import dataset
from engine.media.dataset import Dataset
from engine.media_options import perturbations
from engine.media_options import sweep as strengths
from engine.storage import annotations, run_store
from engine.storage.plan import Plan
from engine.types import DecodeConfig
from tests import recordings

PLAN = Plan(("tiny-eventgpt",), ("id-0", "id-1"), decode=DecodeConfig(4))


def plans(text: str) -> tuple[Plan, ...]:
    return tuple(replace(PLAN, perturb=run) for run in strengths(text))


def test_a_cluster_is_refused_in_one_sentence() -> None:
    with pytest.raises(
        BadInput, match=r"^A sweep of 3 strengths runs in this process only: [^.]+\.$"
    ):
        benchmark_job.refuse_sweep_elsewhere(3)


@pytest.fixture
def found(tmp_path: Path, tiny_models: Path) -> Dataset:
    return dataset.read(recordings.root(tmp_path / "root", raw=True))


@pytest.mark.loads
def test_a_repeated_sweep_skips_what_is_finished_and_refuses_other_settings(
    tmp_path: Path, found: Dataset
) -> None:
    every = plans("hot:0/0.1")
    jobs = benchmark_job.sweep_jobs(every, found.root, tmp_path / "runs" / "night")
    folders = jobs[0].sweep
    for plan, folder in zip(every, folders, strict=True):
        ready = benchmark_job.in_sweep(plan, found, folder, "hot")
        with ready.writer:
            assert ready.run() == "finished"
    written = (folders[1] / run_store.RESULTS).read_bytes()
    assert annotations.details(folders[1])[0].tags == ("sweep hot",)
    ready = benchmark_job.in_sweep(every[1], found, folders[1], "hot")
    with ready.writer:
        assert ready.run() == "finished" and ready.tracker.view().done == 2
    assert (folders[1] / run_store.RESULTS).read_bytes() == written
    with pytest.raises(StoreError, match="holds a run with other settings: repeat the command"):
        benchmark_job.in_sweep(replace(every[1], perturb_seed=1), found, folders[1], "hot")


def test_a_model_without_event_images_is_refused_before_anything_runs(
    tmp_path: Path, found: Dataset
) -> None:
    plan = replace(PLAN, models=("tiny-video_llava",), perturb=perturbations("drop:0.5"))
    with pytest.raises(BadInput, match="tiny-video_llava is shown no event images"):
        execute.prepare(plan, found, tmp_path / "run")
    assert not (tmp_path / "run").exists()
