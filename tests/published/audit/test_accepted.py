"""Acceptance as rows state it and by chance, and what speculation took and changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.published.read import synthetic as made
from tests.published.read.synthetic import found


def five(rate: float | None = None, matched: int = 2) -> Any:
    """D whose rows state 2 of 51, a begin-of-text id with the one true match."""
    value = made.five()
    for row in value["results"]:
        row["acceptance"]["matched_tokens"] = matched
        row["acceptance"]["acceptance_rate"] = matched / 51 if rate is None else rate
    return value


@pytest.mark.parametrize("value", [five(), made.pairs("F1"), made.five(semantic=True)])
def test_rows_that_state_their_own_counts_are_right(value: Any) -> None:
    assert not found(value, "acceptance_rows")


def test_a_rate_that_is_not_its_counts_is_named_and_judges_no_summary() -> None:
    value = five(rate=0.9)
    (one,) = found(value, "acceptance_rows")
    assert "all 4 rows state an acceptance that contradicts" in one.message
    assert "states 90.0% for 2 of 51, which is 3.9%" in one.message
    assert len(one.paths) == 4 and one.paths[0] == "results[0].acceptance.acceptance_rate"
    assert not found(value, "summaries")
    value["statistics"]["n_samples"] = 9  # control: other figures of the summary are still judged
    assert len(found(value, "summaries")) == 1


def flagged(flag: bool, same: bool) -> Any:
    value = made.speculation()
    for row in value["results"]:
        row["output_matches"] = flag
        if same:
            row["sd_output_tokens"] = row["vl_output_tokens"]
    value["summary"]["output_match_rate"] = float(flag)
    return value


@pytest.mark.parametrize(
    ("value", "place", "key", "rate"),
    [
        (five(), "statistics", "acceptance_rate_avg", 2 / 51),
        (made.pairs("F1"), "results", "overall_token_acceptance_rate", 0.05),
        (flagged(False, False), "summary", "output_match_rate", 0.0),
    ],
)
def test_a_stated_rate_is_compared_with_the_rows(
    value: Any, place: str, key: str, rate: float
) -> None:
    assert not found(value, "summaries")
    value[place][key] = 0.5
    (one,) = found(value, "summaries")
    assert one.figures == {"stated": 0.5, "rows": pytest.approx(rate)}


def test_matches_are_those_of_any_way_to_count_the_ids() -> None:
    for matched in (0, 1, 2):  # leading, by position, with the begin-of-text id
        assert not found(five(matched=matched), "acceptance_rows")
    value = five(matched=7)
    (one,) = found(value, "acceptance_rows")
    assert "counts 7 matches, but its ids give 1" in one.message
    for row in value["results"]:
        row["eventgpt"]["output_tokens"] = []
    assert not found(value, "acceptance_rows")


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


def alike(count: int) -> Any:
    """Every draft begins as every target does, whatever the sample."""
    value = made.pairs("F1", count)
    for row in value["samples"]:
        row["eventgpt_tokens"] = [7, *range(100, 119)]
        row["videollava_tokens"] = [7, *range(200, 229)]
    return value


@pytest.mark.parametrize("count", [2, 5])
def test_chance_is_named_for_few_pairs_too(count: int) -> None:
    (one,) = found(alike(count), "chance")
    assert one.figures["position_rate"] == one.figures["shuffled_rate"] == pytest.approx(0.05)
    assert ("(only " in one.message) == (count < 5)
    assert "says nothing about the images" in one.message


def test_matches_that_shuffling_loses_and_a_single_pair_have_no_chance() -> None:
    assert not found(made.pairs("F1", 3), "chance") and not found(alike(1), "chance")


def test_the_drafts_own_time_is_without_its_warm_up() -> None:
    value = made.speculation(5)
    (one, *_) = found(value, "speedup")
    assert one.figures["with_draft_ms"] == pytest.approx(1110 + 300 + 120)
    for index, row in enumerate(value["results"]):
        row["egpt_prefill_ms"] = 90.0 if index else 250.0
    (one, *_) = found(value, "speedup")
    assert one.figures["with_draft_ms"] == pytest.approx(1110 + 300 + 90)
    assert "draft's own 390 ms" in one.message and found(value, "warm_up")


def test_answers_that_changed_may_have_been_sampled_where_nothing_is_said() -> None:
    value = made.wallclock()
    assert "unless the outputs were sampled" in found(value, "lossless")[0].message
    for setting in ({"do_sample": False}, {"temperature": 0.0}):
        value["config"] = {"gamma": 5, **setting}
        assert "sampled" not in found(value, "lossless")[0].message
