"""Votes are counted per pair, blind and open apart, and a sequence counts once."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from engine.analysis import vote_counts
from engine.analysis.results_table import frame
from engine.storage.schemas import Choice, Vote, VotedAnswer
from tests import fabricate

N = 12


@pytest.fixture
def table(tmp_path: Path) -> pd.DataFrame:
    return frame([fabricate.run(tmp_path / "r", fabricate.pair(N))])


def vote(
    table: pd.DataFrame, sample: str, choice: Choice, swap: bool = False, **more: object
) -> Vote:
    run = str(table["run"].iloc[0])
    sides = [VotedAnswer(run, "ev", 0), VotedAnswer(run, "vl", 0)]
    first, second = reversed(sides) if swap else sides
    return Vote(
        sample, first, second, choice, bool(more.get("blind")), int(str(more.get("seed", 1)))
    )


def test_a_clear_preference_is_a_conclusion_whatever_the_side(table: pd.DataFrame) -> None:
    votes = [vote(table, f"s{n}", "first") for n in range(5)]
    votes += [vote(table, f"s{n}", "second", swap=True) for n in range(5, 10)]
    votes += [vote(table, "s10", "both"), vote(table, "s11", "neither")]
    (found,) = vote_counts.tally(votes, table)
    assert (found.a, found.b, found.blind, found.votes) == ("ev", "vl", False, 12)
    assert (found.a_better, found.b_better, found.both, found.neither) == (10, 0, 1, 1)
    assert found.share is not None and (found.share.share, found.share.n) == (1.0, 10)
    assert found.conclusion == "a"


def test_control_votes_at_random_give_no_conclusion(table: pd.DataFrame) -> None:
    votes = [vote(table, f"s{n}", "first" if n % 2 else "second") for n in range(N)]
    (found,) = vote_counts.tally(votes, table)
    assert found.share is not None and found.share.low < 0.5 < found.share.high
    assert found.conclusion == ""
    assert vote_counts.tally([vote(table, "s0", "second")], table)[0].conclusion == ""


def test_blind_and_open_votes_are_counted_apart(table: pd.DataFrame) -> None:
    votes = [vote(table, "s0", "first"), vote(table, "s0", "second", blind=True)]
    blind, shown = vote_counts.tally(votes, table)
    assert (blind.blind, blind.b_better, shown.blind, shown.a_better) == (True, 1, False, 1)


def test_a_sequence_counts_once_by_its_majority(table: pd.DataFrame) -> None:
    one = table.assign(sequence=table["sequence"].where(table["sample"] == "s11", "all"))
    votes = [vote(one, f"s{n}", "first") for n in range(10)]
    votes += [vote(one, "s11", "second"), vote(one, "s11", "first", seed=2)]
    (found,) = vote_counts.tally(votes, one)
    assert found.votes == 12
    assert found.share is not None and found.share.n == 1  # the two votes on s11 cancel out
    assert found.conclusion == ""


def test_votes_on_other_answers_and_notes_do_not_count(table: pd.DataFrame) -> None:
    assert vote_counts.tally([vote(table, "s99", "first"), vote(table, "s0", "")], table) == ()
    other = Vote("s0", VotedAnswer("x", "ev", 0), VotedAnswer("x", "vl", 0), "first", True, 1)
    assert vote_counts.tally([other], table) == ()


def test_the_side_is_reproducible_by_the_seed_and_independent_of_the_order() -> None:
    ev, vl = VotedAnswer("r", "ev", 0), VotedAnswer("r", "vl", 0)
    sides = [vote_counts.in_order(ev, vl, f"s{n}", 7) for n in range(200)]
    assert sides == [vote_counts.in_order(ev, vl, f"s{n}", 7) for n in range(200)]
    assert sides == [not vote_counts.in_order(vl, ev, f"s{n}", 7) for n in range(200)]
    assert 70 < sum(sides) < 130
    assert sides != [vote_counts.in_order(ev, vl, f"s{n}", 8) for n in range(200)]
