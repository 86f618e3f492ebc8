"""One model's answers as drafts for another model, in one file or in own runs, with charts."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import altair as alt
import streamlit as st

from engine.analysis.acceptance import GAMMA, Acceptance, Pair, Range, analyse, pairs_of_rows
from engine.palette import NEUTRAL, STAGE_COLOURS
from engine.published.claims import published_report
from engine.published.claims.published_report import comparison_name, ranged
from engine.published.read import answer_pairs
from engine.quoting import percent, times
from engine.report import charts
from engine.report.blocks import Block, ChartBlock
from ui.published.opened_sets import OpenedSets, kept
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks, choices, notices
from ui.widgets.text import when

NONE = "Nothing here has token ids of two models, so acceptance cannot be computed."
TWO = "Acceptance needs the answers of two models. Choose a run with two models, or start one."
MATCHES = {
    True: "True pairs match more often than shuffled ones.",
    False: "Pairs of different samples match equally often, so the match says nothing about the "
    "images.",
}
PREDICTED, CEILING = "predicted", "if all are accepted"
LONGEST = 16  # greatest draft length
Of = Callable[[int], dict[str, Acceptance]]


def show(found: OpenedSets) -> None:
    usable = tuple(filter(answer_pairs.drafts, found.usable))
    if not usable:
        notices.hint(NONE)
        return
    file = found.choose(usable, "drafts_of")

    def of(gamma: int) -> dict[str, Acceptance]:
        return answer_pairs.variants(file, gamma, found.corrected)

    _draw(of, file.draft, file.target, published_report.stated_table([file], found.corrected))


def _draw(of: Of, draft: str, target: str, stated: Iterable[Block] = ()) -> None:
    """Draft length, comparison, figures; `of`: every comparison by name for a draft length."""
    left, right = st.columns(2)
    gamma: int = right.slider(
        "Draft length g (tokens)", 1, LONGEST, GAMMA, key="drafts_length", bind="query-params"
    )
    kinds = of(gamma)
    names = {kind: comparison_name("draft", "target", kind) for kind in kinds}
    kind = choices.listed("Comparison", names, "drafts_variant", left)
    one = kinds[kind]
    notices.small(verdict(one), "imported_verdict")
    left, right = st.columns(2)
    with left:
        blocks.draw(matching(one), "imported_matching")
    with right:
        lengths = map(of, range(1, LONGEST + 1))
        over = [some[kind] for some in lengths if kind in some] if one.speedup else []
        blocks.draw(speedups(over, gamma), "imported_speedups")
    named = {comparison_name(draft, target, kind): one for kind, one in kinds.items()}
    tables = (*published_report.acceptance_table("comparison", named), *stated)
    blocks.draw(tables, "imported_acceptance")
    notices.small(published_report.ACCEPTANCE, "imported_acceptance_meaning")


def _ends(found: Range, unit: float = 1) -> dict[str, float]:
    """Without an interval both ends are the value, so only a dot is drawn."""
    low, high = found.interval or (found.value, found.value)
    return {"value": unit * found.value, "low": unit * low, "high": unit * high}


def matching(found: Acceptance) -> list[ChartBlock]:
    """True and shuffled pairs: percent of ids that match by position, with intervals."""
    pairs = (
        ("true pairs", found.rate, STAGE_COLOURS["decode"]),
        ("shuffled pairs", found.shuffled, NEUTRAL),
    )
    rows = [
        {"name": name, "words": ranged(percent, one), "colour": colour, **_ends(one, 100)}
        for name, one, colour in pairs
        if one is not None
    ]
    top = max([1.0, *(1.1 * float(str(row["high"])) for row in rows)])
    words = " ".join(f"{row['name']}: {row['words']}." for row in rows)
    tips = {"name:N": "Pairs", "words:N": "Matching (95 %)"}
    scale, title = alt.Scale(domain=[0, top], nice=False), "ids that match by position (%)"
    chart = ChartBlock(
        f"Ids that match by position. {words}",
        lambda: charts.intervals(rows, title, tips, scale=scale),
    )
    return [chart] if rows else []


def speedups(found: Sequence[Acceptance], chosen: int) -> list[ChartBlock]:
    """Predicted speed-up and ceiling by draft length; lines at the chosen one and at 1x."""
    timed = [(one, one.speedup) for one in found if one.speedup is not None]
    rows: list[dict[str, Any]] = [
        {"name": PREDICTED, "at": one.gamma, **_ends(speedup)} for one, speedup in timed
    ]
    for one, _ in timed:
        ceiling = {"name": CEILING, "at": one.gamma, "value": one.ceiling}
        rows.append(ceiling | {"low": None, "high": None})
    colours = {PREDICTED: STAGE_COLOURS["decode"], CEILING: NEUTRAL}
    y, lines = "speed-up against the target alone (x)", {"x": float(chosen), "y": 1.0}
    told = (f"g {one.gamma}: {ranged(times, one.speedup)}, ceiling {times(one.ceiling)}."
            for one, _ in timed)  # fmt: skip
    start = "Predicted speed-up over the draft length; under 1x is slower."
    chart = ChartBlock(
        " ".join([start, *told]),
        lambda: charts.curves(rows, "draft length g (tokens)", y, colours, lines),
    )
    return [chart] if timed else []


def verdict(found: Acceptance) -> str:
    parts = [_outlook(found.speedup)]
    if found.says_something is not None:
        parts.insert(0, MATCHES[found.says_something])
    if found.clips < found.pairs:
        parts.append(f"These are {found.amount}; intervals are over clips.")
    return " ".join(parts)


def _outlook(speedup: Range | None) -> str:
    if speedup is None:
        return "A speed-up cannot be predicted without times of both models."
    if speedup.interval is None:
        return "Too few clips for an interval (six are needed): the speed-up is uncertain."
    low, high = (round(end, 2) for end in speedup.interval)  # as the table prints them
    if high < 1:
        return "Drafting would make the target slower."
    if low > 1:
        return "Drafting would make the target faster."
    return "The interval includes 1x: it is undecided whether drafting helps."


def show_own(runs: OpenedRuns) -> None:
    every = runs.table.groupby("number")["model"].unique()
    models = list(dict.fromkeys(model for names in every if len(names) > 1 for model in names))
    if not models:
        notices.hint(TWO)
        return
    keys, titles = ("drafts_draft", "drafts_target"), ("Draft", "Target")
    draft, target = choices.two(models, (models[0], models[1]), keys, titles)
    if draft == target:
        notices.notice("Draft and target are the same model: choose another one.", "imported_same")
        return
    key = runs.key, draft, target
    found = kept(("own pairs", *key), lambda: _paired(runs, draft, target))
    if not found:
        notices.hint(NONE)
        return
    name = choices.listed("Run", {name: name for name in found}, "drafts_of")

    def of(gamma: int) -> dict[str, Acceptance]:
        figures = ("own acceptance", *key, name, gamma)
        return {"main": kept(figures, lambda: analyse(found[name], draft, target, gamma))}

    _draw(of, draft, target)


def _paired(runs: OpenedRuns, draft: str, target: str) -> dict[str, tuple[Pair, ...]]:
    """By run; only the first answer to each sample, no warm-up run."""
    found = {}
    for run in runs.runs:
        rows = (row for _, row in run.results() if row.phase == "measured" and not row.repeat)
        if pairs := pairs_of_rows(rows, draft, target):
            found[f"{when(run.header.created)} · {run.id}"] = pairs
    return found
