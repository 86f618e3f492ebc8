"""Medians and ranges of a model's runs."""

from __future__ import annotations

from dataclasses import replace

from engine.analysis.compared import ComparedModel, LeftOut, RunRange
from engine.types import RunResult
from tests.ui.answers import CACHED, result


def test_the_median_and_the_range_of_several_runs() -> None:
    runs = tuple(result(vision=(ms, "measured", None)) for ms in (40.0, 10.0, 90.0))
    model = ComparedModel("One", "llava", runs)
    assert model.time("vision") == RunRange(40.0, 10.0, 90.0, 3)
    assert model.time("total") == RunRange(175.0, 145.0, 225.0, 3)
    assert model.last is runs[-1]


def test_a_time_that_no_run_has_is_none_and_runs_without_it_do_not_count() -> None:
    model = ComparedModel("One", "llava", (result(tokens=1), result(tokens=3)))
    tpot = model.time("tpot")
    assert tpot is not None and tpot.runs == 1
    assert ComparedModel("One", "llava", (result(tokens=1),)).time("tpot") is None
    assert model.time("absent") is None


def cancelled(run: RunResult) -> RunResult:
    return replace(run, generation=replace(run.generation, stop="cancelled"))


def test_the_cold_run_is_left_out_and_said() -> None:
    runs = (result(cold=True, vision=(900.0, "measured", None)), result(), result())
    model = ComparedModel("One", "llava", runs)
    assert model.counted == runs[1:]
    assert model.time("total") == RunRange(175.0, 175.0, 175.0, 2)
    assert model.left_out == (LeftOut("cold, the first run after loading", 1),)


def test_a_computed_stage_is_not_mixed_with_cached_ones() -> None:
    runs = (result(), result(vision=CACHED), result(vision=CACHED))
    model = ComparedModel("One", "llava", runs)
    assert model.time("vision") == RunRange(2.0, 2.0, 2.0, 2)
    assert model.left_out == (LeftOut("vision measured", 1),)
    computed = ComparedModel("One", "llava", (result(), result(), result()))  # control
    assert computed.left_out == () and len(computed.counted) == 3


def test_cancelled_and_failed_runs_do_not_count() -> None:
    runs = (result(), result(), cancelled(result(tokens=1)))
    model = ComparedModel("One", "llava", runs, failures=("Out of memory.",))
    assert model.last is runs[1]
    assert model.left_out == (LeftOut("cancelled before the end", 1), LeftOut("failed", 1))
    queued = replace(model, unfinished=2)
    assert queued.left_out == (LeftOut("cancelled before the end", 3), LeftOut("failed", 1))


def test_a_single_run_counts_whatever_its_state() -> None:
    for run in (result(cold=True), cancelled(result(tokens=2)), result(vision=CACHED)):
        model = ComparedModel("One", "llava", (run,))
        assert model.last is run and model.left_out == ()


def test_a_warm_run_counts_even_if_a_cold_one_came_later() -> None:
    """The model was unloaded and loaded again in between."""
    runs = (result(), result(cold=True))
    assert ComparedModel("One", "llava", runs).counted == runs[:1]
