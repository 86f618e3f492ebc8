"""The outcome of a check as HTML, and its evidence: tokens of two answers, times, and tables of
everything else.  Evidence may come from an untrusted file: what cannot be drawn is shown as raw
text."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape as escape_html
from itertools import islice
from typing import Any

import streamlit as st

from engine.analysis.statistics import MIN_CLUSTERS
from engine.report.blocks import Block, Bullets, Paragraph, Table
from engine.verify.verdict import Verdict
from ui.widgets import blocks
from ui.widgets.text import escape

WAYS = {
    "plain": "plain: its own generate() on pixels",
    "hooked": "hooked: the same with the probe",
    "decoupled": "decoupled, features read from disk",
    "features": "features: its generate() given the features",
    "computed": "decoupled, features computed now",
    "cached": "decoupled, stage 3 from the cache",
}
NAMES = {  # of the evidence, where they do not speak for themselves
    "positions": "tokens that do not have the best logit of their step (the first is 0)",
    "again": "plain, repeated and compared with its first answer",
    "own": "answer with its own features",
    "moved": "change of the first logits",
    "what": "change",
    "must_change": "the key must change",
    "changed": "the key changed",
    "shares": "not covered by stages",
    "alone_ms": "stage 3 alone (ms)",
    "probe_ms": "stage 3 by the probe (ms)",
}
SIDES = {"there": "the server's answer", "here": "the local answer"}
MOST_TEXTS = 3
CHART_COLUMNS = 3
MOST = 20  # values of a list
MOST_ROWS = 40
RAW_CHARS = 20_000
# outcome -> (symbol, word)
MARKS = {
    "passed": ("✓", "passed"),
    "tie": ("≈", "tie"),
    "failed": ("✕", "failed"),
    "unresolved": ("?", "open"),
    "skipped": ("○", "cannot run"),
    "refused": ("∅", "not offered"),
    "": ("–", "not done"),
    "pending": ("·", ""),
}
LONG = 60  # most equal tokens shown before a difference
_BEFORE = 20  # shown if there are more


def show(row: Verdict, key: str) -> None:
    """Outcome, sentence, figure and bound, then the evidence; `key` is that of its texts."""
    st.html(mark(row.outcome))
    st.text(row.sentence)
    if figure := in_figures(row):
        st.caption(figure)
    if not row.evidence:
        return
    try:
        draw = DRAWN.get(row.check)
        blocks.draw(draw(row) if draw else tables(row.evidence), key)
    except (LookupError, TypeError, ValueError, AttributeError):
        st.caption("This version cannot draw this evidence. Raw data:")
        st.code(json.dumps(row.evidence, indent=1, default=str)[:RAW_CHARS], language=None)


def in_figures(row: Verdict) -> str:
    if row.figure is None:
        return ""
    form = "{:.2%}" if row.unit.startswith("of ") else "{:,.4g}"
    figure = f"Figure: {form.format(row.figure)} {row.unit}"
    if row.bound is None:
        return f"{figure}."
    must = {"sight": "must be more than ", "stage3": "must be within ±"}
    must |= dict.fromkeys(COMPARED, "must be all ") if row.bound else {}
    exact = "must be " if row.bound == 0 else "must be at most "
    return f"{figure}; {must.get(row.check, exact)}{form.format(row.bound)}."


def tables(evidence: Mapping[str, Any]) -> Iterator[Block]:
    """Single values in one table; each list and each mapping in a table of its own."""
    single = {name: value for name, value in evidence.items() if not isinstance(value, list | dict)}
    if single:
        rows = tuple((_name(name), _text(value)) for name, value in single.items())
        yield Table("", ("", "value"), rows, words=2)
    for name, value in evidence.items():
        if not value or name in single:
            continue
        lines = value if isinstance(value, dict) else dict(enumerate(value, 1))
        columns = dict.fromkeys(key for line in lines.values() if isinstance(line, dict)
                                for key in line)  # fmt: skip
        if not columns and isinstance(value, list):
            yield Bullets(tuple(map(_text, value[:MOST])), _name(name))
            continue
        table = tuple(
            (
                WAYS.get(str(key), str(key)),
                *([_text(line.get(c)) for c in columns] or [_text(line)]),
            )
            for key, line in islice(lines.items(), MOST_ROWS)
        )
        head = ("", *(map(_name, columns) if columns else ("value",)))
        yield Table(_name(name), head, table, words=len(head))


def _name(name: str) -> str:
    return NAMES.get(name, name.replace("_", " "))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "✓ yes" if value else "✕ no"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{_name(name)} {_text(part)}" for name, part in value.items())
    if isinstance(value, list):
        more = f" … ({len(value)} in total)" if len(value) > MOST else ""
        return "; ".join(map(_text, value[:MOST])) + more
    return "none" if value is None else str(value)


def _compared(row: Verdict) -> Iterator[Block]:
    """Both answers in tokens, with the two best logits of each side at the first difference."""
    seen, at = row.evidence, row.evidence["position"]
    sides = {"plain": seen["plain"], str(seen["way"]): seen["other"]}
    for way, side in sides.items():
        st.html(tokens(WAYS.get(way, way), side["pieces"], side["ids"], at))
    if at is not None:
        best = tuple(
            (WAYS.get(way, way), rank, visible(token["piece"]),
             str(token["id"]), f"{token['logit']:.5f}")
            for way, side in sides.items()
            for rank, token in zip(("best", "second"), side["best"], strict=False)
        )  # fmt: skip
        about = f"The two best logits of each side at token {at + 1}"
        yield Table(about, ("Side", "Rank", "Token", "Id", "Logit"), best, words=3)
    figures = {
        "Logits": seen["logit_difference"],
        "Explained by rounding": seen["rounding"],
        "The language model's input embeddings": seen["first_embeddings_difference"],
    }
    rows = ((about, "cannot be compared" if value is None else f"{value:.3g}")
            for about, value in figures.items())  # fmt: skip
    yield Table("", ("Largest difference", "Figure"), tuple(rows))


def _accounted(row: Verdict) -> Iterator[Block]:
    from ui.verify import verify_charts  # altair and pandas: imported when the first chart is drawn

    kinds = row.evidence["kinds"]
    st.caption(
        f"Dots: the {row.evidence['n']} warm runs. Box: first to third quartile. Vertical line: "
        "median. Hollow diamond: the first run, which includes start-up work and is not in the "
        "median. Each part has its own axis."
    )
    columns = st.columns(CHART_COLUMNS)
    for index, part in enumerate(verify_charts.PARTS):
        if chart := verify_charts.stage_chart(kinds, part):
            with columns[index % CHART_COLUMNS]:
                blocks.draw([chart], part)
    times = {
        part: {kind: verify_charts.times(kinds, kind, part) for kind in kinds}
        for part in verify_charts.PARTS
    }
    shares = {kind: f"{share:.2%}" for kind, share in row.evidence["shares"].items()}
    yield from tables({"times": times, "shares": shares})


def _stage3(row: Verdict) -> Iterator[Block]:
    names = ("alone_ms", "probe_ms")
    pairs = list(zip(*(row.evidence[name] for name in names), strict=True))
    bound = row.bound or 0.0
    title = "measured by the probe / measured alone (ratio)"
    yield from _ratios(row, [b / a for a, b in pairs], (1 - bound, 1 + bound), title)
    rounds = [dict(zip(names, pair, strict=True)) for pair in pairs[:MOST]]
    yield from tables({"warm runs": rounds})


def _observer(row: Verdict) -> Iterator[Block]:
    answer = row.evidence["answer_ms"]
    ratios = [1 + (probed - bare) / answer for bare, probed in row.evidence["pairs_ms"]]
    title = "generate() with the probe / without it (ratio)"
    return _ratios(row, ratios, (1 + (row.bound or 0.0),), title)


def _ratios(
    row: Verdict, ratios: list[float], edges: tuple[float, ...], title: str
) -> Iterator[Block]:
    from ui.verify import verify_charts

    dots, bound = verify_charts.ratio_charts(ratios, row.evidence, edges, title)
    yield Paragraph("One mark per pair; the two runs of a pair follow each other.")
    yield dots
    ends = "its 95 % interval (sign test)" if len(ratios) >= MIN_CLUSTERS else "the range"
    yield Paragraph(
        f"The median and {ends}, on a finer axis. The check passes if all of it is on the right "
        "side of the bound."
    )
    yield bound


def _same(row: Verdict) -> Iterator[Block]:
    """Both answers of the samples that differ, in tokens of the checkpoint's tokenizer."""
    differ = [one for one in row.evidence["samples"] if one["position"] is not None]
    for one in differ[:MOST_TEXTS]:
        st.caption(f"Sample {escape(one['sample'])}")
        for side in ("there", "here"):
            seen = one[side]
            st.html(tokens(SIDES[side], seen["pieces"], seen["ids"], one["position"]))
    yield Paragraph(
        f"{len(differ)} of {len(row.evidence['samples'])} answers differ; rounding explains "
        f"{row.evidence['rounding']:.2g} nats."
    )


