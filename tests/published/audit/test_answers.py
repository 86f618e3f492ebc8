"""Answers: acceptance stated and by chance, what speculation changed, limits that cut."""

from typing import Any

import pytest

from engine.published.audit import AuditFinding
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


def capped(value: Any) -> list[AuditFinding]:
    return found(value, "capped")


def pairs(cut: int, whole: int, limit: int = 50, named: bool = True) -> Any:
    """F2: of the target's answers some stop at the limit without an end, the others end before."""
    value = made.pairs("F2", cut + whole)
    for index, row in enumerate(value["results"]):
        length = limit if index < cut else 20 + index
        row["vl_tokens"] = made.ids(2 * index + 1, length, end=index >= cut)
    value["config"] = {"max_tokens": limit} if named else {}
    return value


@pytest.mark.parametrize(("cut", "whole", "trips"), [(3, 12, 1), (2, 3, 0), (3, 13, 0), (0, 5, 0)])
def test_a_fifth_and_three_answers_are_the_least(cut: int, whole: int, trips: int) -> None:
    assert len(capped(pairs(cut, whole))) == trips


def test_equal_answers_without_a_limit_have_equal_ends() -> None:
    """EOS was stripped: one text for four samples is as long four times."""
    value = pairs(4, 3, limit=30, named=False)
    for row in value["results"][:4]:
        row["vl_tokens"] = made.ids(5, 30, end=False)
    assert not capped(value)
    value["config"] = {"max_new_tokens": 30}
    assert len(capped(value)) == 1


def test_without_ids_the_settings_name_the_limit() -> None:
    value = made.texts()
    assert not capped(value)
    value["config"]["max_new_tokens"] = 50
    (one,) = capped(value)
    assert one.model == "vl" and "the file has no ids to show an end" in one.message
    value["config"] = {"max_samples": 50}
    assert not capped(value)


def test_many_ways_cut_alike_are_one_finding() -> None:
    value = made.wallclock()
    value["config"]["max_new_tokens"] = 50
    value["sd_per_sample"] |= {"L2": value["sd_per_sample"]["L1"]}
    (one,) = capped(value)
    assert one.message.startswith("3 models (baseline, L1, ...), each: all 4 answers stop at 50")
    assert len(one.paths) == 12


def test_both_caps_explain_a_ratio_of_decoding_times() -> None:
    """50 against 30 tokens, 790 against 300 ms."""
    value = made.speculation()
    value["config"]["max_draft"] = 30
    for row in value["results"]:
        for key in ("egpt_draft_tokens", "vl_output_tokens"):
            row[key] = [token + 7 * (token == 2) for token in row[key]]
    (one,) = found(value, "unequal")
    assert one.figures["ratio"] == pytest.approx(790 / 300)
    assert one.figures["tokens_ratio"] * one.figures["per_token_ratio"] == pytest.approx(790 / 300)
    assert "1.67 times the tokens and 1.58 times the time per token" in one.message
    assert "EventGPT (egpt) is limited to 30 tokens (config.max_draft)" in one.message
    assert "Video-LLaVA (vl) is limited to 50 tokens (config.max_tokens)" in one.message
