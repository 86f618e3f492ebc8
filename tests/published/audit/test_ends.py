"""Limits that cut answers: by ids, by counts, by the settings that name them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.published.audit import AuditFinding
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found


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


def test_a_share_of_answers_at_the_limit_is_found_and_the_limit_named() -> None:
    value = pairs(7, 3)
    (one,) = capped(value)
    assert (
        "7 of 10 answers stop at 50 tokens, the limit of config.max_tokens, without an end-of-"
        "text id" in one.message
    )
    assert one.figures == {"tokens": 50.0, "answers": 10.0, "share": 0.7} and len(one.paths) == 7
    (one,) = capped(pairs(7, 3, named=False))
    assert "7 of 10 answers stop at 50 tokens without" in one.message
    for row in value["results"]:
        row["vl_tokens"][-1] = made.EOS
    assert not capped(value)


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
