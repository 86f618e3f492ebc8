"""The parts of a run's bar add up to its total, with and without cache."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.analysis import stage_bars
from engine.analysis.compared import ComparedModel
from tests.ui.answers import CACHED, result, reused


def model(*results: object) -> ComparedModel:
    return ComparedModel("One", "llava", results)  # type: ignore[arg-type]


def test_a_runs_parts_add_up_to_its_total() -> None:
    times = stage_bars.run_times(model(result()))
    assert set(times) == set(stage_bars.RUN_PARTS)
    assert sum(times.values()) == pytest.approx(175)
    assert times[stage_bars.REST] == 0


def test_what_decode_took_besides_its_parts_is_a_part() -> None:
    spans = [replace(span, ms=20.0) if span.name == "decode.steps" else span
             for span in result().spans]  # fmt: skip
    times = stage_bars.run_times(model(replace(result(), spans=tuple(spans))))
    assert times[stage_bars.REST] == 50 and sum(times.values()) == pytest.approx(175)


def test_the_rest_of_several_runs_is_taken_per_run() -> None:
    """The medians of decode, prefill and steps come from different runs; their difference is none
    of the rests."""
    runs = []
    for prefill, steps in ((30.0, 70.0), (20.0, 75.0), (60.0, 40.0)):
        lengths = {"decode.prefill": prefill, "decode.steps": steps, "decode": prefill + steps}
        spans = [replace(span, ms=lengths.get(span.name, span.ms)) for span in result().spans]
        runs.append(replace(result(), spans=tuple(spans)))
    assert stage_bars.run_times(model(*runs))[stage_bars.REST] == 0


def test_a_part_that_was_not_measured_is_absent() -> None:
    spans = tuple(span for span in result().spans if span.name != "vision")
    assert "vision" not in stage_bars.run_times(model(replace(result(), spans=spans)))


def test_the_times_without_cache() -> None:
    found = stage_bars.uncached_times(model(result(vision=CACHED)))
    assert found is not None and sum(found.values()) == pytest.approx(175)
    assert stage_bars.uncached_times(model(result())) is None
    assert stage_bars.uncached_times(model(reused())) is None  # decode's time is not known


def test_segments_of_another_order_lie_end_to_end() -> None:
    found = stage_bars.segments({"a": {"b": 2.0, "c": 3.0}}, ("c", "b"))
    assert [(one.part, one.start_ms, one.end_ms) for one in found] == [("c", 0, 3), ("b", 3, 5)]
