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
    share, total = votes.share, count(votes.votes, "vote")
    head = f"{_kind(votes)}: {total} between {votes.a} and {votes.b}"
    if share is None:
        return f"{head}; no sequence has a majority: no conclusion."
    better = {"a": votes.a, "b": votes.b}.get(votes.conclusion)
    end = f"{better} is preferred" if better else "no conclusion"
    _, percents, interval = _share(share)
    return (
        f"{head}; {votes.a} is preferred in {round(share.share * share.n):,} of "
        f"{count(share.n, 'sequence')} with a majority "
        f"({percents}, 95 % interval {interval}): {end}."
    )


def table(votes: Sequence[VoteCount]) -> ReportTable:
    """A row per pair and kind."""
    columns = ("model A", "model B", "votes", "n", "A better", "B better", "both", "neither",
               "sequences with a majority", "of them for A", "95 % interval")  # fmt: skip
    rows = tuple(
        (one.a, one.b, _kind(one).lower(), f"{one.votes:,}",
         *(f"{n:,}" for n in (one.a_better, one.b_better, one.both, one.neither)),
         *(_share(one.share) if one.share else ("0", NONE, NONE)))
        for one in votes
    )  # fmt: skip
    return ReportTable("Votes by pair of models; blind and open votes apart.", columns, rows, 3)


def _kind(votes: VoteCount) -> str:
    return "Blind" if votes.blind else "Open"


def _share(share: WinShare) -> tuple[str, str, str]:
    """n, the share and its interval with the digits by which a conclusion is drawn."""
    ends = (share.share, share.low, share.high)
    middle, low, high = (f"{100 * float(printed(end)):.3g} %" for end in ends)
    return f"{share.n:,}", middle, f"{low} to {high}"
