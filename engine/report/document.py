"""The report as blocks: its sentences and tables.  A model is named the fastest only if its paired
intervals against all others exclude equality."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from engine.analysis import machine_loads, model_summary
from engine.analysis.model_summary import (
    BY_NAME,
    METRICS,
    Count,
    Figure,
    Throughput,
    find,
    stage_medians,
)
from engine.analysis.results_table import GROUPS, labels, measured, tones
from engine.quoting import NONE, count, number
from engine.report.accuracy_part import choosing, finding, limits, robust, sentence
from engine.report.blocks import Block, Bullets, ChartBlock, Contents, Heading, Paragraph, Table
from engine.report.comparison_part import comparing
from engine.report.origin_part import flow, origin
from engine.report.report_figures import Findings
from engine.storage.run_store import Run
from engine.types import STAGES

_SOURCES = {
    "cached": "read from the cache: time of the read, not of the stage",
    "hook": "measured by a hook inside generate()",
    "derived": "derived: total minus the hook's time",
    "not measured": "not measured",
}
FEWEST = 3  # values that have a spread
_FIGURE_COLUMNS = ("n", "median", "MAD", "mean", "sd", "p90", "p99", "min", "max")


def title(found: Findings) -> str:
    return f"StageScope report: {', '.join(run.id for run in found.runs)}"


def document(found: Findings) -> list[Block]:
    """The whole report: one page for a reader in a hurry, then everything, then the settings."""
    parts = (results, choosing, _figures, together, apart, comparing, agreement, robust)
    body = [block for part in parts for block in part(found)]
    body += [Heading(2, "Appendix: settings and definitions")]
    last = (block for part in (origin, flow, meanings) for block in part(found))
    body += [replace(block, level=3) if isinstance(block, Heading) else block for block in last]
    names = [one.text for one in body if isinstance(one, Heading) and one.level == 2]
    return [Heading(1, title(found)), *first_page(found), Contents(tuple(names)), *body]


def first_page(found: Findings) -> Iterator[Block]:
    names = labels(measured(found.table))
    total = sum(one.results for one in found.counts)
    models = ", ".join(one.label for one in found.counts)
    samples = count(int(found.table["sample"].nunique()), "sample")
    ran = f"{count(total, 'result')} of {models} on {samples}" if models else "no result is kept"
    yield Paragraph(f"What ran: {ran}.")
    yield Paragraph(verdict(found, names))
    medians = stage_medians(found.figures, names)
    if any(medians.values()):
        from engine.report import charts

        yield ChartBlock(charts.stage_words(medians), lambda: charts.stage_bars(medians))
    yield Heading(2, "Findings")
    longest, lengths = [], []  # lengths, because a shorter answer takes less time
    for name, parts in medians.items():
        whole = find(found.figures, name, "total")
        if parts and whole:
            stage = max(parts, key=lambda part: parts[part])
            share = f"{number(parts[stage])} of {number(whole.median)} ms"
            longest.append(f"{name}: {stage}, {share} ({parts[stage] / whole.median:.0%})")
        both = (find(found.figures, name, metric) for metric in ("new_tokens", "tpot"))
        tokens, tpot = (number(one.median) if one else "unknown" for one in both)
        lengths.append(f"{name}: {tokens} new tokens, {tpot} ms per token")
    cold = sum(one.cold for one in found.counts)
    without = "only cold runs, which count in no figure" if 0 < cold == total else "not measured"
    failed = sum(one.failed for one in found.counts)
    states = [(one.state, n) for kinds in found.verified.values() for one, n in kinds.items()]
    uncovered = sum(n for state, n in states if state != "verified")
    yield Bullets((
        f"The longest stage, of the median total: {'; '.join(longest) or without}.",
        f"Lengths of the answers (medians): {'; '.join(lengths) or without}.",
        *finding(found),
        f"{failed:,} of {total:,} results failed; no certificate covers {uncovered:,} of "
        f"{sum(n for _, n in states):,} answers, warm-up included.",
    ))  # fmt: skip


def answers(found: Findings) -> Iterator[Block]:
    """What each model said, if the runs are about one sample; nothing otherwise."""
    if found.table["sample"].nunique() != 1:
        return
    for label, rows in found.table.groupby("label", sort=False):
        last = rows.iloc[-1]
        yield Heading(3, str(label))
        yield Paragraph(last["text"] or f"no answer: {last['error']}")


def saved_verdict(runs: Sequence[Run]) -> list[str]:
    """The lines of the verdict that was kept with a saved comparison, if it is shown alone."""
    journal = runs[0].journal if len(runs) == 1 else ()
    told = [str(entry.get("text")) for entry in journal if entry.get("event") == "verdict"]
    return told[-1].split("\n") if told else []


def verdict(found: Findings, names: Sequence[str]) -> str:
    """Which of these labels was fastest, or why none can be named."""
    if said := saved_verdict(found.runs):
        return f"Verdict: {' '.join(said)}"
    if not names:
        return "Verdict: none, because no result was measured."
    totals = [one for one in found.comparisons if one.metric == "total"]
    medians = {name: find(found.figures, name, "total") for name in names}
    known = {name: one.median for name, one in medians.items() if one}
    words = ", ".join(f"{name} {number(ms)} ms" for name, ms in known.items())
    times = f" Median totals: {words}." if known else ""
    if len(names) == 1:
        return f"Verdict: none, because only {names[0]} has measured results.{times}"
    for name in names:
        won = sum((name, one.verdict) in ((one.a, "less"), (one.b, "more")) for one in totals)
        if won == len(names) - 1:
            return f"Verdict: {name} was fastest; the paired intervals exclude equality.{times}"
    open_ = [one for one in totals if one.verdict not in ("less", "more")]
    # Of the open questions the one between those with the shortest times.
    open_.sort(key=lambda one: known.get(one.a, inf) + known.get(one.b, inf))
    why = [f"{one.a} and {one.b}: {one.reason or one.verdict}." for one in open_[:1]]
    why = why or ["Not all models can be compared with each other."]
    return f"Verdict: no model was fastest beyond doubt. {why[0]}{times}"


_IN_TEXT = (*STAGES, "total", "cpu", "ttft", "tpot", "tokens_per_s", "new_tokens")


def summary(found: Findings) -> Iterator[Block]:
    """For a terminal: counts and medians per model, then notes on devices and load."""
    alone = model_summary.alone(found.table)
    for model in found.counts:
        batches = tuple(
            f"{f'batch of {one.batch:,}':12s} median {number(one.tokens_per_s.median):>8} new "
            f"tokens/s, {number(one.samples_per_s.median)} samples/s, {number(one.ms.median)} ms "
            f"(batches {one.n:,}{f', {one.cached:,} with cached features' if one.cached else ''})"
            for one in found.throughputs
            if one.label == model.label
        )
        known = (find(found.figures, model.label, name) for name in _IN_TEXT)
        single = tuple(_text_line(one) for one in known if one is not None)
        # In a run of batches these come first.
        apart = model.label in alone
        medians = (*batches, alone[model.label], *single) if apart else (*single, *batches)
        whole = (one for one in found.choices if one.label == model.label and not one.task)
        accuracies = (text for one in whole for text in (sentence(one), *limits(one)))
        script = (off_script(model),) if model.off_script else ()
        head = f"{model.label}: {model.answered:,} of {model.results:,} results answered"
        yield Bullets((*script, *accuracies, *medians), head)
    for note in machine_loads.remarks(found.table):
        yield Paragraph(note)


def _text_line(figure: Figure) -> str:
    kind, source = BY_NAME[figure.metric], "" if figure.source == "measured" else figure.source
    p90 = f", p90 {number(figure.p90)}" if figure.p90 is not None else ""
    median = f"{kind.label:12s} median {number(figure.median):>8} {figure.unit}"
    return f"{median} (MAD {number(figure.mad)}, n {figure.n:,}{p90}) {source}".rstrip()


def results(found: Findings) -> Iterator[Block]:
    yield Heading(2, "Results")
    always = {"model": "label", "results": "results", "answered": "answered", "failed": "failed"}
    some = {"cold": "cold", "warm-up": "warm_up", "after a pause": "after_pause",
            "cached": "cached", "stopped at the limit": "capped", "different answers": "texts",
            "in a batch": "batched"}  # fmt: skip
    names = always | {
        head: name for head, name in some.items() if any(getattr(one, name) for one in found.counts)
    }
    values = ([getattr(one, name) for name in names.values()] for one in found.counts)
    rows = tuple(
        (label, *(NONE if n is None else f"{n:,}" for n in numbers)) for label, *numbers in values
    )
    yield Table("Counts per model; results do not include warm-up runs.", tuple(names), rows)
    if remarks := tuple(_remarks(found)):
        yield Bullets(remarks)
    if found.failures:
        lines = tuple((label, why, f"{n:,}") for (label, why), n in found.failures.items())
        yield Table("Failures by reason.", ("model", "reason", "n"), lines, 2)


def off_script(count: Count) -> str:
    return (
        f"{count.off_script:,} of {count.answered:,} answers of {count.label} are to questions "
        "that this demo model was not trained on. They are meaningless and are excluded from "
        "accuracy and overlap."
    )


def _remarks(found: Findings) -> Iterator[str]:
    yield from machine_loads.remarks(found.table)
    answered = found.table[(found.table["error"] == "") & (found.table["phase"] == "measured")]
    for (_, name, run), rows in answered.groupby(["number", "model", "run"], sort=False):
        ran, asked = rows["backend"].value_counts(), next(iter(rows["backend_asked"]))
        if len(ran) > 1 or (asked in ("eager", "compiled") and asked not in ran):
            words = ", ".join(f"{backend} decoded {n:,}" for backend, n in ran.items())
            yield (
                f"Run {run} requested the backend {asked or 'that was then the default'}; of "
                f"{len(rows):,} answers of {name} {words}. Figures are separate by backend."
            )
    yield from model_summary.alone(found.table).values()
    lettered = set(found.table.loc[found.table["choices"] > 0, "label"])  # few answers are usual
    for model in found.counts:
        texts = None if model.label in lettered else model.texts
        if texts is not None and model.samples >= 10 and texts <= model.samples / 10:
            few = f"only {texts:,} different answers to {model.samples:,} samples"
            yield f"{model.label} gave {few}: it may ignore the pictures."
        if model.capped and model.answered:
            some = f"{model.capped:,} of {model.answered:,} answers of {model.label}"
            limit = "their lengths and times depend on the limit"
            yield f"{some} were stopped at the length limit: {limit}."
        if model.off_script:
            yield off_script(model)
        if not model.answered:
            yield f"{model.label} gave no answer, so it has no figures."


def _figures(found: Findings) -> Iterator[Block]:
    yield Heading(2, "Figures")
    shown = [figure for figure in found.figures if figure.group == "measured"]
    if not shown:
        single = " outside a batch" if found.throughputs else ""
        yield Paragraph(f"No result was measured{single}, so there are no figures.")
        return
    from engine.report import charts

    lines = measured(found.table)
    names = labels(lines)
    lines = lines[~lines["cached"].astype(bool)] if not lines["cached"].all() else lines
    kind = BY_NAME["total"]
    values = lines[["label", "sample"]].assign(value=lines[kind.column])
    words = charts.distribution_words(values, kind.title)
    yield ChartBlock(words, lambda: charts.distribution(values, tones(lines), kind.title))
    yield from (figure_table(label, shown) for label in names)


def figure_table(label: str, figures: Iterable[Figure]) -> Table:
    rows = tuple(_figure_row(figure) for figure in figures if figure.label == label)
    columns = ("metric", "source", *_FIGURE_COLUMNS)
    return Table(f"{label}: measured results.", columns, rows, 2)


def _figure_row(figure: Figure) -> tuple[str, ...]:
    kind, source = BY_NAME[figure.metric], _SOURCES.get(figure.source, figure.source)
    names = ("median", "mad", "mean", "sd", "p90", "p99", "low", "high")
    few = ("mad", "sd") if figure.n < FEWEST else ()  # two values have no spread to speak of
    cells = (NONE if name in few else number(getattr(figure, name)) for name in names)
    return (f"{kind.label} ({figure.unit})", source, f"{figure.n:,}", *cells)


def together(found: Findings) -> Iterator[Block]:
    """Batches; single runs count as batches of one."""
    if found.throughputs:
        yield Heading(2, "Throughput of batches")
        yield Bullets((model_summary.APART, model_summary.MEANING))
        yield throughput_table(found.throughputs)


def throughput_table(throughputs: Sequence[Throughput]) -> Table:
    rows = []
    for one in throughputs:
        cells = [one.label, *(f"{n:,}" for n in (one.batch, one.cached, one.n, one.samples))]
        for rate in (one.tokens_per_s, one.samples_per_s):
            reach = f"{number(rate.low)} to {number(rate.high)}" if rate.n > 1 else NONE
            cells += [number(rate.median), reach]
        rows.append((*cells, number(one.ms.median)))
    columns = ("model", "samples at once", "of them cached", "batches", "samples",
               "new tokens/s", "range", "samples/s", "range",
               "time of a batch (ms)")  # fmt: skip
    caption = "Medians over batches; single runs count as batches of one."
    return Table(caption, columns, tuple(rows))


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
        caption = "Cold runs, warm-up runs and results after a pause."
        yield Table(caption, columns, tuple(rows), 4)


def agreement(found: Findings) -> Iterator[Block]:
    if found.attributes:
        yield Heading(2, "Attribute accuracy")
        yield Paragraph(
            "The content of demo scenes is known. Accuracy is the share of samples whose answer "
            "states the attribute correctly; stated is the share that states it at all."
        )
        scores = tuple(
            (one.label, one.attribute, f"{one.n:,}",
             "never stated" if one.accuracy is None else f"{one.accuracy:.3f}",
             f"{one.claimed:.3f}", f"{one.majority:.3f}")
            for one in found.attributes
        )  # fmt: skip
        columns = ("model", "attribute", "n", "accuracy", "stated",
                   "always the most frequent value")  # fmt: skip
        yield Table("Attributes read from the answers.", columns, scores, 2)
    if found.overlaps:
        yield Heading(2, "Overlap with references")
        yield Paragraph(
            "Word F1 between answer and reference (the harmonic mean of the shares of words in "
            "common, from 0 to 1). It measures how similar the words are, not whether an answer is "
            "correct."
        )
        lines = []
        for one in found.overlaps:
            shares = (one.median, one.low_quarter, one.high_quarter)
            lines.append((one.label, f"{one.n:,}", *(f"{share:.3f}" for share in shares)))
        names = ("model", "n", "median", "first quartile", "third quartile")
        yield Table("Word F1.", names, tuple(lines))


def meanings(found: Findings) -> Iterator[Block]:
    yield Heading(2, "What the figures mean")
    rows = tuple((kind.label, kind.unit, kind.meaning) for kind in METRICS)
    yield Table("Definitions.", ("metric", "unit", "definition"), rows, 3)
    batches = " or in a batch" if found.throughputs else ""
    yield Paragraph(
        f"{len(measured(found.table)):,} of {len(found.table):,} results are in the figures: those "
        f"with an answer that are not cold, warm-up, the first after a pause{batches}. MAD is the "
        "median absolute deviation from the median. p90 needs 10 values, p99 needs 100. Times read "
        "from the cache are never mixed with measured times."
    )
