"""Acceptance as a file has it: the prompt in the ids, whole counts, their times."""

from __future__ import annotations

import pytest

from engine.published.read import answer_pairs
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


def test_the_prompt_stays_in_the_ids_and_in_the_cost() -> None:
    file = read(made.legacy())
    recorded, corrected = (
        answer_pairs.variants(file, corrected=False)["eventgpt"],
        answer_pairs.variants(file)["main"],
    )
    assert recorded.cost_ratio and corrected.cost_ratio
    assert recorded.cost_ratio == pytest.approx(corrected.cost_ratio * 617 / 20)
    assert answer_pairs.variants(file)["raw"].cost_ratio is None


def test_there_is_one_comparison_per_draft() -> None:
    assert list(answer_pairs.variants(read(made.pairs("F3")), corrected=False)) == [
        "egpt",
        "adapter",
    ]
    assert answer_pairs.variants(read(made.failed()), corrected=False) == {}


def test_the_files_own_figure_stands_beside_the_ids_as_they_are() -> None:
    """A target that begins as the draft does, but for the prompt in front of it."""
    value = made.legacy()
    value["speculative_decoding"]["acceptance_rate"] = 0.04
    for index, row in enumerate(value["videollava_results"]):
        row["token_ids"] = [*made.PROMPT, *made.ids(2 * index, 11), *made.ids(99, 9)]
    file = read(value)
    assert [one.rows for one in answer_pairs.stated(file)] == [1.0]
    assert [one.rows for one in answer_pairs.stated(file, corrected=False)] == [0.0]
