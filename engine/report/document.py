"""The report in words: findings to blocks.  Each sentence and each cell comes from the findings.

Boundary: wording and order; what the figures are is findings', how they look the renderers'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from engine.analysis import machine_loads, model_summary, throughput
from engine.analysis.agreement import AttributeScore
from engine.analysis.metrics import BY_NAME, METRICS
from engine.analysis.model_summary import Count, Figure
from engine.analysis.results_table import GROUPS, labels, measured
from engine.analysis.statistics import Spread
from engine.analysis.throughput import Throughput
from engine.report import device_notes, svg_charts
from engine.report.comparison_part import comparing
from engine.report.document_parts import Block, Bullets, Heading, Picture, Table, Text, number
from engine.report.origin_part import flow, origin
from engine.report.report_figures import Findings
from engine.types import STAGES

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

_SOURCES = {
    "cached": "read from the cache: read times, not the stage's",
    "hook": "measured by a hook inside generate()",
    "derived": "derived: the total less the hook's time",
    "not measured": "not measured",
}
_FIGURE_COLUMNS = ("n", "median", "MAD", "mean", "sd", "p90", "p99", "least", "greatest")


def title(found: Findings) -> str:
    return f"StageScope report: {', '.join(run.id for run in found.runs)}"


def document(found: Findings) -> list[Block]:
    """The whole report, in order."""
    blocks: list[Block] = [Heading(1, title(found))]
    parts = (origin, results, _figures, together, apart, comparing, agreement, flow, meanings)
    for part in parts:
        blocks += part(found)
    return blocks


_IN_TEXT = (*STAGES, "total", "cpu", "ttft", "tpot", "tokens_per_s", "new_tokens")


def as_text(table: pd.DataFrame) -> str:
    """A few lines for a terminal: counts and medians per model, and what devices they are of."""
    figures, left = (
        model_summary.figures(table),
        {one.label: one for one in throughput.alone(table)},
    )
    lines = []
    for count in model_summary.counts(table):
        lines.append(f"{count.label}: {count.answered:,} of {count.results:,} results answered")
        lines += [f"  {off_script(count)}"] if count.off_script else []
        some = [one for one in throughput.throughputs(table) if one.label == count.label]
        grouped = [_throughput_line(one) for one in some]
        found = (model_summary.find(figures, count.label, name) for name in _IN_TEXT)
        single = [line for figure in found for line in _text_line(figure)]
        if count.label in left:  # the batches are what the run is about: they come first
            lines += [*grouped, f"  {left[count.label].sentence}", *single]
        else:
            lines += [*single, *grouped]
    lines += [*device_notes.remarks(table), *machine_loads.remarks(table)]
    return "\n".join(lines)


def _throughput_line(one: Throughput) -> str:
    cached = f", {one.cached:,} with cached features" if one.cached else ""
    return (
        f"  {f'batch of {one.batch:,}':12s} median {number(one.tokens_per_s.median):>8} new "
        f"tokens/s, {number(one.samples_per_s.median)} samples/s, {number(one.ms.median)} ms "
        f"(batches {one.n:,}{cached})"
    )


def _text_line(figure: Figure | None) -> list[str]:
    if figure is None:
        return []
    kind, source = BY_NAME[figure.metric], "" if figure.source == "measured" else figure.source
    p90 = f", p90 {number(figure.p90)}" if figure.p90 is not None else ""
    return [
        f"  {kind.label:12s} median {number(figure.median):>8} {figure.unit} "
        f"(MAD {number(figure.mad)}, n {figure.n:,}{p90}) {source}".rstrip()
    ]


def results(found: Findings) -> Iterator[Block]:
    yield Heading(2, "Results")
    grouped = bool(found.throughputs)  # a column that says nothing elsewhere
    rows = tuple(
        (c.label, *(f"{n:,}" for n in (c.results, c.answered, c.failed, c.cold, c.warm_up)),
         *(f"{n:,}" for n in (c.after_pause, c.cached, c.capped)), _count(c.texts),
         *([f"{c.batched:,}"] if grouped else []))
        for c in found.counts
    )  # fmt: skip
    columns = ("model", "results", "answered", "failed", "cold", "warm-up", "after a pause",
               "cached", "stopped at the limit", "different answers",
               *(["in a batch"] if grouped else []))  # fmt: skip
    yield Table("Counts per model; warm-up runs are apart from results.", columns, rows)
    if remarks := tuple(_remarks(found)):
        yield Bullets(remarks)
    if found.failures:
        lines = ((label, why, f"{n:,}") for (label, why), n in found.failures.items())
        yield Table("Failures, each reason once.", ("model", "reason", "n"), tuple(lines), 2)


def off_script(count: Count) -> str:
    """What to know of answers to questions that a demo model was not trained on."""
    return (
        f"{count.off_script:,} of {count.answered:,} answers of {count.label} are to questions "
        "that this demo model was not trained on: they mean nothing, and no accuracy and no "
        "overlap counts them."
    )


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _remarks(found: Findings) -> Iterator[str]:
    """What a reader should know before the figures; only what the results show."""
    yield from device_notes.remarks(found.table)
    yield from machine_loads.remarks(found.table)
    yield from _backends(found)
    for one in throughput.alone(found.table):
        yield one.sentence
    for count in found.counts:
        if count.texts is not None and count.samples >= 10 and count.texts <= count.samples / 10:
            yield (
                f"{count.label} gave only {count.texts:,} different answers to {count.samples:,} "
                "samples: it may not look at them."
            )
        if count.capped and count.answered:
            yield (
                f"{count.capped:,} of {count.answered:,} answers of {count.label} were cut at the "
                "greatest length: their lengths and times are not natural."
            )
        if count.off_script:
            yield off_script(count)
        if not count.answered:
            yield f"{count.label} answered nothing: there is no figure for it, and none is 0."


def _backends(found: Findings) -> Iterator[str]:
    """Where a run's answers were not all decoded by what it asked for."""
    answered = found.table[(found.table["error"] == "") & (found.table["phase"] == "measured")]
    for (_, model, run), lines in answered.groupby(["number", "model", "run"], sort=False):
        ran = lines["backend"].value_counts()
        asked = next(iter(lines["backend_asked"]))
        if len(ran) > 1 or (asked in ("eager", "compiled") and asked not in ran):
            words = ", ".join(f"{name} decoded {n:,}" for name, n in ran.items())
            yield (
                f"Run {run} asked for the backend {asked or 'of its time'}; of {len(lines):,} "
                f"answers of {model} {words}. They are kept apart by the backend that ran."
            )