def _why(row: Verdict) -> Iterator[Block]:
    rows = tuple(
        (
            one["words"],
            f"{one['equal']} of {one['of']}",
            "" if one["share"] is None else f"{one['share']:.1%}",
        )
        for one in row.evidence.get("tried", ())
    )
    if rows:
        head = ("The local model with", "Answers given in a row", "Tokens as good as any")
        yield Table("Run on this machine", head, rows)
    if published := row.evidence.get("as_published"):
        yield Paragraph("As published: {} of {} answers.".format(*published))


def mark(outcome: str, help_text: str = "") -> str:
    symbol, word = MARKS[outcome]
    kind = "absent" if outcome in ("", "skipped", "refused") else outcome
    return (
        f'<span class="proof-mark proof-{kind}" title="{escape_html(help_text)}">'
        f'<span class="proof-symbol" aria-hidden="true">{symbol}</span>{word}</span>'
    )


def cells(contents: Sequence[str]) -> str:
    inside = "".join(f'<span class="proof-cell">{content}</span>' for content in contents)
    style = f"grid-template-columns: repeat({len(contents)}, minmax(0, 1fr))"
    return f'<div class="proof-cells" style="{style}">{inside}</div>'


def heads(words: Iterable[tuple[str, str]]) -> str:
    """Column heads: (short name, whole name)."""
    return cells(
        [
            f'<span class="proof-name" title="{escape_html(whole)}">{escape_html(short)}</span>'
            for short, whole in words
        ]
    )


