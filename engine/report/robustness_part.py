"""Accuracy and changed answers by the strength of a change, in words, tables and charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from engine.analysis.robustness import Measure, Point, Robustness
from engine.media_options import Change, Perturbation
from engine.palette import toned
from engine.quoting import NONE
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph, ReportTable
from engine.report.report_figures import Findings

if TYPE_CHECKING:
    import altair as alt

NAMES: Mapping[Measure, str] = {
    "choices": "Accuracy of multiple-choice questions",
    "attributes": "Attribute accuracy",
    "changed": "Changed answers",
}
MEANINGS: Mapping[Measure, str] = {
    "choices": "the share of questions with the right option",
    "attributes": (
        "the share of known attributes of demo scenes that the answer states rightly, of those "
        "that the model states at strength 0"
    ),
    "changed": "the share of answers whose token ids differ from the same model's at strength 0",
}
CHANGES: Mapping[Change, str] = {
    "drop": "each event is lost with this probability",
    "jitter": "the standard deviation of the noise on the times",
    "hot": "this share of the pixels fires",
    "window": "the window is shortened by this share",
    "rate": "this share is removed evenly in time",
}
SAME = (
    "Each share is over the records that have an answer at that strength and at strength 0; a "
    "result without an answer is in no share and is counted as failed. Intervals (95 %) are over "
    "sequences."
)


def robust(found: Findings) -> Iterator[Block]:
    """Nothing without perturbed runs; one sentence if they form no sweep."""
    if found.robustness is not None:
        yield Heading(2, "Robustness")
        yield from parts(found.robustness)


def parts(sweep: Robustness, charts: bool = True) -> Iterator[Block]:
    """Definitions, then a chart and a table per measure; or why there are no curves."""
    if sweep.problem or sweep.change is None:
        yield Paragraph(sweep.problem)
        return
    yield Bullets(tuple(definitions(sweep)))
    for measure in sweep.measures:
        if charts:
            yield ChartBlock(words(sweep, measure), partial(chart, sweep, measure))
        yield table(sweep, measure)


def definitions(sweep: Robustness) -> Iterator[str]:
    if sweep.change is not None:
        yield f"{axis(sweep.change)}: {CHANGES[sweep.change]}. Seed {sweep.seed}."
    if sweep.others:
        yield f"All these runs are also perturbed by {sweep.others}."
    for measure in sweep.measures:
        yield f"{NAMES[measure]}: {MEANINGS[measure]}."
    yield SAME
    yield from sweep.notes


def axis(change: Change) -> str:
    """The name of the swept strength with its unit."""
    return f"{change} ({'ms' if change == 'jitter' else 'share'})"


def table(sweep: Robustness, measure: Measure) -> ReportTable:
    rows = tuple(
        (curve.title, _strength(sweep, point), f"{point.n:,}", f"{point.sequences:,}",
         f"{point.failed:,}", f"{point.share:.3f}", _interval(point))
        for curve in sweep.curves
        if curve.measure == measure
        for point in curve.points
    )  # fmt: skip
    columns = ("model", "strength", "n", "sequences", "failed", "share", "95 % interval")
    return ReportTable(f"{NAMES[measure]} by strength.", columns, rows, 2)


def _strength(sweep: Robustness, point: Point) -> str:
    assert sweep.change is not None
    return str(Perturbation(sweep.change, point.strength))


def _interval(point: Point) -> str:
    if point.low is None or point.high is None:
        return NONE
    return f"{point.low:.3f} to {point.high:.3f}"


def words(sweep: Robustness, measure: Measure) -> str:
    sentences = [f"{NAMES[measure]} by strength, with 95 % intervals."]
    for curve in sweep.curves:
        if curve.measure == measure:
            values = ", ".join(
                f"{point.share:.2f} at {_strength(sweep, point)}"
                + (f" ({_interval(point)})" if _interval(point) != NONE else "")
                for point in curve.points
            )
            sentences.append(f"{curve.title}: {values}.")
    return " ".join(sentences)


def chart(sweep: Robustness, measure: Measure) -> alt.LayerChart:
    from engine.report import charts

    assert sweep.change is not None
    colours = toned({curve.title: curve.family for curve in sweep.curves})
    unit = 1000 if sweep.change == "jitter" else 1  # as axis() names it
    lines = [
        {"name": curve.title, "at": point.strength / unit, "value": point.share,
         "low": point.low, "high": point.high}
        for curve in sweep.curves
        if curve.measure == measure
        for point in curve.points
    ]  # fmt: skip
    return charts.curves(lines, axis(sweep.change), "share, with 95 % interval", colours)
