"""Accuracies of multiple-choice questions as dots with intervals, with marks of chance.

A row per model and task under the task's name.  A published figure is a hollow square, because it
was not measured here.

Boundary: figures in, an Altair chart or its text out.  Reports and the Results page share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from engine.analysis.choice_accuracy import ChoiceAccuracy
from engine.analysis.number_text import count, percent
from engine.palette import family_colour
from engine.report.named_baselines import PUBLISHED, Baseline

if TYPE_CHECKING:
    import altair as alt

_ROW, _LINE = 26, 12
_MARK = "\x1f"  # between a task and a label in the name of a row
_GREY = "#868D97"
ALL_WORDS = "All questions"


def chart(
    found: Sequence[ChoiceAccuracy],
    baselines: Sequence[Baseline],
    families: Mapping[str, str],
    width: int | None = None,
) -> alt.LayerChart:
    """The chart; `families`: the colour of each label as in palette.tones."""
    import altair as alt
    import pandas as pd

    rows = lines(found, baselines)
    more = max((str(row["label"]).count(" · ") for row in rows), default=0)
    names = alt.Axis(
        labelExpr=f"split(datum.value, '{_MARK}')[1] == '' ? split(datum.value, '{_MARK}')[0] : "
        f"split(split(datum.value, '{_MARK}')[1], ' · ')",
        labelFontWeight=_bold(),
        labelLimit=320,
        labelLineHeight=_LINE,
        labelOffset=-more * _LINE / 2,
        labelOverlap=False,
        ticks=False,
        domain=False,
    )
    y = alt.Y("row:N", sort=[str(row["row"]) for row in rows], title=None, axis=names)
    scale = alt.Scale(domain=[0, 1], nice=False)
    title = "accuracy (share of questions) with 95 % interval; upright mark: chance"
    x = alt.X("share:Q", title=title, scale=scale, axis=alt.Axis(format="%"))
    labels = list(dict.fromkeys(str(row["label"]) for row in rows if row["kind"] == "own"))
    colours = [family_colour(families.get(label, "")) for label in labels]
    colour = alt.Color("label:N", scale=alt.Scale(domain=labels, range=colours), legend=None)
    tips = [alt.Tooltip(f"{name}:N", title=title) for name, title in _TIPS.items()]
    base: Any = alt.Chart(pd.DataFrame(rows)).encode(y=y, tooltip=tips)
    own, other = base.transform_filter("datum.kind == 'own'"), "datum.kind == 'published'"
    layers = [
        base.mark_tick(thickness=2, size=_ROW - 6, color=_GREY).encode(
            x=alt.X("chance:Q", title=title)
        ),
        own.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour),
        own.mark_circle(size=90, opacity=1).encode(x=x, color=colour),
        base.transform_filter(other)
        .mark_point(shape="square", filled=False, size=80, color=_GREY, strokeWidth=2)
        .encode(x=x),
    ]
    size: dict[str, Any] = {"height": (_ROW + more * _LINE) * max(1, len(rows))}
    size |= {"width": width} if width else {}
    return cast("alt.LayerChart", alt.layer(*layers).properties(**size))


_TIPS = {
    "label": "Model",
    "task": "Task",
    "words": "Accuracy",
    "n": "Questions",
    "source": "Source",
}


def _bold() -> Any:
    """Names of tasks are bold."""
    test = f"split(datum.value, '{_MARK}')[1] == ''"
    return {"condition": {"test": test, "value": "bold"}, "value": "normal"}


def lines(found: Sequence[ChoiceAccuracy], baselines: Sequence[Baseline]) -> list[dict[str, Any]]:
    """The rows from top to bottom: a task's name, own figures, published figures."""
    tasks = dict.fromkeys((*(one.task for one in found), *(one.task for one in baselines)))
    rows: list[dict[str, Any]] = []
    for task in tasks:
        name = task or ALL_WORDS
        rows.append({"row": f"{name}{_MARK}", "label": "", "kind": "task", "task": name})
        for one in found:
            if one.task == task and one.accuracy is not None:
                rows.append(_own(one, name))
        rows += [
            _published(one, name, place) for place, one in enumerate(baselines) if one.task == task
        ]
    return [_EMPTY | row for row in rows]


_EMPTY: dict[str, Any] = dict.fromkeys(("share", "low", "high", "chance"), None)
_EMPTY |= dict.fromkeys(("words", "n", "source"), "")


def _own(one: ChoiceAccuracy, task: str) -> dict[str, Any]:
    share = one.accuracy
    assert share is not None
    return {
        "row": f"{task}{_MARK}{one.label}",
        "label": one.label,
        "kind": "own",
        "task": task,
        "share": share.share,
        "low": share.low,
        "high": share.high,
        "chance": one.chance,
        "words": percent(share.share, ends(one)),
        "n": f"{share.n:,}",
        "source": "measured here",
    }


def _published(one: Baseline, task: str, place: int) -> dict[str, Any]:
    return {
        # Zero-width spaces tell two published figures of one model apart.
        "row": f"{task}{_MARK}{one.model} · {PUBLISHED}" + "\u200b" * place,
        "label": f"{one.model} · {PUBLISHED}",
        "kind": "published",
        "task": task,
        "share": one.accuracy,
        "words": one.percent,
        "n": "not given" if one.n is None else f"{one.n:,}",
        "source": f"{PUBLISHED}: {one.source}",
    }


def ends(one: ChoiceAccuracy) -> tuple[float, float] | None:
    """The interval of the accuracy, if there is one."""
    share = one.accuracy
    return (
        None
        if share is None or share.low is None or share.high is None
        else (share.low, share.high)
    )


def words(found: Sequence[ChoiceAccuracy], baselines: Sequence[Baseline]) -> str:
    """The chart as text."""
    said = [
        f"{one.label}, {one.task or ALL_WORDS.lower()}: {percent(one.accuracy.share, ends(one))} "
        f"of {count(one.questions, 'question')}, chance {percent(one.chance)}."
        for one in found
        if one.accuracy is not None
    ]
    said += [
        f"{one.model}, {one.task or ALL_WORDS.lower()}: {one.percent}, {PUBLISHED} ({one.source})."
        for one in baselines
    ]
    return "Accuracy with 95 % intervals. " + " ".join(said)
