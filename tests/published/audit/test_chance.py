"""Chance is named however few the pairs, and only where true pairs do not exceed it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


def chances(value: Any) -> list[AuditFinding]:
    return [one for one in audit(read(value)) if one.rule == "chance"]


def alike(count: int) -> Any:
    """Every draft begins as every target does, whatever the sample."""
    value = made.pairs("F1", count)
    for row in value["samples"]:
        row["eventgpt_tokens"] = [7, *range(100, 119)]
        row["videollava_tokens"] = [7, *range(200, 229)]
    return value


@pytest.mark.parametrize("count", [2, 3, 5])
def test_chance_is_named_for_few_pairs_too(count: int) -> None:
    (found,) = chances(alike(count))
    assert found.figures["position_rate"] == found.figures["shuffled_rate"] == pytest.approx(0.05)
    assert ("(only " in found.message) == (count < 5)
    assert "says nothing about the images" in found.message


def test_a_match_that_shuffling_loses_is_no_chance() -> None:
    assert chances(made.pairs("F1", 3)) == []


def test_one_pair_has_no_chance_to_compare_with() -> None:
    assert chances(alike(1)) == []