def _figures(found: Findings) -> Iterator[Block]:
    yield Heading(2, "Figures")
    shown = [figure for figure in found.figures if figure.group == "measured"]
    if not shown:
        alone = " by itself" if found.throughputs else ""
        yield Text(f"No result was measured{alone}: there are no figures.")
        return
    yield Picture(_bar_words(found), lambda: svg_charts.stage_bars(found.figures, _measured(found)))
    yield Picture(
        "The spread of total times: least, first quarter, median, third quarter, greatest.",
        lambda: _distribution(found),
    )
    for label in _measured(found):
        yield figure_table(label, shown)


def figure_table(label: str, figures: Iterable[Figure]) -> Table:
    """Every figure of one label; those of other labels are left out."""
    rows = [_figure_row(figure) for figure in figures if figure.label == label]
    columns = ("metric", "source", *_FIGURE_COLUMNS)
    return Table(f"{label}: measured results.", columns, tuple(rows), 2)


def _measured(found: Findings) -> list[str]:
    return labels(measured(found.table))


def _distribution(found: Findings) -> alt.LayerChart:
    lines = measured(found.table)
    lines = lines[~lines["cached"].astype(bool)] if not lines["cached"].all() else lines
    families = dict(zip(lines["label"], lines["family"], strict=True))
    return svg_charts.distributions(lines, labels(lines), "total", families)


def _bar_words(found: Findings) -> str:
    told = []
    for label in _measured(found):
        parts = [
            (name, model_summary.find(found.figures, label, name)) for name in svg_charts.PARTS
        ]
        words = ", ".join(f"{name} {number(f.median)} ms" for name, f in parts if f is not None)
        told.append(f"{label}: {words}.")
    return "Medians of the stages. " + " ".join(told)


