"""The row of figures: order, units, ranges.  The replay: recorded times, cached stages that say so,
and a page of its own."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from engine.analysis.compared import ComparedModel
from engine.report import answer_part
from engine.report.answer_part import AnswerFigure
from engine.storage.result_rows import ResultRow
from engine.types import RunResult
from tests import fabricate
from tests.report.test_drawers import EVIL, read
from tests.ui.answers import CACHED, result


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


def row(**changes: object) -> ResultRow:
    """Tokens "Be", "cause" and "." at 100, 110 and 120 ms."""
    return structs.replace(ResultRow.from_result(result()), **{"text_ends": (2, 7, 8)} | changes)


def drawn(row: ResultRow) -> dict[str, Any]:
    (answer,) = answer_part.answers([("One", row)])
    return answer


@pytest.mark.loads
def test_a_cached_stage_plays_at_its_cached_time_and_says_so() -> None:
    found = drawn(ResultRow.from_result(result(vision=CACHED)))
    assert found["bars"][2][1:3] == [30, 2.0]
    assert "vision 2.00 ms (read from the cache; when computed: 40.0 ms)" in found["stages"]
    assert "vision 40.0 ms," in drawn(row())["stages"]  # control


@pytest.mark.loads
def test_a_failure_and_a_sample_of_a_batch_have_no_replay() -> None:
    rows = fabricate.parsed([fabricate.failed(), *fabricate.batch(["a", "b"])])
    assert [drawn(one)["pieces"] for one in rows] == [([], [])] * 3
    (single,) = fabricate.parsed([fabricate.row()])
    assert drawn(single)["pieces"][0]  # control


@pytest.mark.loads
def test_a_page_of_one_sample_runs_only_our_script_and_all_it_says_is_data() -> None:
    html = answer_part.page(EVIL, EVIL, [(EVIL, row(text=EVIL))], "dark")
    found = read(html)
    assert not {"img", "iframe", "link", "form", "object"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "src"]
    assert html.count("</script>") == 3 and "color-scheme: dark" in html
    assert "script-src 'sha256-" in html and 'id="list"' not in html
