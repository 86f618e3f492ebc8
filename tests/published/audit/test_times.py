"""Times: a stage that is absent, units in doubt, a warm-up in decoding."""

from __future__ import annotations

from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from tests.published.audit.test_units import scaled
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read


def without(key: str) -> Any:
    rows = made.flat()
    for row in rows:
        del row[key]
    return rows


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_total_is_not_accused_for_a_stage_that_is_absent(stage: int) -> None:
    assert not found(without(f"egpt_stage{stage}_time"), "totals")


@pytest.mark.parametrize(
    ("rows", "total"), [(without("egpt_stage1_time"), 0.9), (made.flat(), 2.0)]
)
def test_a_total_that_is_not_its_stages_is_wrong(rows: Any, total: float) -> None:
    rows[1]["egpt_time"] = total
    assert found(rows, "totals")[0].paths == ("$[1]",)


@pytest.mark.parametrize("factor", [1000.0, 0.001])
@pytest.mark.parametrize("name", ["B", "D", "F4"])
def test_no_time_is_told_whose_unit_is_in_doubt(name: str, factor: float) -> None:
    value = made.speculation() if name == "F4" else made.EVERY[name]
    told = {f.rule for f in audit(read(value))}
    assert told & {"warm_up", "speedup"}  # control: there is something to tell
    findings = audit(read(scaled(value, factor)))
    assert "implausible" in {f.rule for f in findings}
    assert not {f.rule for f in findings} & {"warm_up", "totals", "placeholder", "left_out"}
    assert name != "F4" or "speedup" not in {f.rule for f in findings}


def slow(times: float, tokens: int = 11) -> Any:
    """B whose first decoding takes so many times as long, with so many tokens."""
    value = made.legacy(6)
    for index, row in enumerate(value["eventgpt_results"]):
        row["stage4_time"] += 0.01 * index
        row["total_time"] = sum(row[f"stage{n}_time"] for n in (1, 2, 3, 4))
    first = value["eventgpt_results"][0]
    first["total_time"] += (times - 1) * first["stage4_time"]
    first["stage4_time"] *= times
    first |= {"tokens": tokens, "token_ids": made.ids(0, tokens), "output": "A road."}
    return value


def decoding(value: Any) -> list[AuditFinding]:
    return [one for one in found(value, "warm_up") if "stage4_time" in one.message]


def test_a_first_decoding_is_a_warm_up_by_the_token() -> None:
    (one,) = decoding(slow(4.0, tokens=12))
    assert one.model == "eventgpt" and one.paths == ("eventgpt_results[0]",)
    mine = read(slow(4.0, tokens=12)).of("eventgpt", corrected=True)[0]
    assert "cold:stage4_time" in mine.marks
    assert mine.times["stage4_time"] == pytest.approx(0.83)  # the mean of the others


def test_a_first_record_in_another_unit_is_no_warm_up() -> None:
    """Its stages stay as they are, so that the units are found in doubt."""
    rows = made.flat(6)
    for index, row in enumerate(rows):
        row["egpt_stage3_time"] += 0.01 * index
        row["egpt_time"] += 0.01 * index
    for key in [key for key in rows[0] if key.startswith("egpt") and key.endswith("_time")]:
        rows[0][key] *= 1000
    assert not found(rows, "warm_up")
    (one,) = found(rows, "units")
    assert one.paths == ("$[0]",)


def test_a_long_answer_and_a_short_one_are_no_warm_up() -> None:
    assert not decoding(slow(4.0, tokens=66))  # six times the tokens
    assert not decoding(slow(1.0, tokens=2))  # slow by the token, as short answers are