def _figure_row(figure: Figure) -> tuple[str, ...]:
    kind = BY_NAME[figure.metric]
    values = (figure.median, figure.mad, figure.mean, figure.sd, figure.p90, figure.p99)
    source = _SOURCES.get(figure.source, figure.source)
    cells = (*map(number, values), number(figure.low), number(figure.high))
    return (f"{kind.label} ({figure.unit})", source, f"{figure.n:,}", *cells)


def together(found: Findings) -> Iterator[Block]:
    """Batches, beside single runs by the same formula."""
    if not found.throughputs:
        return
    yield Heading(2, "Throughput of batches")
    yield Bullets((throughput.APART, throughput.MEANING))
    rows = tuple(
        (one.label, f"{one.batch:,}", f"{one.cached:,}", f"{one.n:,}", f"{one.samples:,}",
         number(one.tokens_per_s.median), _range(one.tokens_per_s),
         number(one.samples_per_s.median), _range(one.samples_per_s), number(one.ms.median))
        for one in found.throughputs
    )  # fmt: skip
    columns = ("model", "samples at once", "of them cached", "batches", "samples",
               "new tokens/s", "least to greatest", "samples/s", "least to greatest",
               "time of a batch (ms)")  # fmt: skip
    caption = "Medians over batches; single runs count as batches of one."
    yield Table(caption, columns, rows)


def _range(spread: Spread) -> str:
    return f"{number(spread.low)} to {number(spread.high)}" if spread.n > 1 else "-"


def apart(found: Findings) -> Iterator[Block]:
    """Cold runs, warm-up and results after a pause: shown, and in no mean."""
    rows = [
        (figure.label, figure.group, *_figure_row(figure))
        for group in GROUPS[1:]
        for figure in found.figures
        if figure.group == group and figure.metric in ("vision", "decode", "total", "ttft", "tpot")
    ]
    if rows:
        columns = ("model", "group", "metric", "source", *_FIGURE_COLUMNS)
        yield Heading(2, "Kept apart")
        yield Table("Results that are in no figure above.", columns, tuple(rows), 4)


def agreement(found: Findings) -> Iterator[Block]:
    if found.attributes:
        yield Heading(2, "Attribute accuracy")
        yield Text(
            "Demo scenes have known content. Accuracy is the share of samples whose answer states "
            "the attribute rightly; stated is the share that states it at all."
        )
        scores = tuple(map(_score_row, found.attributes))
        columns = ("model", "attribute", "n", "accuracy", "stated", "always the commonest value")
        yield Table("Attributes read from the answers.", columns, scores, 2)
    if found.overlaps:
        yield Heading(2, "Overlap with references")
        yield Text(
            "Word F1 between answer and reference (the harmonic mean of the shares of words in "
            "common, from 0 to 1). It says how alike the words are, not whether an answer is right."
        )
        lines = tuple(
            (o.label, f"{o.n:,}", *(f"{v:.3f}" for v in (o.median, o.low_quarter, o.high_quarter)))
            for o in found.overlaps
        )
        names = ("model", "n", "median", "first quarter", "third quarter")
        yield Table("Word F1.", names, lines)


def _score_row(score: AttributeScore) -> tuple[str, ...]:
    right = "never stated" if score.accuracy is None else f"{score.accuracy:.3f}"
    shares = (f"{score.claimed:.3f}", f"{score.majority:.3f}")
    return (score.label, score.attribute, f"{score.n:,}", right, *shares)


def meanings(found: Findings) -> Iterator[Block]:
    yield Heading(2, "What the figures mean")
    rows = tuple((kind.label, kind.unit, kind.meaning) for kind in METRICS)
    yield Table("Definitions.", ("metric", "unit", "definition"), rows, 3)
    batches = ", nor in a batch" if found.throughputs else ""
    yield Text(
        f"Of {len(found.table):,} results {len(measured(found.table)):,} are in the figures: those "
        "that were answered, neither cold nor warm-up nor the first after a pause"
        f"{batches}. MAD is the median distance from the median; p90 needs 10 values and p99 needs "
        "100. Times read from the cache are never mixed with measured ones."
    )
