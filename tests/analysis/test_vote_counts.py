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


def test_samples_without_a_sequence_count_each(tmp_path: Path) -> None:
    rows = [row | {"sequence": ""} for row in fabricate.pair(N)]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    (found,) = vote_counts.tally([vote(table, f"s{n}", "first") for n in range(10)], table)
    assert found.share is not None and found.share.n == 10 and found.preferred == "ev"


@pytest.fixture
def table(tmp_path: Path) -> pd.DataFrame:
    return frame([fabricate.run(tmp_path / "r", fabricate.pair(N))])


def vote(
    table: pd.DataFrame, sample: str, choice: Choice, *, blind: bool = False, visit: int = 1
) -> Vote:
    run = str(table["run"].iloc[0])
    answers = VotedAnswer(run, "ev", 0), VotedAnswer(run, "vl", 0)
    return Vote(sample, answers, choice, blind, visit)


def test_a_clear_preference_is_a_conclusion(table: pd.DataFrame) -> None:
    votes = [vote(table, f"s{n}", "first") for n in range(10)]
    votes += [vote(table, "s10", "both"), vote(table, "s11", "neither")]
    (found,) = vote_counts.tally(votes, table)
    assert (found.a, found.b, found.blind) == ("ev", "vl", False)
    assert found.counts == {("label", "ev"): 10, ("both", ""): 1, ("neither", ""): 1}
    assert found.share is not None and (found.share.share, found.share.n) == (1.0, 10)
    assert found.preferred == "ev"


def test_control_votes_at_random_give_no_conclusion(table: pd.DataFrame) -> None:
    votes = [vote(table, f"s{n}", "first" if n % 2 else "second") for n in range(N)]
    (found,) = vote_counts.tally(votes, table)
    assert found.share is not None and found.share.low < 0.5 < found.share.high
    assert found.preferred == ""
    assert vote_counts.tally([vote(table, "s0", "second")], table)[0].preferred == ""


def test_blind_and_open_votes_are_counted_apart(table: pd.DataFrame) -> None:
    votes = [vote(table, "s0", "first"), vote(table, "s0", "second", blind=True)]
    blind, shown = vote_counts.tally(votes, table)
    assert blind.blind and blind.counts == {("label", "vl"): 1}
    assert not shown.blind and shown.counts == {("label", "ev"): 1}


def test_a_sequence_counts_once_by_its_majority(table: pd.DataFrame) -> None:
    one = table.assign(cluster=table["cluster"].where(table["sample"] == "s11", "all"))
    votes = [vote(one, f"s{n}", "first") for n in range(10)]
    votes += [vote(one, "s11", "second"), vote(one, "s11", "first", visit=2)]
    (found,) = vote_counts.tally(votes, one)
    assert found.counts.total() == 12
    assert found.share is not None and found.share.n == 1  # the two votes on s11 cancel out
    assert found.preferred == ""


def test_votes_on_other_answers_do_not_count(table: pd.DataFrame) -> None:
    assert vote_counts.tally([vote(table, "s99", "first")], table) == ()
    other = Vote("s0", (VotedAnswer("x", "ev", 0), VotedAnswer("x", "vl", 0)), "first", True, 1)
    assert vote_counts.tally([other], table) == ()
