"""Medians and ranges of a model's runs."""

from __future__ import annotations

from engine.analysis.compared import ComparedModel, Spread
from tests.ui.answers import result


def test_the_median_and_the_range_of_several_runs() -> None:
    runs = tuple(result(vision=(ms, "measured", None)) for ms in (40.0, 10.0, 90.0))
    model = ComparedModel("One", "llava", runs)
    assert model.time("vision") == Spread(40.0, 10.0, 90.0, 3)
    assert model.time("total") == Spread(175.0, 145.0, 225.0, 3)
    assert model.last is runs[-1]


def test_a_time_that_no_run_has_is_none_and_runs_without_it_do_not_count() -> None:
    model = ComparedModel("One", "llava", (result(tokens=1), result(tokens=3)))
    tpot = model.time("tpot")
    assert tpot is not None and tpot.runs == 1
    assert ComparedModel("One", "llava", (result(tokens=1),)).time("tpot") is None
    assert model.time("absent") is None
