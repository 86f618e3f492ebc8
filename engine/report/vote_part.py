"""Visitors' votes as a table.  A conclusion needs an interval that excludes one half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.analysis.statistics import printed
from engine.analysis.vote_counts import VoteCount
from engine.quoting import NONE
from engine.report.blocks import Block, Heading, Paragraph, ReportTable
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
        yield table(found.votes)


def table(votes: Sequence[VoteCount]) -> ReportTable:
    """A row per pair and kind."""
    columns = ("model A", "model B", "votes", "preferred", "A better", "B better", "both",
               "neither", "sequences for A", "95 % interval")  # fmt: skip
    rows = []
    for one in votes:
        kinds = (("label", one.a), ("label", one.b), ("both", ""), ("neither", ""))
        share, cells = one.share, ("0 of 0", NONE)
        if share is not None:  # with the digits by which a conclusion is drawn
            low, high = (f"{100 * float(printed(end)):.3g}" for end in (share.low, share.high))
            preferring = round(share.share * share.n)
            cells = (f"{preferring:,} of {share.n:,}", f"{low} to {high} %")
        rows.append((
            one.a, one.b, "blind" if one.blind else "open", one.preferred or "no conclusion",
            *(f"{one.counts[kind]:,}" for kind in kinds), *cells,
        ))  # fmt: skip
    caption = "Votes by pair of models, blind and open ones apart; sequences with a majority."
    return ReportTable(caption, columns, tuple(rows), 4)
