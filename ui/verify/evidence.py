"""The evidence of each check: tokens of two answers, times, and tables of everything else.

Evidence may come from an untrusted file: what cannot be drawn is shown as raw text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import streamlit as st

from engine.palette import STAGE_COLOURS
from engine.report.blocks import Block, Bullets, ReportTable
from engine.verify.verdict import Verdict
from ui.verify import verdict_markup
from ui.widgets import blocks
from ui.widgets.text import ms

WAYS = {
    "plain": "plain: its own generate() on pixels",
    "hooked": "hooked: the same with the probe",
    "computed": "decoupled, features computed now",
    "decoupled, computed": "decoupled, features computed now",
    "decoupled": "decoupled, features read from disk",
    "features": "features: its generate() given the features",
}
KEYS = {  # of the evidence, where they do not speak for themselves
    "positions": "tokens that do not have the best logit of their step (the first is 0)",
    "again": "plain, repeated and compared with its first answer",
    "own": "answer with its own features",
    "moved": "change of the first logits",
    "what": "change",
    "must_change": "the key must change",
    "changed": "the key changed",
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
MOST = 20  # values of a list, rows of a table
_RAW_CHARS = 20_000


def show(row: Verdict, key: str) -> None:
    """Outcome, sentence, figure and bound, then the evidence; `key` is that of its texts."""
    st.html(verdict_markup.mark(row.outcome))
    st.text(row.sentence)
    if figure := in_figures(row):
        st.caption(figure)
    if not row.evidence:
        return
    try:
        if row.check in DRAWN:
            DRAWN[row.check](row, key)
        else:
            blocks.draw(tables(row.evidence), key)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        st.caption("This version cannot draw this evidence. Raw data:")
        st.code(json.dumps(row.evidence, indent=1, default=str)[:_RAW_CHARS], language=None)


def in_figures(row: Verdict) -> str:
    if row.figure is None:
        return ""
    form = "{:.2%}" if row.unit.startswith("of ") else "{:,.4g}"
    figure = form.format(row.figure)
    if row.bound is None:
        return f"Figure: {figure} {row.unit}."
    must = "must be" if row.bound == 0 else MUST.get(row.check, "must be at most")
    return f"Figure: {figure} {row.unit}; {must} {form.format(row.bound)}.".replace("± ", "±")


def tables(evidence: Mapping[str, Any]) -> Iterator[Block]:
    """Single values in one table; each list and each mapping in a table of its own."""
    single = {name: one for name, one in evidence.items() if not isinstance(one, list | dict)}
    if single:
        rows = tuple((_name(name), _text(one)) for name, one in single.items())
        yield ReportTable("", ("", "value"), rows, words=2)
    for name, value in evidence.items():
        if not value or name in single:
            continue
        lines = value if isinstance(value, dict) else dict(enumerate(value, 1))
        inner = [one for one in lines.values() if isinstance(one, dict)]
        if not inner and isinstance(value, list):
            yield Bullets(tuple(map(_text, value[:MOST])), _name(name))
            continue
        columns = tuple(dict.fromkeys(key for one in inner for key in one)) or ("value",)
        yield ReportTable(
            _name(name),
            ("", *map(_name, columns)),
            tuple(
                (
                    WAYS.get(str(key), str(key)),
                    *(_text(one.get(c) if inner else one) for c in columns),
                )
                for key, one in list(lines.items())[: 2 * MOST]
            ),
            words=len(columns) + 1,
        )


def _name(name: str) -> str:
    return KEYS.get(name, name.replace("_", " "))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "✓ yes" if value else "✕ no"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{_name(name)} {_text(one)}" for name, one in value.items())
    if isinstance(value, list):
        more = f" … ({len(value)} in total)" if len(value) > MOST else ""
        return "; ".join(map(_text, value[:MOST])) + more
    return "none" if value is None else str(value)


def _equal(row: Verdict, key: str) -> None:
    """Both answers in tokens, with the two best logits of each side at the first difference."""
    found, at = row.evidence, row.evidence["position"]
    sides = {"plain": found["plain"], str(found["way"]): found["other"]}
    for way, side in sides.items():
        st.html(verdict_markup.tokens(WAYS.get(way, way), side["pieces"], side["ids"], at))
    drawn = []
    if at is not None:
        best = tuple(
            (WAYS.get(way, way), rank, verdict_markup.visible(one["piece"]), str(one["id"]),
             f"{one['logit']:.5f}")
            for way, side in sides.items()
            for rank, one in zip(("best", "second"), side["best"], strict=False)
        )  # fmt: skip
        about = f"The two best logits of each side at token {at + 1}"
        drawn.append(ReportTable(about, ("Side", "Rank", "Token", "Id", "Logit"), best, words=3))
    figures = {  # and what None means
        "Logits": (found["logit_difference"], "no logits to compare"),
        "Explained by rounding": (found["rounding"], ""),
        "The language model's input embeddings": (
            found["first_embeddings_difference"],
            "different shapes",
        ),
    }
    rows = ((about, none if value is None else f"{value:.3g}")
            for about, (value, none) in figures.items())  # fmt: skip
    drawn.append(ReportTable("", ("Largest difference", "Figure"), tuple(rows)))
    blocks.draw(drawn, key)


def _accounted(row: Verdict, key: str) -> None:
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
        if found := verify_charts.times(kinds, part):
            chart = verify_charts.stage_chart(part, found)
            alt = verify_charts.stage_words(part, found)
            columns[index % CHART_COLUMNS].altair_chart(chart, alt=alt, width="stretch")
    names = tuple(verify_charts.KINDS.get(kind, kind) for kind in kinds)
    cells = tuple(tuple(cells) for cells in verify_charts.stage_cells(kinds))
    shares = tuple(
        (verify_charts.KINDS.get(kind, kind), f"{share:.2%}")
        for kind, share in row.evidence["shares"].items()
    )
    blocks.draw(
        (
            ReportTable("", ("Part", *names), cells, words=len(names) + 1),
            ReportTable("", ("Kind of run", "Not covered by stages"), shares),
        ),
        key,
    )


def _stage3(row: Verdict, key: str) -> None:
    pairs = list(zip(row.evidence["alone_ms"], row.evidence["probe_ms"], strict=True))
    _ratios(row, pairs, "measured by the probe / measured alone (ratio)", both_sides=True)
    rows = tuple(
        (f"round {n}", *(ms(one).removesuffix(" ms") for one in pair))
        for n, pair in enumerate(pairs[:MOST], 1)
    )
    head = ("Warm run", "Stage 3 alone (ms)", "Stage 3 by the probe (ms)")
    blocks.draw([ReportTable("", head, rows)], key)


def _observer(row: Verdict, key: str) -> None:
    answer = row.evidence["answer_ms"]
    pairs = [(answer, answer + probed - bare) for bare, probed in row.evidence["pairs_ms"]]
    _ratios(row, pairs, "generate() with the probe / without it (ratio)", both_sides=False)


def _ratios(row: Verdict, pairs: list[tuple[float, float]], title: str, both_sides: bool) -> None:
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


DRAWN: dict[str, Callable[[Verdict, str], None]] = {
    **dict.fromkeys(COMPARED, _equal),
    "accounted": _accounted,
    "stage3": _stage3,
    "observer": _observer,
}
