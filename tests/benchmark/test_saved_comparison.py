"""A comparison as a run: rows equal to the results, finished, resumable, private to its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from engine.analysis import model_summary, results_table
from engine.benchmark import execute, saved_comparison
from engine.benchmark.saved_comparison import ModelAnswers
from engine.errors import BadInput, StoreError
from engine.media import dataset
from engine.models import registry
from engine.pipeline import feature_cache, single_run
from engine.storage import plan_words, run_store
from engine.types import DecodeConfig, RunOptions, RunResult, Sample
from tests import fabricate, recordings

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


def test_a_saved_comparison_has_the_figures_of_its_results(
    root: Path, sample: Sample, tmp_path: Path
) -> None:
    every = [answers(sample, model) for model in MODELS]
    folder = saved_comparison.save(every, root, tmp_path / "runs")
    run = run_store.read(folder)
    assert run.state == "finished" and folder.parent == tmp_path / "runs"
    assert run.header.plan.order_why == plan_words.COMPARISON and run.header.plan.repeat == 3
    assert run.journal[-1]["event"] == "verdict" and " was first " in run.journal[-1]["text"]
    rows = [row for _, row in run.results()]
    assert [row.model for row in rows] == [*MODELS] * 3
    for model in every:
        for repeat, result in enumerate(model.outcomes):
            assert isinstance(result, RunResult)
            row = next(r for r in rows if (r.model, r.repeat) == (model.request.model, repeat))
            assert row.total_ms == result.total_ms and row.token_ms == result.generation.token_ms
            assert row.text == result.generation.text and row.cold == result.cold
    figures = model_summary.figures(results_table.frame([run]))
    for model in every:
        warm = sorted(r.total_ms for r in model.outcomes if isinstance(r, RunResult) and not r.cold)
        found = model_summary.find(figures, model.request.model, "total")
        assert found is not None and found.median == pytest.approx(median(warm))


def test_resuming_it_has_nothing_to_do(root: Path, sample: Sample, tmp_path: Path) -> None:
    folder = saved_comparison.save([answers(sample, MODELS[1], 1)], root, tmp_path / "runs")
    before = fabricate.stored(run_store.read(folder))
    ready = execute.resume(folder)
    with ready.writer:
        assert execute.run(ready) == "finished"
    assert fabricate.stored(run_store.read(folder)) == before


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
