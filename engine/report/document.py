"""The report as blocks: its sentences and tables.

A model is named the fastest only if its paired intervals against all others exclude equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.analysis import choice_accuracy, machine_loads, model_summary, throughput
from engine.analysis.agreement import AttributeScore
from engine.analysis.compared import StageTimes
from engine.analysis.metrics import BY_NAME, METRICS
from engine.analysis.model_summary import Count, Figure, find, stage_medians
from engine.analysis.pairs import Comparison
from engine.analysis.results_table import GROUPS, labels, measured
from engine.analysis.statistics import Spread
from engine.analysis.throughput import Throughput
from engine.palette import toned
from engine.quoting import NONE, count, number
from engine.report import device_notes
from engine.report.blocks import (
    Block,
    Bullets,
    ChartBlock,
    Contents,
    Heading,
    Paragraph,
    ReportTable,
)
from engine.report.choice_part import choosing, finding, text_line
from engine.report.comparison_part import comparing
from engine.report.origin_part import flow, origin
from engine.report.replay import replayed
from engine.report.report_figures import UNVERIFIED, Findings
from engine.report.robustness_part import robust
from engine.report.vote_part import voting
from engine.types import STAGES

if TYPE_CHECKING:
    import pandas as pd

_SOURCES = {
    "cached": "read from the cache: time of the read, not of the stage",
    "hook": "measured by a hook inside generate()",
    "derived": "derived: total minus the hook's time",
    "not measured": "not measured",
}
_FIGURE_COLUMNS = ("n", "median", "MAD", "mean", "sd", "p90", "p99", "min", "max")


def title(found: Findings) -> str:
    return f"StageScope report: {', '.join(run.id for run in found.runs)}"


def document(found: Findings) -> list[Block]:
    """The whole report: one page for a reader in a hurry, then everything, then the settings."""
    parts = (results, choosing, _figures, replayed, together, apart, comparing, agreement, robust,
             voting)  # fmt: skip
    body = [block for part in parts for block in part(found)]
    body += [Heading(2, "Appendix: settings and definitions")]
    body += [
        replace(block, level=3) if isinstance(block, Heading) else block
        for part in (origin, flow, meanings)
        for block in part(found)
    ]
    names = [one.text for one in body if isinstance(one, Heading) and one.level == 2]
    return [Heading(1, title(found)), *first_page(found), Contents(tuple(names)), *body]


def first_page(found: Findings) -> Iterator[Block]:
    """What a reader in a hurry needs."""
    from engine.report import charts

    names = labels(measured(found.table))
    yield Paragraph(_ran(found))
    yield Paragraph(verdict(found, names))
    medians = stage_medians(found.figures, names)
    if any(medians.values()):
        yield ChartBlock(charts.stage_words(medians), lambda: charts.stage_bars(medians))
    yield Heading(2, "Findings")
    yield Bullets((_stages(medians), _lengths(found, names), *finding(found), _standing(found)))


def _ran(found: Findings) -> str:
    results = sum(one.results for one in found.counts)
    models = ", ".join(one.label for one in found.counts)
    samples = count(int(found.table["sample"].nunique()), "sample")
    return f"What ran: {count(results, 'result')} of {models} on {samples}."


def verdict(found: Findings, names: Sequence[str]) -> str:
    """Which of these labels was fastest, or why none can be named."""
    if not names:
        return "Verdict: none, because no result was measured."
    totals = [one for one in found.comparisons if one.metric == "total"]
    medians = {name: find(found.figures, name, "total") for name in names}
    known = [f"{name} {number(one.median)} ms" for name, one in medians.items() if one]
    times = f" Median totals: {', '.join(known)}." if known else ""
    if len(names) == 1:
        return f"Verdict: none, because only {names[0]} has measured results.{times}"
    for name in names:
        if sum(_won(one, name) for one in totals) == len(names) - 1:
            return f"Verdict: {name} was fastest; the paired intervals exclude equality.{times}"
    return f"Verdict: no model was fastest beyond doubt. {_doubt(totals)}{times}"


def _won(one: Comparison, name: str) -> bool:
    return (one.a, one.verdict) == (name, "less") or (one.b, one.verdict) == (name, "more")


def _doubt(totals: Sequence[Comparison]) -> str:
    """Why the first couple without a faster model has none."""
    for one in totals:
        if one.verdict not in ("less", "more"):
            return f"{one.a} and {one.b}: {one.reason or one.verdict}."
    return "Not all models can be compared with each other."


def _stages(medians: StageTimes) -> str:
    """The longest stage of each model."""
    longest = []
    for name, parts in medians.items():
        if whole := sum(parts.values()):
            stage = max(parts, key=lambda part: parts[part])
            longest.append(f"{name}: {stage}, {parts[stage] / whole:.0%}")
    return f"The longest stage and its share: {'; '.join(longest) or 'not measured'}."


def _lengths(found: Findings, names: Sequence[str]) -> str:
    """Tokens and time per token, because a shorter answer takes less time."""
    told = []
    for name in names:
        tokens = find(found.figures, name, "new_tokens")
        tpot = find(found.figures, name, "tpot")
        told.append(f"{name}: {_median(tokens)} new tokens, {_median(tpot)} ms per token")
    return f"Lengths of the answers (medians): {'; '.join(told) or 'not measured'}."


def _median(figure: Figure | None) -> str:
    return "unknown" if figure is None else number(figure.median)


def _standing(found: Findings) -> str:
    """How far the results can be trusted: failures, and answers that no certificate covers."""
    results = sum(one.results for one in found.counts)
    failed = sum(one.failed for one in found.counts)
    counts = [(key, n) for known in found.verified.values() for key, n in known.items()]
    open_ = sum(n for key, n in counts if key == UNVERIFIED or key.startswith("not covered"))
    return (
        f"{failed:,} of {results:,} results failed; no certificate covers {open_:,} of "
        f"{sum(n for _, n in counts):,} answers, warm-up included."
    )


_IN_TEXT = (*STAGES, "total", "cpu", "ttft", "tpot", "tokens_per_s", "new_tokens")


def as_text(table: pd.DataFrame) -> str:
    """A few lines for a terminal: counts and medians per model, notes on devices and load."""
    figures, left = (
        model_summary.figures(table),
        {one.label: one for one in throughput.alone(table)},
    )
    lines, choices = [], choice_accuracy.accuracies(table)
    for model in model_summary.counts(table):
        lines.append(f"{model.label}: {model.answered:,} of {model.results:,} results answered")
        lines += [f"  {off_script(model)}"] if model.off_script else []
        batches = [one for one in throughput.throughputs(table) if one.label == model.label]
        grouped = [_throughput_line(one) for one in batches]
        lines += [text_line(one) for one in choices if one.label == model.label]
        found = (model_summary.find(figures, model.label, name) for name in _IN_TEXT)
        single = [line for figure in found for line in _text_line(figure)]
        if model.label in left:  # a run of batches: they come first
            lines += [*grouped, f"  {left[model.label].sentence}", *single]
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
    grouped = bool(found.throughputs)  # otherwise the column would be empty
    rows = tuple(
        (c.label, *(f"{n:,}" for n in (c.results, c.answered, c.failed, c.cold, c.warm_up)),
         *(f"{n:,}" for n in (c.after_pause, c.cached, c.capped)), _count(c.texts),
         *([f"{c.batched:,}"] if grouped else []))
        for c in found.counts
    )  # fmt: skip
    columns = ("model", "results", "answered", "failed", "cold", "warm-up", "after a pause",
               "cached", "stopped at the limit", "different answers",
               *(["in a batch"] if grouped else []))  # fmt: skip
    yield ReportTable("Counts per model; results do not include warm-up runs.", columns, rows)
    if remarks := tuple(_remarks(found)):
        yield Bullets(remarks)
    if found.failures:
        lines = ((label, why, f"{n:,}") for (label, why), n in found.failures.items())
        yield ReportTable("Failures by reason.", ("model", "reason", "n"), tuple(lines), 2)


def off_script(count: Count) -> str:
    """A note on answers to questions that a demo model was not trained on."""
    return (
        f"{count.off_script:,} of {count.answered:,} answers of {count.label} are to questions "
        "that this demo model was not trained on. They are meaningless and are excluded from "
        "accuracy and overlap."
    )


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def _remarks(found: Findings) -> Iterator[str]:
    """Notes to read before the figures."""
    yield from device_notes.remarks(found.table)
    yield from machine_loads.remarks(found.table)
    yield from _backends(found)
    for one in throughput.alone(found.table):
        yield one.sentence
    lettered = set(found.table.loc[found.table["choices"] > 0, "label"])  # few answers are usual
    for model in found.counts:
        texts = None if model.label in lettered else model.texts
        if texts is not None and model.samples >= 10 and texts <= model.samples / 10:
            yield (
                f"{model.label} gave only {texts:,} different answers to {model.samples:,} "
                "samples: it may ignore the pictures."
            )
        if model.capped and model.answered:
            yield (
                f"{model.capped:,} of {model.answered:,} answers of {model.label} were stopped at "
                "the length limit: their lengths and times depend on the limit."
            )
        if model.off_script:
            yield off_script(model)
        if not model.answered:
            yield f"{model.label} gave no answer, so it has no figures."


def _backends(found: Findings) -> Iterator[str]:
    """A note if a run's answers were not all decoded by the requested backend."""
    answered = found.table[(found.table["error"] == "") & (found.table["phase"] == "measured")]
    for (_, model, run), lines in answered.groupby(["number", "model", "run"], sort=False):
        ran = lines["backend"].value_counts()
        asked = next(iter(lines["backend_asked"]))
        if len(ran) > 1 or (asked in ("eager", "compiled") and asked not in ran):
            words = ", ".join(f"{name} decoded {n:,}" for name, n in ran.items())
            yield (
                f"Run {run} requested the backend {asked or 'that was then the default'}; of "
                f"{len(lines):,} answers of {model} {words}. Figures are separate by backend."
            )


