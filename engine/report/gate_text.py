"""A gate's report for the terminal, for a pull request (Markdown) and for programs (JSON)."""

from collections.abc import Iterator
from typing import Any

from engine import palette
from engine.analysis import gate
from engine.analysis.model_summary import BY_NAME
from engine.quoting import NONE, count, number, precise
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph, Table

MOST = 10  # changed answers of a model that are listed


def headline(report: gate.GateReport) -> str:
    by_ids = gate.ANSWERS in report.metrics
    if report.verdict == "worse":
        bad = [
            f"{name_of(one)} of {one.label} {change_text(one)}"
            for one in report.results
            if one.verdict in ("worse", "changed")
        ]
        for answers in report.answers:
            if answers.lost:
                lost = count(len(answers.lost), "sample")
                bad.append(f"{answers.label} answered {lost} in BASE that it did not answer in NEW")
            if answers.changed and by_ids:
                bad.append(f"{count(len(answers.changed), 'answer')} of {answers.label} changed")
        return f"Worse: {'; '.join(bad)}."
    if report.verdict == "undecided":
        unclear: list[gate.GateResult | gate.NotCompared] = [
            *(one for one in report.results if one.verdict == "undecided"),
            *(one for one in report.not_compared if one.undecided),
        ]
        parts = [f"{name_of(one)} of {one.label}" for one in unclear]
        if by_ids and any(one.unknown for one in report.answers):
            parts.append("answers without token ids")
        return f"Undecided: {', '.join(parts) or 'no metric has values in both runs'}."
    if not report.results:
        return "No worse: all token ids are equal."
    every = count(report.tests, "tested metric")
    return f"No worse: {every}, with a margin of {percent(report.margin)}."


def name_of(result: gate.GateResult | gate.NotCompared) -> str:
    return BY_NAME[result.metric].label if result.metric in BY_NAME else result.metric


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def verdict_text(result: gate.GateResult) -> str:
    """The verdict, and why it is undecided if that is not its interval."""
    reason = result.reason if result.verdict == "undecided" else ""
    return f"{result.verdict}: {reason}" if reason else result.verdict


def change_text(result: gate.GateResult) -> str:
    """NEW / BASE as a change in percent, of accuracy in percentage points, with its interval."""
    known = result.low is not None and result.high is not None
    figures = (result.change, result.low, result.high) if known else (result.change,)
    changes = [round(gate.in_percent(result, value), 1) for value in figures if value is not None]
    change, *ends = (f"{value:+.1f}" if value else "0.0" for value in changes)
    unit = "points" if result.unit == "points" else "%"
    return f"{change} {unit}" + (f" ({' to '.join(ends)})" if ends else "")


def table(report: gate.GateReport) -> Table:
    rows: list[tuple[str, ...]] = []
    for one in report.results:
        values = (one.base, one.new)
        if one.metric == gate.ACCURACY:
            sides = [*map(percent, values)]
        elif one.metric == gate.TOKENS:
            sides = [*map(precise, values)]
        else:
            sides = [f"{number(value)} {BY_NAME[one.metric].unit}" for value in values]
        n = f"{one.n:,}" if one.n == one.sequences else f"{one.n:,} in {one.sequences:,}"
        rows.append((one.label, name_of(one), verdict_text(one), *sides, change_text(one), n))
    rows += [
        (one.label, name_of(one), f"not compared: {one.reason}", *[NONE] * 4)
        for one in report.not_compared
    ]
    change = "paired change" + (" (95 % interval)" if _intervals(report) else "")
    head = ("model", "metric", "verdict", "median of BASE", "median of NEW", change, "n")
    return Table("", head, tuple(rows), words=3)


def _intervals(report: gate.GateReport) -> bool:
    return any(one.low is not None for one in report.results)


def answers_of(one: gate.AnswersCompared) -> Iterator[str]:
    """What became of the token ids of one model, with its first changed answers."""
    compared, changed = one.same + len(one.changed), one.changed
    if not compared:
        yield f"{one.label}: no answer was compared: no sample has token ids in both."
    elif not changed:
        yield f"{one.label}: the token ids of all {count(compared, 'sample')} are equal."
    else:
        shorter = sum(change.new_tokens < change.base_tokens for change in changed)
        longer = sum(change.new_tokens > change.base_tokens for change in changed)
        yield (
            f"{one.label}: {len(changed):,} of {count(compared, 'answer')} changed "
            f"({shorter:,} shorter, {longer:,} longer, {len(changed) - shorter - longer:,} of the "
            "same length)."
        )
    for change in changed[:MOST]:
        ids = change.base_id, change.new_id
        first, second = ("its end" if token is None else f"id {token}" for token in ids)
        lengths = f"{change.base_tokens:,} tokens in BASE, {change.new_tokens:,} in NEW"
        place = f"token {change.position + 1:,} is {second} instead of {first}"
        yield f"{one.label}, {change.sample}: {place}; {lengths}."
    if len(changed) > MOST:
        yield f"{one.label}: {len(changed) - MOST:,} more answers changed."
    if one.unknown:
        yield f"{one.label}: {count(one.unknown, 'sample')} without token ids."
    for samples, words in ((one.lost, "in BASE, but not in NEW"),
                           (one.gained, "in NEW, but not in BASE")):  # fmt: skip
        if samples:
            more = f" and {len(samples) - MOST:,} more" if len(samples) > MOST else ""
            yield f"{one.label}: answered {words}: {', '.join(samples[:MOST])}{more}."


