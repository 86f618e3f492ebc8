"""The row of figures: order, units, ranges."""

from __future__ import annotations

from dataclasses import replace

from engine.analysis.compared import ComparedModel
from engine.report import answer_part
from engine.report.answer_part import AnswerFigure
from engine.types import RunResult
from tests.ui.answers import CACHED, result


def model(*results: RunResult) -> ComparedModel:
    return ComparedModel("One", "llava", results)


def named(shown: ComparedModel) -> dict[str, AnswerFigure]:
    return {figure.name: figure for figure in answer_part.figures(shown)}


def test_the_total_comes_first_and_every_figure_has_a_formula() -> None:
    shown = answer_part.figures(model(result()))
    assert [figure.name for figure in shown] == list(answer_part.FORMULAS)
    assert shown[0] == AnswerFigure("Total", "175", None)
    values = [figure.value for figure in shown[1:]]  # in the order of FORMULAS
    assert values == ["100", "37.5", "26.7", "3", "12"]


def test_one_token_has_no_time_per_token() -> None:
    shown = named(model(result(tokens=1)))
    assert shown["TPOT"].value == "–" and shown["tok/s"].value == "–"


def test_several_runs_give_a_median_a_range_and_their_number() -> None:
    runs = [replace(result(), total_ms=ms) for ms in (1450.0, 1375.0, 1600.0)]
    shown = named(model(*runs))
    assert shown["Total"] == AnswerFigure("Total", "1,450", ("1,375", "1,600"))
    assert shown["TPOT"].ends == ("638", "750")
    assert shown["tok/s"].ends == ("1.3", "1.6")
    assert shown["New tokens"].ends is None  # the same in every run
    assert answer_part.notes(model(*runs)) == ["The median run of 3, with the range of all."]
    assert answer_part.notes(model(runs[0])) == []  # control


def test_a_run_that_does_not_count_is_named() -> None:
    shown = model(result(cold=True, tokens=2), result(), result())
    assert answer_part.notes(shown) == [
        "The median run of 2, with the range of all.",
        "1 run left out: cold, the first run after loading.",
    ]
    assert named(shown)["New tokens"].ends is None


def test_a_cached_total_stands_beside_the_total_without_cache() -> None:
    assert answer_part.notes(model(result(vision=CACHED))) == ["Without cache: 175 ms."]
    assert answer_part.notes(model(result())) == []  # control