def sentence(state: str, outcome: str, label: str, words: str) -> str:
    return (
        f'<div class="proof-headline"><span class="proof-state proof-{state}">'
        f"{escape_html(outcome)}</span> {escape_html(label)}: {escape_html(words)}</div>"
    )


def about(text: str) -> str:
    return f'<span class="proof-about">{escape_html(text)}</span>'


def visible(piece: str) -> str:
    return piece.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣") or "(empty)"


def tokens(name: str, pieces: Sequence[str], ids: Sequence[int], at: int | None) -> str:
    """An answer token by token.  `at` is the first difference: marked; later tokens are pale."""
    start = at - _BEFORE if at is not None and at > LONG else 0
    found = [_token(pieces[i], ids[i], i, at) for i in range(start, len(pieces))]
    if start:
        found.insert(0, f'<span class="proof-skipped">{start} equal tokens …</span>')
    if at is not None and at >= len(pieces):
        found.append('<span class="proof-first">⟨ends here⟩ ◂ first difference</span>')
    return (
        f'<div class="proof-tokens"><div class="proof-head">{escape_html(name)} · '
        f"{len(ids)} tokens</div>{''.join(found)}</div>"
    )


def _token(piece: str, token: int, index: int, at: int | None) -> str:
    shown = visible(piece) if not piece.strip() else piece.replace("\n", "⏎")
    hover = escape_html(f"token {index + 1}, id {token}")
    if index == at:
        note = '<span class="proof-note">◂ first difference</span>'
        return f'<span class="proof-first" title="{hover}">{escape_html(shown)}{note}</span>'
    kind = "proof-token proof-pale" if at is not None and index > at else "proof-token"
    return f'<span class="{kind}" title="{hover}">{escape_html(shown)}</span>'


COMPARED = (  # checks that compare the tokens of two answers
    *("equal_hooked", "equal_decoupled", "equal_features"),
    *("equal_batch", "shapes", "long"),
)
DRAWN: dict[str, Callable[[Verdict], Iterator[Block]]] = {
    **dict.fromkeys(COMPARED, _compared),
    "same": _same,
    "why": _why,
    "accounted": _accounted,
    "stage3": _stage3,
    "observer": _observer,
}
