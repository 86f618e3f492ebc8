"""The part of a report that replays one sample: the first one that every model has answered.

Boundary: wording and the choice of the rows; replay writes the HTML.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from engine.analysis.results_table import labels, measured
from engine.quoting import count, ms
from engine.report.blocks import Block, ChartBlock, Heading, Paragraph
from engine.report.replay import ReplayLane, lane, section
from engine.report.report_figures import Findings


def replayed(found: Findings) -> Iterator[Block]:
    """Nothing if no sample has measured times of every model."""
    for sample, question, lanes in _samples(found):
        words = (f"{one.label} {ms(one.total_ms)}, {count(one.tokens, 'token')}" for one in lanes)
        yield Heading(2, "Replay of one sample")
        yield Paragraph(
            f"Sample {sample}: {question} Stages and tokens at their recorded times, in the first "
            "measured run of each model."
        )
        yield ChartBlock(f"Total times: {'; '.join(words)}.", partial(section, lanes))
        return


def _samples(found: Findings) -> Iterator[tuple[str, str, tuple[ReplayLane, ...]]]:
    """Each sample that all measured models can replay: its name, its question and the lanes."""
    table = measured(found.table)
    wanted = [label for label in labels(found.table) if label in set(table["label"])]
    for sample, lines in table.groupby("sample", sort=False):
        first = lines.drop_duplicates("label")
        places = dict(
            zip(first["label"], first[["number", "offset"]].itertuples(index=False), strict=True)
        )
        if not wanted or not set(wanted) <= set(places):
            continue
        rows = [
            found.runs[number].row(offset) for number, offset in map(places.__getitem__, wanted)
        ]
        lanes = [lane(label, row) for label, row in zip(wanted, rows, strict=True)]
        whole = tuple(one for one in lanes if one is not None)
        if len(whole) == len(wanted):
            yield str(sample), rows[0].prompt or "", whole
