"""Acceptance as rows state it, by their own counts and by the ids beside them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


def found(value: Any, rule: str = "acceptance_rows") -> list[AuditFinding]:
    return [finding for finding in audit(read(value)) if finding.rule == rule]


def five(rate: float | None = None, matched: int = 2) -> Any:
    """D whose rows state 2 of 51, a begin-of-text id with the one true match."""
    value = made.five()
    for row in value["results"]:
        row["acceptance"]["matched_tokens"] = matched
        row["acceptance"]["acceptance_rate"] = matched / 51 if rate is None else rate
    return value


@pytest.mark.parametrize("value", [five(), made.pairs("F1"), made.five(semantic=True)])
def test_rows_that_state_their_own_counts_are_right(value: Any) -> None:
    assert not found(value)


def test_a_rate_that_is_not_its_counts_is_named_and_judges_no_summary() -> None:
    value = five(rate=0.9)
    (one,) = found(value)
    assert "all 4 rows state an acceptance that contradicts" in one.message
    assert "states 90.0% for 2 of 51, which is 3.9%" in one.message
    assert len(one.paths) == 4 and one.paths[0] == "results[0].acceptance.acceptance_rate"
    assert not found(value, "summaries")
    value["statistics"]["n_samples"] = 9  # control: other figures of the summary are still judged
    assert len(found(value, "summaries")) == 1


def test_a_wrong_summary_is_judged_by_rows_that_are_right() -> None:
    value = five()
    value["statistics"]["acceptance_rate_avg"] = 0.5
    (one,) = found(value, "summaries")
    assert one.figures["rows"] == pytest.approx(2 / 51)


def test_matches_are_those_of_any_way_to_count_the_ids() -> None:
    for matched in (0, 1, 2):  # leading, by position, with the begin-of-text id
        assert not found(five(matched=matched))
    value = five(matched=7)
    (one,) = found(value)
    assert "counts 7 matches, but its ids give 1" in one.message
    for row in value["results"]:
        row["eventgpt"]["output_tokens"] = []
    assert not found(value)


def test_the_rate_over_all_rows_is_compared_with_their_counts() -> None:
    value = made.pairs("F1")
    assert not found(value, "summaries")
    value["results"]["overall_token_acceptance_rate"] = 0.5
    (one,) = found(value, "summaries")
    assert "is stated as 0.5, but the rate of the rows, 4 of 80, is 0.05" in one.message


def flagged(flag: bool, same: bool) -> Any:
    value = made.speculation()
    for row in value["results"]:
        row["output_matches"] = flag
        if same:
            row["sd_output_tokens"] = row["vl_output_tokens"]
    value["summary"]["output_match_rate"] = float(flag)
    return value


@pytest.mark.parametrize("same", [True, False])
def test_a_flag_that_the_ids_contradict_is_found(same: bool) -> None:
    assert not found(flagged(same, same), "flags")
    (one,) = found(flagged(not same, same), "flags")
    assert (
        one.severity == "error"
        and "all 3 rows have an output_matches flag that the answers contradict" in one.message
    )
    assert ("identical" in one.message) is same
    assert one.paths[0] == "results[0].output_matches"


def test_the_rate_of_flags_is_a_summary_like_others() -> None:
    value = flagged(False, False)
    value["summary"]["output_match_rate"] = 1.0
    (one,) = found(value, "summaries")
    assert one.figures == {"stated": 1.0, "rows": 0.0}


def test_ways_without_a_change_stay_in_the_share() -> None:
    value = made.wallclock()
    rows = value["sd_per_sample"]["L1"]
    value["sd_per_sample"] |= {"L2": [dict(row, text=f"Answer {i}") for i, row in enumerate(rows)]}
    (one,) = found(value, "lossless")
    assert "1 of 8 answers, in 1 of 2 ways to draft" in one.message
    assert one.figures == {"different": 1.0, "compared": 8.0, "ways": 1.0}
