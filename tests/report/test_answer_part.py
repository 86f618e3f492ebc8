"""The row of figures: order, units, ranges."""

from dataclasses import replace

from engine.analysis.compared import ComparedModel
from engine.report import answer_part
from engine.report.answer_part import AnswerFigure
from engine.types import RunResult
from tests.ui.answers import result


def model(*results: RunResult) -> ComparedModel:
    return ComparedModel("One", "llava", results)


def named(shown: ComparedModel) -> dict[str, AnswerFigure]:
    return {figure.name: figure for figure in answer_part.figures(shown)}


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
