"""The part of a report that compares models: pairs, the factors of a speed-up, equal lengths.  A
conclusion needs an interval that excludes equality."""

from collections.abc import Iterable, Iterator
from functools import partial

from engine.analysis import machine_loads, pairs, statistics
from engine.analysis.model_summary import BY_NAME
from engine.analysis.pairs import Comparison, Split
from engine.analysis.statistics import Interval
from engine.quoting import NONE, number
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph, Table
from engine.report.report_figures import Findings

IN_WORDS = ("total", "ttft", "tpot", "new_tokens")


def comparing(found: Findings) -> Iterator[Block]:
    """Nothing for a single model."""
    couples = dict.fromkeys((one.a, one.b) for one in found.comparisons)
    total = BY_NAME["total"]
    if couples:
        from engine.report import charts

        yield Heading(2, "Comparison")
    for a, b in couples:
        yield Heading(3, f"{a} and {b}")
        compared = [one for one in found.comparisons if (one.a, one.b) == (a, b)]
        yield from map(Paragraph, filter(None, machine_loads.couple(found.table, a, b)))
        yield Bullets(tuple(sentence(one) for one in compared if one.metric in IN_WORDS))
        yield paired_table(a, b, compared)
        both = pairs.paired(found.table, a, b, total)
        if len(both):
            words = charts.scatter_words(both, a, b, total)
            yield ChartBlock(words, partial(charts.scatter, both, a, b, total))
        split = next((one for one in found.splits if (one.a, one.b) == (a, b)), None)
        if split is not None:
            (verdict,) = (one.verdict for one in compared if one.metric == "total")
            yield from speedup_parts(split, verdict)
    lenses, notes = found.through_lenses
    if not lenses or len(found.counts) < 2:
        return
    yield Heading(2, "Equal lengths")
    yield Bullets(notes)
    rows = tuple(
        (row["lens"], row["label"], f"{row['n']:,}",
         *(number(row[name]) for name in ("tokens", "total_ms", "tpot_ms")))
        for row in lenses
    )  # fmt: skip
    columns = ("lengths", "model", "n", "new tokens", "total (ms)", "TPOT (ms)")
    caption = "Medians for each choice of lengths, without results with a cached stage."
    yield Table(caption, columns, rows, 2)


def speedup_parts(split: Split, verdict: str) -> Iterator[Block]:
    """What the difference in total time is made of: a sentence, a chart, a table.  `verdict`: of
    the comparison of total times; the sentence claims no more than that."""
    from engine.report import charts

    steps = charts.split_steps(split)
    yield Paragraph(pairs.sentence(split, pairs.supported(split, verdict)))
    yield ChartBlock(charts.waterfall_words(steps), lambda: charts.waterfall(steps))
    rows = [
        (part.name, *(f"{number(value)} {part.unit}" for value in (part.a, part.b)),
         NONE if part.ratio is None else f"{part.ratio:.3g}", f"{part.factor:.3f}",
         f"{part.ms:+,.1f} ms")
        for part in split.parts
    ]  # fmt: skip
    rows += [
        ("total", *(f"{number(value)} ms" for value in (split.a_ms, split.b_ms)),
         f"{split.ratio:.3g}", f"{split.ratio:.3f}", f"{split.b_ms - split.a_ms:+,.1f} ms")
    ]  # fmt: skip
    columns = ("factor", f"{split.a}, mean", f"{split.b}, mean", "own ratio", "share, as a factor",
               "share, in ms")  # fmt: skip
    caption = (
        "The factors of the ratio of mean totals (Shapley's split, which does not depend on an "
        "order). The product of the factors is the whole ratio, the sum of the milliseconds is the "
        "whole difference. Time per token is the time of the steps divided by new tokens - 1."
    )
    yield Table(caption, columns, tuple(rows))


def paired_table(a: str, b: str, compared: Iterable[Comparison]) -> Table:
    columns = ("metric", "n", "sequences", "difference", "95 % interval", "ratio", "95 % interval")
    caption = (
        f"Of the samples that both answered. {a} minus {b} and {a} divided by {b}: the median of "
        "each sequence's samples, then the median over sequences with its exact interval (sign "
        "test)."
    )
    rows = []
    for one in compared:
        ratio = NONE if one.ratio is None else f"{one.ratio.median:.3g}"
        difference = number(one.difference.median) if one.difference else NONE
        rows.append((
            BY_NAME[one.metric].title, f"{one.n:,}", f"{one.sequences:,}", difference,
            _interval(one.difference), ratio, _interval(one.ratio),
        ))  # fmt: skip
    return Table(caption, columns, tuple(rows))


def sentence(one: Comparison) -> str:
    name = BY_NAME[one.metric].label
    if one.verdict == "unknown":
        return f"{name}: no conclusion, because {one.reason}."
    if one.ratio is not None:
        figure = f"{one.a} has {one.ratio.median:.3g}x that of {one.b}"
    else:
        assert one.difference is not None  # a verdict has one of the two
        size = f"{number(one.difference.median)} {one.unit}"
        figure = f"{one.a} differs by {size} from {one.b}"
    statement = (
        f"{name}: {figure}, with a 95 % interval of {_interval(one.ratio or one.difference)} over "
        f"{one.n:,} samples of {one.sequences:,} sequences"
    )
    if one.verdict != "undecided":
        return f"{statement}: {one.verdict}."
    if one.more_samples is None:
        return f"{statement}: undecided, and no practical number of samples would decide it."
    return (
        f"{statement}: undecided; about {one.more_samples:,} more samples, each of a new sequence, "
        "would decide it if the share of sequences on that side stays the same."
    )


def headline(one: Comparison) -> str:
    """Which of two was faster, by how much, with the interval; or why none can be named."""
    both = f"{one.a} and {one.b}"
    if one.verdict == "unknown" or one.ratio is None:
        return f"No conclusion on {both}: {one.reason or 'their totals have no ratio'}."
    size = (
        f"{one.a} took {one.ratio.median:.3g} times as long as {one.b} (95 % interval "
        f"{_interval(one.ratio)}; {one.n:,} samples of {one.sequences:,} sequences)"
    )
    if one.verdict in ("less", "more"):
        fast, slow = (one.a, one.b) if one.verdict == "less" else (one.b, one.a)
        return f"{fast} was faster than {slow}: {size}."
    equal = "are equally fast" if one.verdict == "equal" else "show no difference"
    return f"{both} {equal}: {size}."


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return NONE
    return f"{statistics.printed(interval.low)} to {statistics.printed(interval.high)}"