def method(report: gate.GateReport) -> str:
    points = right = ""
    if any(one.metric == gate.ACCURACY for one in report.results):
        points = f", of accuracy {100 * report.margin:.3g} percentage points"
        right = (
            "Accuracy is the share of right answers, or of the attributes that were asked for: one "
            "that an answer does not state counts as wrong. "
        )
    tests = "No metric was tested."
    if report.tests:
        tests = (
            f"The verdicts are adjusted by Holm for {count(report.tests, 'test')} of a model and a "
            f"metric: at most {percent(gate.ERRORS)} of comparisons contain a wrong verdict. The "
            "intervals are not adjusted."
        )
    return (
        "Each sequence counts once, by the median of its samples' ratios NEW / BASE. A change is "
        "the centre of these ratios (Hodges and Lehmann), not the ratio of both medians. The "
        "median of BASE or NEW is of all repeats of these samples, as in every other table. "
        f"The margin is {percent(report.margin)}{points}. {right}{tests}"
    )


def blocks(report: gate.GateReport, chart: bool = False) -> list[Block]:
    """The report as a document, on a page with a chart."""
    figures = table(report)
    answers = (line for one in report.answers for line in answers_of(one))
    reasons = (  # how some metrics were decided otherwise
        f"{one.label}, {name_of(one)}: {one.reason}."
        for one in report.results
        if one.reason and one.verdict != "undecided"
    )
    sides = (
        f"{name}: run {side.id} of {side.header.created}; code {side.header.code[:12]}."
        for name, side in (("BASE", report.base), ("NEW", report.new))
    )
    return [
        Heading(2, f"Gate: {report.verdict}"),
        Paragraph(headline(report)),
        *(_chart(report) if chart and report.results else ()),
        *([figures] if figures.rows else []),
        Bullets((*answers, *reasons)),
        Paragraph(method(report)),
        Bullets((*sides, *report.notes)),
    ]


def _chart(report: gate.GateReport) -> Iterator[Block]:
    """A row per metric and model: the change with its interval against the margin."""
    from engine.report import charts

    families = {one.name: one.family for one in report.new.header.models}
    models = {one.label: families.get(one.model, "") for one in report.new.models}
    tones = palette.toned({one.label: models[one.label] for one in report.answers})
    rows: list[dict[str, Any]] = [
        {
            "name": f"{one.label}: {name_of(one)}",
            "value": gate.in_percent(one, one.change),
            "low": None if one.low is None else gate.in_percent(one, one.low),
            "high": None if one.high is None else gate.in_percent(one, one.high),
            "colour": palette.family_colour(tones[one.label]),
            "verdict": verdict_text(one),
            "text": change_text(one),
            "limits": [gate.in_percent(one, limit) for limit in gate.limits(one, report.margin)],
        }
        for one in report.results
    ]
    changes = (f"{row['name']} {row['text']}, {row['verdict']}." for row in rows)
    words = " ".join([f"Changes against a margin of {percent(report.margin)}.", *changes])
    accuracy = any(one.metric == gate.ACCURACY for one in report.results)
    yield ChartBlock(words, lambda: charts.intervals(
        rows,
        ["change, %", "(accuracy: points)"] if accuracy else "change, %",  # lines: narrow windows
        {"name:N": "Model and metric", "text:N": "Change", "verdict:N": "Verdict"},
        marks=[{"name": row["name"], "at": at} for row in rows for at in row["limits"]],
        equal=0.0,
    ))  # fmt: skip
    interval = " with its 95 % interval" if _intervals(report) else ""
    yield Paragraph(
        f"Dots: change of NEW against BASE{interval}. Orange marks: the margin; beyond it NEW is "
        "worse. Tokens have two, because more and fewer both count as a change."
    )


def as_json(report: gate.GateReport) -> dict[str, Any]:
    """For programs; shares from 0 to 1, times in milliseconds."""
    names = ("metrics", "margin", "tests", "verdict", "results", "answers", "not_compared", "notes")
    sides = {
        name: {
            **{key: getattr(side.header, key) for key in ("created", "code", "models")},
            "id": side.id,
            "environment": dict(side.header.environment),
        }
        for name, side in (("base", report.base), ("new", report.new))
    }
    values = {name: getattr(report, name) for name in names}
    return {"headline": headline(report), "errors": gate.ERRORS} | values | sides