def _figures(found: Findings) -> Iterator[Block]:
    yield Heading(2, "Figures")
    shown = [figure for figure in found.figures if figure.group == "measured"]
    if not shown:
        single = " outside a batch" if found.throughputs else ""
        yield Paragraph(f"No result was measured{single}, so there are no figures.")
        return
    yield _distribution(found)
    for label in _measured(found):
        yield figure_table(label, shown)


def figure_table(label: str, figures: Iterable[Figure]) -> ReportTable:
    """All figures of one label."""
    rows = [_figure_row(figure) for figure in figures if figure.label == label]
    columns = ("metric", "source", *_FIGURE_COLUMNS)
    return ReportTable(f"{label}: measured results.", columns, tuple(rows), 2)


def _measured(found: Findings) -> list[str]:
    return labels(measured(found.table))


def _distribution(found: Findings) -> ChartBlock:
    from engine.report import charts

    lines = measured(found.table)
    lines = lines[~lines["cached"].astype(bool)] if not lines["cached"].all() else lines
    families = dict(zip(lines["label"], lines["family"], strict=True))
    colours = toned({label: families[label] for label in labels(lines)})
    kind = BY_NAME["total"]
    values = lines[["label", "sample"]].assign(value=lines[kind.column])
    words = charts.distribution_words(values, kind.title)
    return ChartBlock(words, lambda: charts.distribution(values, colours, kind.title))


