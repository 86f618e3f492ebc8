"""The first page of a report: what ran, the verdict, the stages, and the main findings.

Boundary: wording; every sentence is computed from the report's figures.  A model is named the
fastest only if its paired intervals against all others exclude equality.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.analysis.compared import StageTimes
from engine.analysis.model_summary import Figure, find, stage_medians
from engine.analysis.pairs import Comparison
from engine.analysis.results_table import labels, measured
from engine.quoting import count, number
from engine.report import choice_part
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph
from engine.report.report_figures import UNVERIFIED, Findings


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
    yield Bullets(
        (_stages(medians), _lengths(found, names), *choice_part.finding(found), _standing(found))
    )


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
