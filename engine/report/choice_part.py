"""Accuracy on multiple-choice questions in words and as a table.

A conclusion about chance or about two models needs an interval that excludes equality; none is
drawn about published figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.analysis.choice_accuracy import ALL, ChoiceAccuracy, ChoicePair
from engine.analysis.clustered_shares import ClusteredShare
from engine.analysis.results_table import labels
from engine.analysis.statistics import MIN_CLUSTERS
from engine.palette import toned
from engine.quoting import NONE, count, percent
from engine.report.blocks import (
    Block,
    Bullets,
    ChartBlock,
    Heading,
    Paragraph,
    ReportTable,
)
from engine.report.named_baselines import PUBLISHED, Baseline
from engine.report.report_figures import Findings

TITLE = "Accuracy on multiple-choice questions"
MEANING = (
    "Accuracy is the share of questions whose answer names the right option; an unreadable answer "
    "counts as wrong, and repeats of a question count once by their mean. Intervals are 95 % "
    "intervals clustered by sequence. Chance is the mean of 1 / options. By log-probability: the "
    "letter that the model finds most likely as its first token."
)
OF_PUBLISHED = (
    f'Figures marked "{PUBLISHED}" are taken from papers. Their settings may differ, so nothing '
    "is computed with them."
)
_VERDICTS = {"above": "above chance", "below": "below chance",
             "undecided": "not distinguishable from chance"}  # fmt: skip


def choosing(found: Findings) -> Iterator[Block]:
    """Nothing without multiple-choice questions."""
    if not found.choices:
        return
    yield Heading(2, TITLE)
    yield Paragraph(MEANING)
    yield from conclusions(found)
    from engine.report import charts

    published = found.baselines.lines
    if published or any(one.accuracy for one in found.choices):
        yield ChartBlock(
            charts.choice_words(found.choices, published),
            lambda: charts.choices(found.choices, published, _families(found)),
        )
    yield from tables(found.choices, published)


def _families(found: Findings) -> dict[str, str]:
    lines = found.table.drop_duplicates("label")
    families = dict(zip(lines["label"], lines["family"].astype(str), strict=True))
    return toned({label: families[label] for label in labels(found.table)})


def conclusions(found: Findings) -> Iterator[Block]:
    """One line per model and pair over all questions, then what limits them."""
    whole = [one for one in found.choices if one.task == ALL]
    texts = [*map(sentence, whole), *map(pair_sentence, found.choice_pairs)]
    texts += [text for one in whole for text in _limits(one)]
    texts += [OF_PUBLISHED] if found.baselines.lines else []
    yield Bullets((*texts, *found.baselines.problems))


def sentence(one: ChoiceAccuracy) -> str:
    """The accuracy over all questions, and whether it differs from chance."""
    share = one.accuracy
    if share is None:
        return f"{one.label}: no accuracy, because no answer can be judged."
    amount = f"{count(share.n, 'question')} of {count(share.clusters, 'sequence')}"
    always = f"always answering {_commonest(one)} gives {percent(one.always)}"
    head = f"{one.label}: {percent(share.share)} right on {amount}"
    if (ends := share.ends) is None:
        return (
            f"{head}, chance {percent(one.chance)}, {always}; no interval and no conclusion, "
            f"because it needs at least {MIN_CLUSTERS} sequences."
        )
    return (
        f"{head} (95 % interval {_interval(ends)}): {_VERDICTS[one.verdict]} "
        f"({percent(one.chance)}); {always}."
    )


def _commonest(one: ChoiceAccuracy) -> str:
    return one.commonest or "with the commonest option of each task"


def _interval(ends: tuple[float, float]) -> str:
    return f"{percent(ends[0])} to {percent(ends[1])}"


def pair_sentence(pair: ChoicePair) -> str:
    """The difference of two models on the questions that both answered."""
    share = pair.difference
    head = (
        f"{pair.a} and {pair.b} on the same {count(share.n, 'question')}: {share.share:+.1%} "
        f"(only {pair.a} right: {pair.only_a:,.4g}, only {pair.b} right: {pair.only_b:,.4g})"
    )
    if share.low is None or share.high is None:
        return f"{head}: no conclusion, because an interval needs {MIN_CLUSTERS} sequences."
    interval = f"95 % interval {share.low:+.1%} to {share.high:+.1%}"
    ends = {"above": f"{pair.a} is more often right", "below": f"{pair.b} is more often right"}
    return f"{head}, {interval}: {ends.get(pair.verdict, 'no conclusion')}."


def _limits(one: ChoiceAccuracy) -> Iterator[str]:
    if one.unreadable:
        yield (
            f"Unreadable: {one.unreadable:,} of {one.answers:,} answers of {one.label} "
            f"({percent(one.unreadable / one.answers)}) name no option or several. They count as "
            "wrong."
        )
    if one.failed:
        yield (
            f"Failed and in no accuracy: {count(one.failed, 'result')} of {one.label}. Failures do "
            "not count as wrong."
        )
    if one.left_out:
        yield (
            f"Not judged: {count(one.left_out, 'answer')} of {one.label}, because the right option "
            "is not known or the model was not trained on the question."
        )


def finding(found: Findings) -> tuple[str, ...]:
    """One line for the first page, if there are multiple-choice questions."""
    told = [
        f"{one.label}: {_share(one.accuracy)}, {_VERDICTS.get(one.verdict, 'no conclusion')}"
        for one in found.choices
        if one.task == ALL and one.accuracy is not None
    ]
    return (f"Accuracy on multiple-choice questions: {'; '.join(told)}.",) if told else ()


def text_line(one: ChoiceAccuracy) -> str:
    """A line of the summary on a terminal."""
    share, task = one.accuracy, f" {one.task}" if one.task else ""
    failed = f", failed {one.failed:,}" if one.failed else ""
    if share is None:
        return f"  {'accuracy':12s}{task} not known{failed}"
    return (
        f"  {'accuracy':12s}{task} {percent(share.share, share.ends)} "
        f"(n {share.n:,}, chance {percent(one.chance)}, unreadable {one.unreadable:,} of "
        f"{one.answers:,}{failed})"
    )


def tables(found: Sequence[ChoiceAccuracy], published: Sequence[Baseline]) -> list[ReportTable]:
    """A row per model and task with the published figures below, and the sources of these.

    Columns without any value are left out.
    """
    columns = ("model", "task", "questions", "sequences", "accuracy (95 % interval)", "chance",
               "commonest answer", "unreadable", "failed", "by log-probability",
               "same letter")  # fmt: skip
    rows = [*map(_row, found), *(_published_row(one, len(columns)) for one in published)]
    whole = ReportTable("Accuracy by model and task.", *_filled(columns, rows), 2)
    if not published:
        return [whole]
    sources = tuple((one.model, one.task or "all", one.paper, one.table, one.url)
                    for one in published)  # fmt: skip
    head = ("model", "task", "paper", "table", "address")
    return [whole, ReportTable(f"Sources of the figures {PUBLISHED}.", head, sources, 5)]


def _filled(
    columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The columns in which a row has a value, and the rows of these."""
    kept = [at for at in range(len(columns)) if any(row[at] != NONE for row in rows)]
    return tuple(columns[at] for at in kept), tuple(tuple(row[at] for at in kept) for row in rows)


def _row(one: ChoiceAccuracy) -> tuple[str, ...]:
    share = one.accuracy
    unreadable = percent(one.unreadable / one.answers) if one.answers else NONE
    always = f"{percent(one.always)} ({one.commonest or 'per task'})" if share else NONE
    return (
        one.label,
        one.task or "all",
        f"{one.questions:,}",
        f"{share.clusters:,}" if share else NONE,
        _share(share),
        percent(one.chance),
        always,
        f"{one.unreadable:,} ({unreadable})",
        f"{one.failed:,}",
        _share(one.likeliest),
        percent(one.agree),
    )


def _share(share: ClusteredShare | None) -> str:
    return percent(share.share, share.ends) if share else percent(None)


def _published_row(one: Baseline, columns: int) -> tuple[str, ...]:
    n = NONE if one.n is None else f"{one.n:,}"
    known = (f"{one.model} ({PUBLISHED})", one.task or "all", n, NONE, one.percent)
    return (*known, *[NONE] * (columns - len(known)))
