"""The replay: recorded times, cached stages that say so, and a page of its own."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from engine.palette import DECODE_COLOURS, STAGE_COLOURS
from engine.report import replay
from engine.storage.result_rows import ResultRow
from tests import fabricate
from tests.report.test_drawers import EVIL, read
from tests.ui.answers import CACHED, result

pytestmark = pytest.mark.loads


def row(**changes: object) -> ResultRow:
    """Tokens "Be", "cause" and "." at 100, 110 and 120 ms."""
    return structs.replace(ResultRow.from_result(result()), **{"text_ends": (2, 7, 8)} | changes)


def drawn(row: ResultRow) -> dict[str, Any]:
    (answer,) = replay.answers([("One", row)])
    return answer


def test_each_token_has_its_recorded_time_and_its_text() -> None:
    found = drawn(row())
    assert found["pieces"] == ([1000, 100, 100], [2, 5, 1])
    assert [bar[:3] for bar in found["bars"]] == [
        ["load", 0, 10], ["preprocess", 10, 20], ["vision", 30, 40], ["prefill", 70, 30],
        ["token steps", 100, 70],
    ]  # fmt: skip
    assert found["total"] == 175.0 and found["notes"] == drawn(row())["notes"]
    assert drawn(row(prefill=None))["bars"][-1][0] == "decode"  # of an older row


def test_parts_have_the_colours_of_the_stage_bars() -> None:
    colours = [bar[3] for bar in drawn(row())["bars"]]
    assert colours[-2:] == [DECODE_COLOURS["decode.prefill"], DECODE_COLOURS["decode.steps"]]
    assert STAGE_COLOURS["decode"] not in colours  # control: of undivided decode


def test_a_cached_stage_plays_at_its_cached_time_and_says_so() -> None:
    found = drawn(ResultRow.from_result(result(vision=CACHED)))
    assert found["bars"][2][1:3] == [30, 2.0]
    assert "vision 2.00 ms (read from the cache; when computed: 40.0 ms)" in found["stages"]
    assert "vision 40.0 ms," in drawn(row())["stages"]  # control


def test_a_row_without_the_text_of_its_tokens_shows_it_with_the_last_one() -> None:
    for ends in ((), (2, 8)):
        found = drawn(row(text_ends=ends))
        assert found["pieces"] == ([1200], [8]) and found["notes"][-1] == replay.NO_TEXT_TIMES
    assert replay.NO_TEXT_TIMES not in drawn(row())["notes"]  # control
    for ends in ((9, 99, 3), (5, 2, 8)):  # of a damaged row
        letters = drawn(row(text_ends=ends))["pieces"][1]
        assert min(letters) >= 0 and sum(letters) == 8
    assert "cold run" in drawn(ResultRow.from_result(result(cold=True)))["notes"]


def test_a_failure_and_a_sample_of_a_batch_have_no_replay() -> None:
    rows = fabricate.parsed([fabricate.failed(), *fabricate.batch(["a", "b"])])
    assert [drawn(one)["pieces"] for one in rows] == [([], [])] * 3
    (single,) = fabricate.parsed([fabricate.row()])
    assert drawn(single)["pieces"][0]  # control


def test_differences_are_from_the_first_answer_that_did_not_fail() -> None:
    failed, first, second = fabricate.parsed([fabricate.failed("ev"), *fabricate.pair(1)])
    second = structs.replace(second, text="A road with a car.")
    found = replay.answers([("failed", failed), ("One", first), ("Two", second)])
    assert [bool(one["changes"]) for one in found] == [False, False, True]
    assert found[0]["error"] and len({one["colour"] for one in found[1:]}) == 2


def test_a_page_of_one_sample_runs_only_our_script_and_all_it_says_is_data() -> None:
    html = replay.page(EVIL, EVIL, [(EVIL, row(text=EVIL))], "dark")
    found = read(html)
    assert not {"img", "iframe", "link", "form", "object"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "src"]
    assert html.count("</script>") == 3 and "color-scheme: dark" in html
    assert "script-src 'sha256-" in html and 'id="list"' not in html
