"""Sweeps on the Benchmark page and their curves on the Results page, through AppTest."""

from pathlib import Path

import pytest

from engine import settings
from engine.jobs import queue
from engine.jobs.benchmark_job import BenchmarkJob
from engine.storage import annotations
from tests.analysis.test_robustness import changed, run
from tests.pages.conftest import Open
from tests.pages.reading import texts
from tests.pages.test_benchmark import TWO, Holding, _nothing_left_at_work, held, job, start, wait
from ui.results import run_list

__all__ = ["_nothing_left_at_work", "held"]
pytestmark = pytest.mark.loads
BENCHMARK, RESULTS = "pages/benchmark.py", "pages/results.py"
EVENTS = {**TWO, "models": ["Tiny eventgpt"]}


def runs(folder: Path, *texts: str) -> list[str]:
    """The names of run folders in the settings' runs folder."""
    base = settings.load().runs_dir
    base.mkdir(parents=True, exist_ok=True)
    return [run(base, text, changed(n)).folder.name for n, text in enumerate(texts)]


def test_a_sweep_is_a_run_per_strength_and_its_results_open_together(app: Open) -> None:
    at = app(BENCHMARK, **EVENTS, perturb="hot:0/0.3")
    assert "Planned: 2 runs, one per strength, each 2 results: 1 model × 2 samples" in texts(at)
    assert "--perturb hot:0/0.3" in at.code[0].value
    before = len(queue.manager().all())
    at = start(at)
    jobs = [one for one in queue.manager().all()[before:] if isinstance(one, BenchmarkJob)]
    assert [one.title for one in jobs] == [
        f"The run of Tiny eventgpt with hot:{n}" for n in ("0", "0.3")
    ]
    folders = [wait(one).folder for one in jobs]
    jobs[1].state = "running"
    at.run()
    assert job(at) is jobs[1]  # the page follows the sweep
    jobs[1].state = "done"
    at.run()
    names = [folder.name for folder in folders if folder is not None]
    assert len(names) == 2 and names[0].endswith("-hot-0") and names[1].endswith("-hot-0.3")
    links = {link.proto.label: link.proto.query_string for link in at.get("page_link")}
    assert all(name in links["Open the sweep: 2 of 2 runs"] for name in names)
    tags = {annotations.details(settings.load().runs_dir / name)[0].tags for name in names}
    assert tags == {("sweep hot",)}
    at = app(RESULTS, runs=names, view="Quality")
    assert not at.exception and [one.value for one in at.subheader][-1].startswith(
        "Changed answers"
    )


@pytest.mark.slow
def test_cancel_stops_the_whole_sweep(app: Open, held: Holding) -> None:
    at = start(app(BENCHMARK, **EVENTS, perturb="hot:0/0.3/0.6"))
    jobs = [one for one in queue.manager().all() if isinstance(one, BenchmarkJob)][-3:]
    assert not any(one.ended for one in jobs)
    at.button(key="benchmark_cancel").click().run()
    assert not at.exception and {wait(one).state for one in jobs} == {"cancelled"}
    at.run()
    assert "Not finished in this sweep: hot:0, hot:0.3, hot:0.6." in texts(at)
    held.going.set()
    at.button(key="benchmark_resume").click().run()  # strengths that had not begun are run too
    again = [one for one in queue.manager().all() if isinstance(one, BenchmarkJob)][-3:]
    assert not set(again) & set(jobs)
    folders = [wait(one).folder for one in again]
    assert {one.state for one in again} == {"done"} and folders == list(jobs[0].sweep)
    at.run()
    assert "Not finished in this sweep" not in texts(at)


def test_curves_are_drawn_for_a_sweep(app: Open, tmp_path: Path) -> None:
    names = runs(tmp_path, "drop:0", "drop:0.1", "drop:0.2")
    at = app(RESULTS, runs=names, view="Quality")
    assert not at.exception and len(at.get("vega_lite_chart")) == 2
    heads = [one.value for one in at.subheader if one.value.endswith(" by strength of the change")]
    assert [one.partition(" by ")[0] for one in heads] == ["Attribute accuracy", "Changed answers"]
    assert "each event is lost with this probability. Seed 7." in texts(at)
    tables = "".join(one.proto.body for one in at.get("html"))
    assert "drop:0.2" in tables and "95 % interval" in tables


def test_a_missing_reference_is_a_sentence(app: Open, tmp_path: Path) -> None:
    names = runs(tmp_path, "drop:0.1", "drop:0.2")
    at = app(RESULTS, runs=names, view="Quality")
    assert "The run with drop:0 is missing" in texts(at) and not at.get("vega_lite_chart")


def test_curves_are_shown_of_perturbed_runs_only(app: Open, tmp_path: Path) -> None:
    plain, perturbed = runs(tmp_path, "", "drop:0.1")
    at = app(RESULTS, runs=[plain, perturbed], view="Quality")
    assert at.get("vega_lite_chart")
    at.multiselect(key="results_pick").set_value([plain]).run()
    assert not at.exception and not at.get("vega_lite_chart")


def test_the_runs_of_a_sweep_can_be_chosen_together(app: Open, tmp_path: Path) -> None:
    strengths = [f"drop:0.{n}" for n in range(1, run_list.MOST)]
    at = app(RESULTS, runs=runs(tmp_path, "drop:0", *strengths), view="Quality")
    assert len(at.get("vega_lite_chart")) == 2
