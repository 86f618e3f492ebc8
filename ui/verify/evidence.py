"""The evidence of each check: tokens, calls, times, cache keys, changed pictures.

Boundary: one finding in, elements on the page out.  Evidence may come from an untrusted file:
anything that is not in the engine's form is shown as raw text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from engine.palette import STAGE_COLOURS
from ui.verify import verdict_markup
from ui.verify.report_view import CheckRow
from ui.widgets.text import count, escape, ms

WAYS = {
    "plain": "plain: its own generate() on pixels",
    "hooked": "hooked: the same with the probe",
    "computed": "decoupled, features computed now",
    "decoupled, computed": "decoupled, features computed now",
    "decoupled": "decoupled, features read from disk",
    "features": "features: its generate() given the features",
}
COMPARED = (  # checks that compare the tokens of two answers
    *("equal_hooked", "equal_decoupled", "equal_features", "equal_prefix"),
    *("equal_sampled", "equal_batch", "shapes", "long"),
)
# check -> how its figure and bound are compared
MUST = {
    "sight": "must be more than",
    "stage3": "must be within ±",
    **dict.fromkeys(COMPARED, "must be all"),
}
CHART_COLUMNS = 3
_RAW_CHARS = 20_000


def show(row: CheckRow) -> None:
    """Outcome, sentence, figure and bound, then the evidence."""
    st.html(verdict_markup.mark(row.outcome))
    st.text(row.sentence)
    if figure := in_figures(row):
        st.caption(figure)
    if not row.evidence:
        return
    draw = _DRAWN.get(row.check, _raw)
    try:
        draw(row)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        st.caption("This version cannot draw this evidence. Raw data:")
        _raw(row)


def in_figures(row: CheckRow) -> str:
    """The figure with its unit and its bound."""
    if row.figure is None:
        return ""
    share = row.unit.startswith("of ")
    figure, bound = (_figure(value, share) for value in (row.figure, row.bound))
    if row.bound is None:
        return f"Figure: {figure} {row.unit}."
    must = "must be" if row.bound == 0 else MUST.get(row.check, "must be at most")
    return f"Figure: {figure} {row.unit}; {must} {bound}.".replace("± ", "±")


def _figure(value: float | None, share: bool) -> str:
    if value is None:
        return ""
    return f"{value:.2%}" if share else f"{value:,.4g}"


def _raw(row: CheckRow) -> None:
    st.code(json.dumps(row.evidence, indent=1, default=str)[:_RAW_CHARS], language=None)


def _answer(row: CheckRow) -> None:
    st.caption(f"Input: {escape(row.evidence['shown'])}. Answer:")
    st.text(row.evidence["text"])


def _equal(row: CheckRow) -> None:
    """Both answers in tokens, with the two best logits of each side at the first difference."""
    found, at = row.evidence, row.evidence["position"]
    sides = {"plain": found["plain"], str(found["way"]): found["other"]}
    for way, side in sides.items():
        st.html(verdict_markup.tokens(WAYS.get(way, way), side["pieces"], side["ids"], at))
    if at is not None:
        st.html(_best(sides, at))
    apart, embeddings = found["logit_difference"], found["first_embeddings_difference"]
    st.html(
        verdict_markup.grid(
            ["Compared", "Figure"],
            [
                [
                    "Largest difference of logits",
                    "no logits to compare" if apart is None else f"{apart:.3g}",
                ],
                ["Difference explained by rounding", f"{found['rounding']:.3g}"],
                [
                    "Largest difference of the language model's input embeddings",
                    "different shapes" if embeddings is None else f"{embeddings:.3g}",
                ],
            ],
            "Differences of logits and embeddings",
        )
    )


def _best(sides: Mapping[str, Any], at: int) -> str:
    rows = [
        [
            WAYS.get(way, way),
            rank,
            verdict_markup.visible(best["piece"]),
            best["id"],
            f"{best['logit']:.5f}",
        ]
        for way, side in sides.items()
        for rank, best in zip(("best", "second"), side["best"], strict=False)
    ]
    head = ["Side", "Rank", "Token", "Id", "Logit"]
    about = f"The two best logits of each side at token {at + 1}"
    return f"{verdict_markup.line(f'{about}:', 'head')}{verdict_markup.grid(head, rows, about)}"


def _greedy(row: CheckRow) -> None:
    rows = [[_way(way), _list(at)] for way, at in row.evidence["positions"].items()]
    if rows:
        head = ["Way", "Tokens that do not have the best logit of their step"]
        st.html(verdict_markup.grid(head, rows, "Tokens that are not greedy"))


def _list(positions: list[int]) -> str:
    shown = ", ".join(str(int(at) + 1) for at in positions[:20])
    return shown if len(positions) <= 20 else f"{shown} … ({len(positions)} in total)"


def _way(way: str) -> str:
    return WAYS.get(way, way)


def _counted(row: CheckRow) -> None:
    rows = [
        [_way(way), counts["computed"], counts["returned"]]
        for way, counts in row.evidence["counts"].items()
    ]
    head = ["Way", "Computed by the head", "Returned as new"]
    st.html(verdict_markup.grid(head, rows, "Tokens computed and returned, per way"))


def _encoded_once(row: CheckRow) -> None:
    """A row per way, a column per vision module, the tower first."""
    calls = row.evidence["calls"]
    modules = [str(seen["module"]) for seen in calls["plain"]]
    rows = [
        [
            _way(way),
            *(f"{count(s['calls'], 'call')}, {count(s['pictures'], 'picture')}" for s in seen),
        ]
        for way, seen in calls.items()
    ]
    shown = count(row.evidence["pictures"], "picture")
    st.caption(f"The sample has {shown}. Calls of the vision modules, counted by hooks:")
    st.html(verdict_markup.grid(["Way", *modules], rows, "Calls of the vision modules, per way"))
    _faults(row)


def _faults(row: CheckRow) -> None:
    if faults := [str(fault) for fault in row.evidence["faults"]]:
        st.html(verdict_markup.bullets("Faults", faults))


def _clock(row: CheckRow) -> None:
    monotonic = "cannot be set back" if row.evidence["monotonic"] else "can be set back"
    st.caption(f"{count(row.evidence['runs'], 'run')} checked; this system's clock {monotonic}.")
    _faults(row)


def _accounted(row: CheckRow) -> None:
    """A small chart per stage, then all figures."""
    from ui.charts import verify_charts  # altair and pandas: imported when the first chart is drawn

    kinds = row.evidence["kinds"]
    st.caption(
        f"Dots: the {row.evidence['n']} warm runs. Box: first to third quartile. Vertical line: "
        "median. Hollow diamond: the first run, which includes start-up work and is not in the "
        "median. Each part has its own axis."
    )
    columns = st.columns(CHART_COLUMNS)
    for index, part in enumerate(verify_charts.PARTS):
        found = verify_charts.times(kinds, part)
        if found:
            with columns[index % CHART_COLUMNS]:
                chart, words = (
                    verify_charts.stage_chart(part, found),
                    verify_charts.stage_words(part, found),
                )
                st.altair_chart(chart, alt=words, width="stretch")
    head = ["Part", *(verify_charts.KINDS.get(kind, kind) for kind in kinds)]
    st.html(
        verdict_markup.grid(
            head, verify_charts.stage_cells(kinds), "Times of the stages, per kind of run"
        )
    )
    shares = [[_kind(kind), f"{share:.2%}"] for kind, share in row.evidence["shares"].items()]
    st.html(
        verdict_markup.grid(["Kind of run", "Not covered by stages"], shares, "Shares not covered")
    )


def _kind(kind: str) -> str:
    from ui.charts import verify_charts

    return verify_charts.KINDS.get(kind, kind)


def _stage3(row: CheckRow) -> None:
    pairs = list(zip(row.evidence["alone_ms"], row.evidence["probe_ms"], strict=True))
    _ratios(row, pairs, "measured by the probe / measured alone (ratio)", both_sides=True)
    rows = [
        [f"round {n}", *(ms(one).removesuffix(" ms") for one in (alone, probe))]
        for n, (alone, probe) in enumerate(pairs, 1)
    ]
    head = ["Warm run", "Stage 3 alone (ms)", "Stage 3 by the probe (ms)"]
    st.html(verdict_markup.grid(head, rows[:20], "Stage 3 measured two ways"))


def _observer(row: CheckRow) -> None:
    answer = row.evidence["answer_ms"]
    pairs = [(answer, answer + probed - bare) for bare, probed in row.evidence["pairs_ms"]]
    _ratios(row, pairs, "generate() with the probe / without it (ratio)", both_sides=False)


def _ratios(row: CheckRow, pairs: list[tuple[float, float]], title: str, both_sides: bool) -> None:
    from ui.charts import verify_charts

    found = verify_charts.Ratios(
        values=tuple(second / first for first, second in pairs),
        median=float(row.evidence["median"]),
        low=float(row.evidence["low"]),
        high=float(row.evidence["high"]),
        bound=float(row.bound or 0),
        both_sides=both_sides,
        title=title,
    )
    st.caption("One mark per pair; the two runs of a pair follow each other.")
    chart = verify_charts.pairs_chart(found, STAGE_COLOURS["vision"])
    st.altair_chart(chart, alt=found.words, width="stretch")
    st.caption(
        "The median and its 95 % interval (sign test), on a finer axis. The check passes if the "
        "whole interval is on the right side of the bound."
    )
    chart = verify_charts.interval_chart(found, STAGE_COLOURS["vision"])
    st.altair_chart(chart, alt=found.words, width="stretch")


def _keys(row: CheckRow) -> None:
    rows = [
        [
            change["what"],
            "change" if change["must_change"] else "stay",
            "changed" if change["changed"] else "stayed",
            "✓ right" if change["right"] else "✕ wrong",
        ]
        for change in row.evidence["changes"]
    ]
    head = ["Change", "The key must", "The key", ""]
    st.html(verdict_markup.grid(head, rows, "Changes and their effect on the cache key"))


def _damage(row: CheckRow) -> None:
    steps = row.evidence["steps"].items()
    rows = [[name, "✓ yes" if done else "✕ no"] for name, done in steps]
    head = ["After a byte was changed on disk", ""]
    st.html(verdict_markup.grid(head, rows, "Handling of a changed byte"))
    if note := row.evidence["note"]:
        st.caption("The run's note:")
        st.text(note)


def _left_as_found(row: CheckRow) -> None:
    _faults(row)
    st.caption("plain, repeated and compared with its first answer:")
    st.text(row.evidence["again"])


def _sight(row: CheckRow) -> None:
    st.caption("Answer with its own features:")
    st.text(row.evidence["own"])
    for change in row.evidence["changes"]:
        same = "the same" if change["text"] == row.evidence["own"] else "different"
        st.html(
            verdict_markup.line(
                f"With {change['shown']} instead, the first logits change by "
                f"{change['moved']:.3g}; the answer is {same}:",
                "head",
            )
        )
        st.text(change["text"])


def _pixels(row: CheckRow) -> None:
    """The setting that was verified."""
    st.text(f"Pixels: {row.evidence['setting']}")


_DRAWN: dict[str, Callable[[CheckRow], None]] = {
    "answer": _answer,
    "pixels": _pixels,
    **dict.fromkeys(COMPARED, _equal),
    "greedy": _greedy,
    "counted": _counted,
    "encoded_once": _encoded_once,
    "clock": _clock,
    "accounted": _accounted,
    "stage3": _stage3,
    "observer": _observer,
    "left_as_found": _left_as_found,
    "keys": _keys,
    "damage": _damage,
    "sight": _sight,
}
