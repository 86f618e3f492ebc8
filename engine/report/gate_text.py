"""A gate's report for the terminal, for a pull request (Markdown) and for programs (JSON)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from engine.analysis.gate import (
    ACCURACY,
    ANSWERS,
    ERRORS,
    AnswerChange,
    AnswersCompared,
    GateReport,
    GateResult,
    NotCompared,
)
from engine.analysis.gate_values import TOKENS
from engine.analysis.metrics import BY_NAME
from engine.quoting import NONE, count, number, precise
from engine.report.blocks import Block, Bullets, Heading, Paragraph, ReportTable
from engine.storage.run_values import RunValues

MOST = 10  # changed answers of a model that are listed
COLUMNS = ("model", "metric", "verdict", "BASE", "NEW", "change (95 % interval)", "n")


def headline(report: GateReport) -> str:
    """The verdict in one sentence."""
    every = count(report.tests, "tested metric")
    if report.verdict == "worse":
        return f"Worse: {'; '.join(_bad(report))}."
    if report.verdict == "undecided":
        parts = [f"{name_of(one)} of {one.label}" for one in report.results
                 if one.verdict == "undecided"]  # fmt: skip
        parts += [f"{name_of(one)} of {one.label}" for one in report.not_compared if one.undecided]
        if any(one.unknown for one in report.answers) and ANSWERS in report.metrics:
            parts.append("answers without token ids")
        return f"Undecided: {', '.join(parts) or 'no metric has values in both runs'}."
    if not report.results:
        return "No worse: all token ids are equal."
    return f"No worse: {every}, with a margin of {percent(report.margin)}."


def _bad(report: GateReport) -> Iterator[str]:
    for result in report.results:
        if result.bad:
            yield f"{name_of(result)} of {result.label} {change_text(result)}"
    for answers in report.answers:
        if answers.lost:
            lost = count(len(answers.lost), "sample")
            yield f"{answers.label} answered {lost} in BASE that it did not answer in NEW"
        if answers.changed and ANSWERS in report.metrics:
            yield f"{count(len(answers.changed), 'answer')} of {answers.label} changed"


def name_of(result: GateResult | NotCompared) -> str:
    return BY_NAME[result.metric].label if result.metric in BY_NAME else result.metric


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def verdict_text(result: GateResult) -> str:
    """The verdict, and why it is undecided if that is not its interval."""
    reason = result.reason if result.verdict == "undecided" else ""
    return f"{result.verdict}: {reason}" if reason else result.verdict


def change_text(result: GateResult) -> str:
    """NEW / BASE as a change in percent, of accuracy in percentage points, with its interval."""
    if result.unit == "points":
        parts = [_signed(100 * value) for value in _figures(result)]
        unit = " points"
    else:
        parts = [_signed(100 * (value - 1)) for value in _figures(result)]
        unit = " %"
    ends = f" ({parts[1]} to {parts[2]})" if len(parts) > 1 else ""
    return f"{parts[0]}{unit}{ends}"


def _figures(result: GateResult) -> list[float]:
    if result.low is None or result.high is None:
        return [result.change]
    return [result.change, result.low, result.high]


def _signed(value: float) -> str:
    rounded = round(value, 1)
    return f"{rounded:+.1f}" if rounded else "0.0"


def _value(result: GateResult, value: float) -> str:
    if result.metric == ACCURACY:
        return percent(value)
    unit = BY_NAME[result.metric].unit
    return precise(value) if result.metric == TOKENS else f"{number(value)} {unit}"


def table(report: GateReport) -> ReportTable:
    """A row per model and metric."""
    rows: list[tuple[str, ...]] = [
        (
            one.label,
            name_of(one),
            verdict_text(one),
            _value(one, one.base),
            _value(one, one.new),
            change_text(one),
            f"{one.n:,}" if one.n == one.sequences else f"{one.n:,} in {one.sequences:,}",
        )
        for one in report.results
    ]
    rows += [
        (one.label, name_of(one), f"not compared: {one.reason}", *[NONE] * 4)
        for one in report.not_compared
    ]
    return ReportTable("", COLUMNS, tuple(rows), words=3)


def answers_of(one: AnswersCompared, listed: bool = True) -> Iterator[str]:
    """What became of the token ids of one model; `listed`: with its first changed answers."""
    compared = one.same + len(one.changed)
    if not one.changed:
        yield f"{one.label}: the token ids of all {count(compared, 'sample')} are equal."
    else:
        yield (
            f"{one.label}: {len(one.changed):,} of {count(compared, 'answer')} changed "
            f"({_lengths(one.changed)})."
        )
    for change in one.changed[:MOST] if listed else ():
        yield f"{one.label}, {change.sample}: {change_of(change)}."
    if listed and len(one.changed) > MOST:
        yield f"{one.label}: {len(one.changed) - MOST:,} more answers changed."
    if one.unknown:
        yield f"{one.label}: {count(one.unknown, 'sample')} without token ids."
    for samples, words in ((one.lost, "in BASE, but not in NEW"),
                           (one.gained, "in NEW, but not in BASE")):  # fmt: skip
        if samples:
            more = f" and {len(samples) - MOST:,} more" if len(samples) > MOST else ""
            yield f"{one.label}: answered {words}: {', '.join(samples[:MOST])}{more}."


def _lengths(changes: Sequence[AnswerChange]) -> str:
    shorter = sum(one.new_tokens < one.base_tokens for one in changes)
    longer = sum(one.new_tokens > one.base_tokens for one in changes)
    alike = len(changes) - shorter - longer
    return f"{shorter:,} shorter, {longer:,} longer, {alike:,} of the same length"


def change_of(change: AnswerChange) -> str:
    """Where an answer begins to differ, and how."""
    first, second = (
        "its end" if token is None else f"id {token}" for token in (change.base_id, change.new_id)
    )
    lengths = f"{change.base_tokens:,} tokens in BASE, {change.new_tokens:,} in NEW"
    return f"token {change.position + 1:,} is {second} instead of {first}; {lengths}"


def method(report: GateReport) -> str:
    """How the verdicts were reached, in words."""
    margin = percent(report.margin)
    accuracy = any(one.metric == ACCURACY for one in report.results)
    points = f"{100 * report.margin:.3g} percentage points" if accuracy else ""
    tests = "No metric was tested."
    if report.tests:
        tests = (
            f"The verdicts are adjusted by Holm for {count(report.tests, 'test')} of a model and a "
            f"metric: at most {percent(ERRORS)} of comparisons contain a wrong verdict. The "
            "intervals are not adjusted."
        )
    return (
        f"Each sequence counts once, by the median of its samples' ratios NEW / BASE. The margin "
        f"is {margin}{f', of accuracy {points}' if points else ''}. {tests}"
    )


def blocks(report: GateReport) -> list[Block]:
    """The report as a document."""
    found: list[Block] = [Heading(2, f"Gate: {report.verdict}"), Paragraph(headline(report))]
    rows = table(report)
    found += [rows] if rows.rows else []
    answers = (line for one in report.answers for line in answers_of(one))
    found += [Bullets((*answers, *reasons(report))), Paragraph(method(report))]
    found += [Bullets((*sides(report), *report.notes))]
    return found


def reasons(report: GateReport) -> Iterator[str]:
    """How some metrics were decided otherwise, or why they need more sequences."""
    for one in report.results:
        if one.reason and verdict_text(one) != f"undecided: {one.reason}":
            yield f"{one.label}, {name_of(one)}: {one.reason}."


def sides(report: GateReport) -> Iterator[str]:
    """Which runs were compared."""
    for name, side in (("BASE", report.base), ("NEW", report.new)):
        pinned = ", a pinned baseline" if side.pinned else ""
        header = side.header
        yield f"{name}: run {side.id} of {header.created}{pinned}; code {header.code[:12]}."


def as_json(report: GateReport) -> dict[str, Any]:
    """For programs; shares from 0 to 1, times in milliseconds."""
    return {
        "verdict": report.verdict,
        "headline": headline(report),
        "margin": report.margin,
        "errors": ERRORS,
        "tests": report.tests,
        "metrics": list(report.metrics),
        "base": _side(report.base),
        "new": _side(report.new),
        "results": report.results,
        "answers": report.answers,
        "not_compared": report.not_compared,
        "notes": list(report.notes),
    }


def _side(side: RunValues) -> dict[str, Any]:
    header = side.header
    return {
        "id": side.id,
        "created": header.created,
        "code": header.code,
        "pinned": side.pinned,
        "models": header.models,
        "environment": dict(header.environment),
    }
