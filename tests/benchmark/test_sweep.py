"""A sweep: folders, names and plans of its runs, and how it goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.benchmark import execute, sweep
from engine.errors import BadInput, StoreError
from engine.media import dataset
from engine.media.dataset import Dataset
from engine.media_options import perturbations
from engine.media_options import sweep as strengths
from engine.storage import run_details, run_store
from engine.storage.plan import Plan
from engine.types import DecodeConfig
from tests import recordings

PLAN = Plan(("tiny-eventgpt",), ("id-0", "id-1"), decode=DecodeConfig(4))


def plans(text: str) -> tuple[Plan, ...]:
    return sweep.plans(PLAN, strengths(text))


def test_each_strength_has_a_plan_and_a_folder_beside_the_others() -> None:
    every = plans("drop:0.3/0,jitter:1ms")
    assert [str(plan.perturb[0]) for plan in every] == ["drop:0", "drop:0.3"]
    assert {str(plan.perturb[1]) for plan in every} == {"jitter:1ms"}
    assert {replace(plan, perturb=()) for plan in every} == {PLAN}
    folders = sweep.folders(Path("runs/night"), every)
    assert folders == (Path("runs/night-drop-0"), Path("runs/night-drop-0.3"))


def test_a_plan_alone_is_no_sweep() -> None:
    assert plans("drop:0.3") == (replace(PLAN, perturb=perturbations("drop:0.3")),)
    assert sweep.change_of(plans("drop:0.3")) is None
    assert sweep.change_of(plans("jitter:0/1ms")) == "jitter"


def test_the_details_name_the_changes_and_the_sweep() -> None:
    found = sweep.details(plans("drop:0/0.3,jitter:1ms")[1], "drop")
    assert (found.name, found.tags) == ("drop:0.3,jitter:1ms", ("sweep drop",))
    assert found == run_details.cleaned(found.name, found.tags)


def test_a_cluster_is_refused_in_one_sentence() -> None:
    with pytest.raises(
        BadInput, match=r"^A sweep of 3 strengths runs in this process only: [^.]+\.$"
    ):
        sweep.refuse_elsewhere(3)


@pytest.fixture
def found(tmp_path: Path, tiny_models: Path) -> Dataset:
    return dataset.read(recordings.root(tmp_path / "root", raw=True))


@pytest.mark.loads
def test_a_repeated_sweep_skips_what_is_finished_and_refuses_other_settings(
    tmp_path: Path, found: Dataset
) -> None:
    every = plans("hot:0/0.1")
    folders = sweep.folders(tmp_path / "runs" / "night", every)
    for plan, folder in zip(every, folders, strict=True):
        ready = sweep.ready(plan, found, folder, "hot")
        with ready.writer:
            assert execute.run(ready) == "finished"
    written = (folders[1] / run_store.RESULTS).read_bytes()
    assert run_details.read(folders[1])[0].tags == ("sweep hot",)
    ready = sweep.ready(every[1], found, folders[1], "hot")
    with ready.writer:
        assert execute.run(ready) == "finished" and ready.tracker.view().done == 2
    assert (folders[1] / run_store.RESULTS).read_bytes() == written
    with pytest.raises(StoreError, match="holds a run with other settings: repeat the command"):
        sweep.ready(replace(every[1], perturb_seed=1), found, folders[1], "hot")


@pytest.mark.loads
def test_strength_zero_gives_the_tokens_of_the_plain_run(tmp_path: Path, found: Dataset) -> None:
    runs = {}
    for name, text in (("plain", ""), ("zero", "hot:0"), ("half", "hot:0.5")):
        plan = replace(PLAN, perturb=perturbations(text))
        ready = execute.prepare(plan, found, tmp_path / name)
        with ready.writer:
            execute.run(ready)
        rows = [row for _, row in run_store.read(tmp_path / name).results()]
        assert all(row.error is None for row in rows), [row.error for row in rows]
        runs[name] = [(row.model, row.sample, row.token_ids, row.shown, row.notes) for row in rows]
        assert {row.perturb for row in rows} == {"hot:0.5 seed 0" if name == "half" else ""}
    assert runs["plain"] == runs["zero"] != runs["half"]


def test_a_model_without_event_images_is_refused_before_anything_runs(
    tmp_path: Path, found: Dataset
) -> None:
    plan = replace(PLAN, models=("tiny-video_llava",), perturb=perturbations("drop:0.5"))
    with pytest.raises(BadInput, match="tiny-video_llava is shown no event images"):
        execute.prepare(plan, found, tmp_path / "run")
    assert not (tmp_path / "run").exists()