def _figure_row(figure: Figure) -> tuple[str, ...]:
    kind = BY_NAME[figure.metric]
    values = (figure.median, figure.mad, figure.mean, figure.sd, figure.p90, figure.p99)
    source = _SOURCES.get(figure.source, figure.source)
    cells = (*map(number, values), number(figure.low), number(figure.high))
    return (f"{kind.label} ({figure.unit})", source, f"{figure.n:,}", *cells)


def together(found: Findings) -> Iterator[Block]:
    """Batches; single runs count as batches of one."""
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
               "new tokens/s", "range", "samples/s", "range",
               "time of a batch (ms)")  # fmt: skip
    caption = "Medians over batches; single runs count as batches of one."
    yield ReportTable(caption, columns, rows)


def _range(spread: Spread) -> str:
    return f"{number(spread.low)} to {number(spread.high)}" if spread.n > 1 else NONE


def apart(found: Findings) -> Iterator[Block]:
    """Cold runs, warm-up and results after a pause, which are in no mean."""
    rows = [
        (figure.label, figure.group, *_figure_row(figure))
        for group in GROUPS[1:]
        for figure in found.figures
        if figure.group == group and figure.metric in ("vision", "decode", "total", "ttft", "tpot")
    ]
    if rows:
        columns = ("model", "group", "metric", "source", *_FIGURE_COLUMNS)
        yield Heading(2, "Results that are in no mean")
        yield ReportTable(
            "Cold runs, warm-up runs and results after a pause.", columns, tuple(rows), 4
        )


def agreement(found: Findings) -> Iterator[Block]:
    if found.attributes:
        yield Heading(2, "Attribute accuracy")
        yield Paragraph(
            "The content of demo scenes is known. Accuracy is the share of samples whose answer "
            "states the attribute correctly; stated is the share that states it at all."
        )
        scores = tuple(map(_score_row, found.attributes))
        columns = (
            "model",
            "attribute",
            "n",
            "accuracy",
            "stated",
            "always the most frequent value",
        )
        yield ReportTable("Attributes read from the answers.", columns, scores, 2)
    if found.overlaps:
        yield Heading(2, "Overlap with references")
        yield Paragraph(
            "Word F1 between answer and reference (the harmonic mean of the shares of words in "
            "common, from 0 to 1). It measures how similar the words are, not whether an answer is "
            "correct."
        )
        lines = tuple(
            (o.label, f"{o.n:,}", *(f"{v:.3f}" for v in (o.median, o.low_quarter, o.high_quarter)))
            for o in found.overlaps
        )
        names = ("model", "n", "median", "first quartile", "third quartile")
        yield ReportTable("Word F1.", names, lines)


def _score_row(score: AttributeScore) -> tuple[str, ...]:
    right = "never stated" if score.accuracy is None else f"{score.accuracy:.3f}"
    shares = (f"{score.claimed:.3f}", f"{score.majority:.3f}")
    return (score.label, score.attribute, f"{score.n:,}", right, *shares)


def meanings(found: Findings) -> Iterator[Block]:
    yield Heading(2, "What the figures mean")
    rows = tuple((kind.label, kind.unit, kind.meaning) for kind in METRICS)
    yield ReportTable("Definitions.", ("metric", "unit", "definition"), rows, 3)
    batches = " or in a batch" if found.throughputs else ""
    yield Paragraph(
        f"{len(measured(found.table)):,} of {len(found.table):,} results are in the figures: those "
        f"with an answer that are not cold, warm-up, the first after a pause{batches}. MAD is the "
        "median absolute deviation from the median. p90 needs 10 values, p99 needs 100. Times read "
        "from the cache are never mixed with measured times."
    )
