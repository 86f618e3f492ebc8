"""Accuracy of options, and by the strength of a change with the changed answers: words, tables and
charts.  A conclusion about chance or about two models needs an interval that
excludes equality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from engine.analysis.agreement import ALL, ChoiceAccuracy, ChoicePair
from engine.analysis.results_table import tones
from engine.analysis.robustness import Measure, Point, Robustness
from engine.analysis.statistics import MIN_CLUSTERS, ClusteredShare
from engine.media_options import Change, Perturbation
from engine.palette import toned
from engine.quoting import NONE, count, percent
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph, Table
from engine.report.report_figures import Findings

if TYPE_CHECKING:
    import altair as alt

TITLE = "Accuracy on multiple-choice questions"
MEANING = (
    "Accuracy is the share of questions whose answer names the right option; an unreadable answer "
    "counts as wrong, and repeats of a question count once by their mean. Intervals are 95 % "
    "intervals clustered by sequence. Chance is the mean of 1 / options. By log-probability: the "
    "letter that the model finds most likely as its first token."
)
_VERDICTS = {"above": "above chance", "below": "below chance",
             "undecided": "not distinguishable from chance"}  # fmt: skip
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
    yield choice_table(found.choices)


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


def choice_table(found: Sequence[ChoiceAccuracy]) -> Table:
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
    return Table("Accuracy by model and task.", columns, tuple(cells), 2)


def _share(share: ClusteredShare | None) -> str:
    return percent(share.share, share.ends) if share else percent(None)


def robust(found: Findings) -> Iterator[Block]:
    """Nothing without perturbed runs; one sentence if they form no sweep."""
    if found.robustness is not None:
        yield Heading(2, "Robustness")
        yield from sweep_parts(found.robustness)


def sweep_parts(sweep: Robustness, charts: bool = True) -> Iterator[Block]:
    """Definitions, then a chart and a table per measure; or why there are no curves."""
    if sweep.problem or sweep.change is None:
        yield Paragraph(sweep.problem)
        return
    yield Bullets(tuple(definitions(sweep)))
    for measure in sweep.measures:
        if charts:
            yield ChartBlock(sweep_words(sweep, measure), partial(sweep_chart, sweep, measure))
        yield sweep_table(sweep, measure)


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


def sweep_table(sweep: Robustness, measure: Measure) -> Table:
    rows = tuple(
        (curve.title, _strength(sweep, point), f"{point.n:,}", f"{point.sequences:,}",
         f"{point.failed:,}", f"{point.share:.3f}", _interval(point))
        for curve in sweep.curves
        if curve.measure == measure
        for point in curve.points
    )  # fmt: skip
    columns = ("model", "strength", "n", "sequences", "failed", "share", "95 % interval")
    return Table(f"{NAMES[measure]} by strength.", columns, rows, 2)


def _strength(sweep: Robustness, point: Point) -> str:
    assert sweep.change is not None
    return str(Perturbation(sweep.change, point.strength))


def _interval(point: Point) -> str:
    if point.low is None or point.high is None:
        return NONE
    return f"{point.low:.3f} to {point.high:.3f}"


def sweep_words(sweep: Robustness, measure: Measure) -> str:
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


def sweep_chart(sweep: Robustness, measure: Measure) -> alt.LayerChart:
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
