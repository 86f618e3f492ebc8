from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.benchmark.cluster.workers import WorkerState
from engine.benchmark.run_progress import ModelProgress, Progress
from engine.jobs.benchmark_job import BenchmarkJob
from engine.jobs.queue import Jobs
from engine.models import registry
from ui.benchmark import run_progress_view

RAY = ClusterOptions()


def progress(**more: Any) -> Progress:
    live = (ModelProgress("a", 2, 1, {"load": 1.234, "total": 100.4}), ModelProgress("b", 0, 0, {}))
    given: dict[str, Any] = {
        "planned": 10, "done": 2, "failed": 1, "per_s": 0.5, "left_s": 130.0, "paused_ms": 0.0,
        "current": "a, measured, sample s1", "models": live, "failures": (), "notes": (),
    }  # fmt: skip
    return Progress(**given | more)


def job(**more: Any) -> BenchmarkJob:
    return BenchmarkJob(**{"state": "running", "doing": "vision"} | more)


def behind_two(**more: Any) -> BenchmarkJob:
    queued, waiting = job(state="queued", **more), Jobs()
    waiting._busy = job()
    waiting._waiting.extend([job(), queued])
    queued._queue = waiting
    return queued


@pytest.mark.parametrize(
    ("one", "found", "words"),
    [
        (job(), progress(), "a, measured, sample s1, vision"),
        (behind_two(), None, "Queued: 2 jobs ahead"),
        (job(state="queued"), None, "Starting"),
        (job(state="loading", doing=""), None, "Checking the dataset and the checkpoints …"),
        (job(state="loading", doing="starting Ray"), None, "Starting Ray …"),
        (job(doing=""), progress(current=""), "starting"),
        (job(cluster=RAY, doing=""), progress(current=""), "waiting for workers"),
        (job(cluster=RAY, doing=""), progress(current="2 workers"), "2 workers"),
        (job(cluster=RAY, doing="leaving Ray"), progress(), "Leaving Ray …"),
        (job(state="done", cluster=RAY, doing="leaving Ray"), progress(), "Finished"),
        (job(state="done"), progress(), "Finished"),
        (job(state="cancelled"), progress(), "Cancelled"),
    ],
)
def test_what_is_done_now(one: BenchmarkJob, found: Progress | None, words: str) -> None:
    assert run_progress_view.doing(one, found) == words


def test_the_numbers_have_units_and_no_time_left_is_made_up() -> None:
    shown = {name: value for name, value, _ in run_progress_view.numbers(progress(), False)}
    assert shown == {
        "Rate": "0.5 /s", "Time left": "2 min 10 s", "Failed": "1",
    }  # fmt: skip
    none = {n: v for n, v, _ in run_progress_view.numbers(progress(per_s=None, left_s=None), False)}
    assert none["Rate"] == none["Time left"] == "–"
    ended = {n: v for n, v, _ in run_progress_view.numbers(progress(), True)}
    assert ended["Time left"] == "–"
    assert ended["Rate at the end"] == "0.5 /s" and "Rate" not in ended


def test_a_pause_is_said_when_there_was_one() -> None:
    paused = run_progress_view.numbers(progress(paused_ms=61_000.0), False)
    assert ("Paused", "1 min 1 s") in [(name, value) for name, value, _ in paused]


def test_a_model_without_results_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "label", {"a": "**A**", "b": "b"}.__getitem__)
    first, second = run_progress_view.table(progress())
    assert first["model"] == "**A**" and first["load (ms)"] == "1.23"
    assert second["model"] == "b" and second["total (ms)"] == "–"


def test_batches_have_columns_of_their_own() -> None:
    medians = {"batch": 4, "batch_ms": 120.0, "batch_tokens_per_s": 66.6}
    models = (ModelProgress("a", 4, 0, medians), ModelProgress("b", 0, 0, {}))
    first, second = run_progress_view.table(progress(models=models))
    assert first["samples at once"] == "4" and first["new tokens/s"] == "66.6"
    assert first["samples/s"] == second["time of a batch (ms)"] == "–"
    assert "total (ms)" not in first
    assert "samples at once" not in run_progress_view.table(progress())[0]


def test_batches_and_single_runs_are_in_one_table() -> None:
    medians = {"batch": 4, "batch_new_tokens": 3, "load": 1.0, "total": 100.4, "new_tokens": 2}
    models = (ModelProgress("a", 4, 0, medians),)
    (row,) = run_progress_view.table(progress(models=models, batch=4))
    assert row["new tokens (in batches)"] == "3.00" and row["new tokens"] == "2.00"
    assert row["total (ms)"] == "100"


def test_a_batched_run_has_its_columns_before_its_first_batch() -> None:
    (first,) = run_progress_view.table(progress(models=(ModelProgress("a", 0, 0, {}),), batch=4))
    assert first["samples at once"] == first["time of a batch (ms)"] == "–"
    assert "TTFT (ms)" not in first


@pytest.mark.parametrize(
    ("many", "boxes"), [(run_progress_view.FEW, 0), (run_progress_view.FEW + 1, 1)]
)
def test_many_notes_wait_until_they_are_asked_for(many: int, boxes: int) -> None:
    def page(found: object) -> None:
        from ui.benchmark import run_progress_view

        run_progress_view._notes(found)  # type: ignore[arg-type]

    notes = (*(f"note {number}" for number in range(many)), "note 0")
    at = AppTest.from_function(page, args=(progress(notes=notes),)).run()
    assert len(at.expander) == boxes and not at.exception
    assert [one.value for one in at.text][:2] == ["note 0 (2 times)", "note 1"]


def worker(**more: Any) -> WorkerState:
    given: dict[str, Any] = {
        "id": "x", "node": "n1", "address": "::1", "host": "host", "state": "waiting", "done": 3,
        "device": {"name": "cpu", "type": "A *fast* one"}, "shared": ("device",),
        "ends": deque([0.0, 1 / 0.51234]),
    }  # fmt: skip
    return WorkerState(**given | more)


LIVE = worker()
STARTING = worker(id="y", device={}, shared=(), state="starting", done=0, ends=())
GONE = worker(id="z", node="n2", ended=True, state="released", shared=())
NEVER = worker(id="v", node="n3", ended=True, state="ended: no room", device={}, done=0)


@pytest.mark.parametrize(
    ("workers", "ended", "words"),
    [
        ((LIVE,), False, "1 worker on 1 node"),
        ((LIVE, STARTING, GONE), False, "2 workers on 1 node"),
        ((GONE,), True, "1 worker on 1 node took part"),
        ((GONE, worker(ended=True), NEVER), True, "2 workers on 2 nodes took part"),
        ((NEVER,), True, "0 workers on 0 nodes took part"),
    ],
)
def test_who_is_there_and_who_took_part(
    workers: tuple[WorkerState, ...], ended: bool, words: str
) -> None:
    assert run_progress_view.heading(workers, ended) == words


def test_a_row_says_what_is_so_now_only_while_it_is() -> None:
    live, ended = run_progress_view.row(LIVE, ended=False), run_progress_view.row(GONE, ended=True)
    assert live["shared"] == "device" and live["rate (/s)"] == "0.512"
    assert live["device"] == "A *fast* one, cpu" and live["node"] == "host ::1 (n1)"
    assert set(live) - set(ended) == {"shared", "rate (/s)"} and live["state"] == "waiting"
    assert ended["results"] == "3" and ended["state"] == "released"
    assert run_progress_view.row(NEVER, ended=True)["state"] == "ended: no room"
