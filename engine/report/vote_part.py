"""Visitors' votes in words and as a table.

A conclusion needs an interval that excludes one half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.analysis.statistics import WinShare, printed
from engine.analysis.vote_counts import VoteCount
from engine.quoting import NONE, count
from engine.report.blocks import Block, Bullets, Heading, Paragraph, ReportTable
from engine.report.report_figures import Findings

MEANING = (
    "Votes are given on the Results page, one sample at a time. Blind: the names were hidden until "
    "the choice was made. Each sequence counts once, by the majority of its votes; votes for both "
    "or neither prefer no model."
)


def voting(found: Findings) -> Iterator[Block]:
    """Nothing without votes."""
    if found.votes:
        yield Heading(2, "Votes")
        yield Paragraph(MEANING)
        yield Bullets(tuple(map(sentence, found.votes)))
        yield table(found.votes)


def sentence(votes: VoteCount) -> str:
    """One pair's votes of one kind, with the interval and the conclusion."""
    head = f"{_kind(votes)}: {count(votes.votes, 'vote')} between {votes.a} and {votes.b}"
    if votes.share is None:
        return f"{head}; no sequence has a majority: no conclusion."
    wins = round(votes.share.share * votes.share.n)
    sequences = count(votes.share.n, "sequence")
    better = {"a": votes.a, "b": votes.b}.get(votes.conclusion)
    end = f"{better} is preferred" if better else "no conclusion"
    return (
        f"{head}; {votes.a} is preferred in {wins:,} of {sequences} with a majority "
        f"({_percent(votes.share.share)}, 95 % interval {_interval(votes.share)}): {end}."
    )


def table(votes: Sequence[VoteCount]) -> ReportTable:
    """A row per pair and kind."""
    columns = ("model A", "model B", "votes", "n", "A better", "B better", "both", "neither",
               "sequences with a majority", "of them for A", "95 % interval")  # fmt: skip
    rows = tuple(
        (one.a, one.b, _kind(one).lower(), f"{one.votes:,}",
         *(f"{n:,}" for n in (one.a_better, one.b_better, one.both, one.neither)),
         *_share(one.share))
        for one in votes
    )  # fmt: skip
    return ReportTable("Votes by pair of models; blind and open votes apart.", columns, rows, 3)


def _kind(votes: VoteCount) -> str:
    return "Blind" if votes.blind else "Open"


def _share(share: WinShare | None) -> tuple[str, str, str]:
    if share is None:
        return "0", NONE, NONE
    return f"{share.n:,}", _percent(share.share), _interval(share)


def _interval(share: WinShare) -> str:
    return f"{_percent(share.low)} to {_percent(share.high)}"


def _percent(share: float) -> str:
    """With the digits by which a conclusion is drawn."""
    return f"{100 * float(printed(share)):.3g} %"
