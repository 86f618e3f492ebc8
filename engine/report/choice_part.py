"""Accuracy on multiple-choice questions in words and as a table.  A conclusion about chance or
about two models needs an interval that excludes equality."""

from collections.abc import Iterator, Sequence

from engine.analysis.choice_accuracy import ALL, ChoiceAccuracy, ChoicePair
from engine.analysis.results_table import tones
from engine.analysis.statistics import MIN_CLUSTERS, ClusteredShare
from engine.quoting import NONE, count, percent
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph, ReportTable
from engine.report.report_figures import Findings

TITLE = "Accuracy on multiple-choice questions"
MEANING = (
    "Accuracy is the share of questions whose answer names the right option; an unreadable answer "
    "counts as wrong, and repeats of a question count once by their mean. Intervals are 95 % "
    "intervals clustered by sequence. Chance is the mean of 1 / options. By log-probability: the "
    "letter that the model finds most likely as its first token."
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
    if any(one.accuracy for one in found.choices):
        from engine.report import charts

        words = charts.choice_words(found.choices)
        yield ChartBlock(words, lambda: charts.choices(found.choices, tones(found.table)))
    yield table(found.choices)


def conclusions(found: Findings) -> Iterator[Block]:
    """One line per model and pair over all questions, then what limits them."""
    whole = [one for one in found.choices if one.task == ALL]
    texts = [*map(sentence, whole), *map(pair_sentence, found.choice_pairs)]
    texts += [text for one in whole for text in limits(one)]
    yield Bullets(tuple(texts))


def limits(one: ChoiceAccuracy) -> Iterator[str]:
    if one.unreadable:
        yield (
            f"Unreadable: {one.unreadable:,} of {one.answers:,} answers of {one.label} "
            f"({percent(one.unreadable / one.answers)}) name no option or several."
            + (" They count as wrong." if one.accuracy else "")
        )
    if one.failed:
        failed = f"{count(one.failed, 'result')} of {one.label}"
        yield f"Failed and in no accuracy: {failed}. Failures do not count as wrong."
    if one.left_out:
        yield (
            f"Not judged: {count(one.left_out, 'answer')} of {one.label}, because the right "
            "option is not known or the model was not trained on the question."
        )


def sentence(one: ChoiceAccuracy) -> str:
    """The accuracy over all questions, and whether it differs from chance."""
    share, chance = one.accuracy, percent(one.chance)
    if share is None:
        return f"{one.label}: no accuracy, because no answer can be judged."
    amount = f"{count(share.n, 'question')} of {count(share.clusters, 'sequence')}"
    commonest = one.commonest or "with the commonest option of each task"
    always = f"always answering {commonest} gives {percent(one.always)}"
    head = f"{one.label}: {percent(share.share)} right on {amount}"
    if (ends := share.ends) is None:
        why = f"it needs at least {MIN_CLUSTERS} sequences"
        return f"{head}, chance {chance}, {always}; no interval and no conclusion, because {why}."
    interval = f"95 % interval {percent(ends[0])} to {percent(ends[1])}"
    return f"{head} ({interval}): {_VERDICTS[one.verdict]} ({chance}); {always}."


def pair_sentence(pair: ChoicePair) -> str:
    share = pair.difference
    head = (
        f"{pair.a} and {pair.b} on the same {count(share.n, 'question')}: {share.share:+.1%} "
        f"(only {pair.a} right: {pair.only_a:,.4g}, only {pair.b} right: {pair.only_b:,.4g})"
    )
    if share.low is None or share.high is None:
        return f"{head}: no conclusion, because an interval needs {MIN_CLUSTERS} sequences."
    better = {"above": pair.a, "below": pair.b}.get(pair.verdict)
    end = f"{better} is more often right" if better else "no conclusion"
    return f"{head}, 95 % interval {share.low:+.1%} to {share.high:+.1%}: {end}."


def finding(found: Findings) -> tuple[str, ...]:
    """One line for the first page, if there are multiple-choice questions."""
    told = [
        f"{one.label}: {_share(one.accuracy)}, {_VERDICTS.get(one.verdict, 'no conclusion')}"
        for one in found.choices
        if one.task == ALL and one.accuracy is not None
    ]
    return (f"Accuracy on multiple-choice questions: {'; '.join(told)}.",) if told else ()


def table(found: Sequence[ChoiceAccuracy]) -> ReportTable:
    """A row per model and task; columns without any value are left out."""
    names = ("model", "task", "questions", "sequences", "accuracy (95 % interval)", "chance",
             "commonest answer", "unreadable", "failed", "by log-probability",
             "same letter")  # fmt: skip
    rows = []
    for one in found:
        share = one.accuracy
        unreadable = percent(one.unreadable / one.answers) if one.answers else NONE
        always = f"{percent(one.always)} ({one.commonest or 'per task'})" if share else NONE
        sequences = f"{share.clusters:,}" if share else NONE
        rows.append((one.label, one.task or "all", f"{one.questions:,}", sequences, _share(share),
                     percent(one.chance), always, f"{one.unreadable:,} ({unreadable})",
                     f"{one.failed:,}", _share(one.likeliest), percent(one.agree)))  # fmt: skip
    places = [n for n in range(len(names)) if any(row[n] != NONE for row in rows)]
    columns, *cells = (tuple(row[n] for n in places) for row in (names, *rows))
    return ReportTable("Accuracy by model and task.", columns, tuple(cells), 2)


def _share(share: ClusteredShare | None) -> str:
    return percent(share.share, share.ends) if share else percent(None)
