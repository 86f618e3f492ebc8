"""A comparison as a run: rows equal to the results, finished, resumable, private to its folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.benchmark import saved_comparison
from engine.benchmark.saved_comparison import ModelAnswers
from engine.errors import BadInput, StoreError
from engine.media import dataset
from engine.models import registry
from engine.pipeline import feature_cache, single_run
from engine.storage import run_store
from engine.types import DecodeConfig, RunOptions, Sample
from tests import recordings

pytestmark = pytest.mark.loads
MODELS = ("tiny-eventgpt", "tiny-llava")
HOW = RunOptions(decode=DecodeConfig(max_new_tokens=4), cache="off")


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path) -> Path:
    return recordings.root(tmp_path / "root")


@pytest.fixture
def sample(root: Path) -> Sample:
    return dataset.read(root).samples[0]


def answers(sample: Sample, model: str, runs: int = 3) -> ModelAnswers:
    request = HOW.ask(sample, model, "Why?")
    adapter = registry.load(registry.entry(model), 4)
    outcomes = tuple(single_run.run(adapter, request, feature_cache.shared()) for _ in range(runs))
    return ModelAnswers(request, outcomes)


def test_a_failure_is_a_row_without_figures(root: Path, sample: Sample, tmp_path: Path) -> None:
    done = answers(sample, MODELS[1], 1)
    broken = ModelAnswers(replace(done.request, model=MODELS[0]), ("It broke.",))
    folder = saved_comparison.save([broken, done], root, tmp_path / "runs")
    rows = [row for _, row in run_store.read(folder).results()]
    assert [(row.error, row.total_ms is None) for row in rows] == [
        ("It broke.", True), (None, False),
    ]  # fmt: skip
    with pytest.raises(BadInput, match="no answer to save"):
        saved_comparison.save([broken], root, tmp_path / "runs")


def test_answers_with_different_settings_are_not_one_run(
    root: Path, sample: Sample, tmp_path: Path
) -> None:
    one, two = (answers(sample, model, 1) for model in MODELS)
    other = replace(two, request=replace(two.request, how=RunOptions(frames="spread")))
    with pytest.raises(BadInput, match="different settings"):
        saved_comparison.save([one, other], root, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(StoreError, match="cannot be made"):
        saved_comparison.save([one, two], root, tmp_path / "runs")


def test_a_variant_is_saved_beside_the_others(root: Path, sample: Sample, tmp_path: Path) -> None:
    names = ("tiny-llava@events", "tiny-llava")
    every = [answers(sample, name, 1) for name in names]
    run = run_store.read(saved_comparison.save(every, root, tmp_path / "runs"))
    assert run.header.plan.models == names
    rows = {row.model: row for _, row in run.results()}
    assert [rows[name].shows for name in names] == ["events", "image"]
