"""Medians and ranges of a model's runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.analysis import compared
from engine.analysis.compared import ComparedModel, RunRange
from engine.types import RunResult
from tests.ui.answers import CACHED, result


def test_the_median_and_the_range_of_several_runs() -> None:
    runs = tuple(result(vision=(ms, "measured", None)) for ms in (40.0, 10.0, 90.0))
    model = ComparedModel("One", "llava", runs)
    assert model.time("vision") == RunRange(40.0, 10.0, 90.0, 3)
    assert model.time("total") == RunRange(175.0, 145.0, 225.0, 3)
    assert model.last is runs[-1]


def test_a_time_that_the_middle_run_lacks_is_none_and_runs_without_it_do_not_count() -> None:
    lasting = result(vision=(90.0, "measured", None))
    model = ComparedModel("One", "llava", (result(tokens=1), result(), lasting))
    tpot = model.time("tpot")
    assert model.middle.new_tokens == 3 and tpot is not None and tpot.runs == 2
    assert ComparedModel("One", "llava", (result(tokens=1), lasting)).time("tpot") is None
    assert model.time("absent") is None


def cancelled(run: RunResult) -> RunResult:
    return replace(run, generation=replace(run.generation, stop="cancelled"))


def test_the_cold_run_is_left_out_and_said() -> None:
    runs = (result(cold=True, vision=(900.0, "measured", None)), result(), result())
    model = ComparedModel("One", "llava", runs)
    assert model.counted == runs[1:]
    assert model.time("total") == RunRange(175.0, 175.0, 175.0, 2)
    assert model.left_out == {"cold, the first run after loading": 1}


def test_a_computed_stage_is_not_mixed_with_cached_ones() -> None:
    runs = (result(), result(vision=CACHED), result(vision=CACHED))
    model = ComparedModel("One", "llava", runs)
    assert model.time("vision") == RunRange(2.0, 2.0, 2.0, 2)
    assert model.left_out == {"vision measured": 1}
    computed = ComparedModel("One", "llava", (result(), result(), result()))  # control
    assert computed.left_out == {} and len(computed.counted) == 3


def test_cancelled_and_failed_runs_do_not_count() -> None:
    runs = (result(), result(), cancelled(result(tokens=1)))
    model = ComparedModel("One", "llava", runs, failures=("Out of memory.",))
    assert model.last is runs[1]
    assert model.left_out == {"cancelled before the end": 1, "failed": 1}
    queued = replace(model, unfinished=2)
    assert queued.left_out == {"cancelled before the end": 3, "failed": 1}


def test_a_single_run_counts_whatever_its_state() -> None:
    for run in (result(cold=True), cancelled(result(tokens=2)), result(vision=CACHED)):
        model = ComparedModel("One", "llava", (run,))
        assert model.last is run and model.left_out == {}


def test_a_warm_run_counts_even_if_a_cold_one_came_later() -> None:
    """The model was unloaded and loaded again in between."""
    runs = (result(), result(cold=True))
    assert ComparedModel("One", "llava", runs).counted == runs[:1]


def model(*results: object) -> ComparedModel:
    return ComparedModel("One", "llava", results)  # type: ignore[arg-type]


def test_a_runs_parts_add_up_to_its_total() -> None:
    times = compared.run_times(model(result()))
    assert set(times) == set(compared.RUN_PARTS)
    assert sum(times.values()) == pytest.approx(175)
    assert times[compared.REST] == 0


def test_what_decode_took_besides_its_parts_is_a_part() -> None:
    spans = [replace(span, ms=20.0) if span.name == "decode.steps" else span
             for span in result().spans]  # fmt: skip
    times = compared.run_times(model(replace(result(), spans=tuple(spans))))
    assert times[compared.REST] == 50 and sum(times.values()) == pytest.approx(175)


def test_a_part_that_was_not_measured_is_absent() -> None:
    spans = tuple(span for span in result().spans if span.name != "vision")
    assert "vision" not in compared.run_times(model(replace(result(), spans=spans)))


def test_the_times_without_cache() -> None:
    found = compared.uncached_times(model(result(vision=CACHED)))
    assert found is not None and sum(found.values()) == pytest.approx(175)
    assert compared.uncached_times(model(result())) is None


def test_segments_of_another_order_lie_end_to_end() -> None:
    found = compared.segments({"a": {"b": 2.0, "c": 3.0}}, ("c", "b"))
    assert [(one.part, one.start_ms, one.end_ms) for one in found] == [("c", 0, 3), ("b", 3, 5)]
