"""A report on the page: a summary card and a table of verdicts per model.

It redraws only what has changed, while a verification runs.  The open rows are in the URL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.models import variants
from engine.models.checkpoint import ModelEntry
from engine.verify.report import WORST_FIRST, Model, Report, summary
from engine.verify.verdict import CHECKS, ONCE
from ui.compare import cards
from ui.verify import evidence, verdict_markup
from ui.widgets.model_picker import columns
from ui.widgets.text import escape

OPEN = "verify_open"  # model~check, in the URL
COLUMNS = 5  # more samples than this share one column
CARDS = 3  # per row
MAX_OPEN = 48
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME_CHARS = 14


class Board:
    """The containers of a report on the page, and their content."""

    def __init__(self, report: Report, entries: Sequence[ModelEntry]) -> None:
        known = {entry.name: entry for entry in entries}
        named = (variants.named(model.name, known) for model in report.models)
        self._entries = {entry.name: entry for entry in columns([one for one in named if one])}
        self._places: dict[tuple[str, str], DeltaGenerator] = {}  # (model, check); "" is its card
        self._evidence: dict[tuple[str, str], tuple[str, DeltaGenerator]] = {}
        self._drawn: dict[DeltaGenerator, object] = {}
        for start in range(0, len(report.models), CARDS):
            row = report.models[start : start + CARDS]
            for model, column in zip(row, st.columns(min(CARDS, len(report.models))), strict=False):
                with column, st.container(border=True, key=f"proof_card_{start}_{model.name}"):
                    if model.name in self._entries:
                        cards.heading(self._entries[model.name])
                    else:
                        st.markdown(f"**{escape(model.name)}**")
                    self._places[model.name, ""] = st.empty()
        for model in report.models:
            self._lay_out_table(report, model)
        self.draw(report)

    def draw(self, report: Report) -> None:
        for model in report.models:
            self._draw((model.name, ""), _card(report, model))
            for check in report.checks:
                self._draw((model.name, check), _marks(report, model.name, check))
        for (name, check), (sample, place) in self._evidence.items():
            rows = report.found(name, check, sample)
            if self._drawn.get(place) == len(rows):
                continue
            self._drawn[place] = len(rows)
            with place.container():
                if not rows:
                    st.caption("There is no evidence for this check yet.")
                for number, row in enumerate(rows):
                    evidence.show(row, f"proof_{name}_{check}_{number}")

    def _draw(self, where: tuple[str, str], html: str) -> None:
        place = self._places.get(where)
        if place is not None and self._drawn.get(place) != html:
            self._drawn[place] = html
            place.html(html)

    def _lay_out_table(self, report: Report, model: Model) -> None:
        with st.container(border=True, key=f"proof_table_{model.name}", gap="xsmall"):
            label = self._entries[model.name].label if model.name in self._entries else model.name
            st.markdown(f"#### {escape(label)}", help="Click a check to open its evidence.")
            _columns(report)[2].html(_heads(report))
            for check in report.checks:
                self._lay_out_row(report, model.name, check)

    def _lay_out_row(self, report: Report, model: str, check: str) -> None:
        title, question = report.title(check)
        key = f"{model}~{check}"
        is_open = key in st.query_params.get_all(OPEN)
        left, middle, right = _columns(report)
        label = f"{'▾' if is_open else '▸'} {escape(title)}"
        button = f"verify_row_{key}"
        left.button(label, key=button, type="tertiary", on_click=_toggle, args=(key,))
        if check in CHECKS and CHECKS[check].may_stay_open:
            question += " This check may stay open."
        middle.html(verdict_markup.line(question, "question"))
        self._places[model, check] = right.empty()
        if is_open:
            with st.container(border=True, key=f"proof_evidence_{model}_{check}"):
                self._evidence[model, check] = (_which_sample(report, model, check), st.empty())
        else:
            st.empty()  # each row keeps two elements, so opening one does not shift the others


def _columns(report: Report) -> list[DeltaGenerator]:
    width = 0.85 * min(COLUMNS, max(1.6, len(report.samples)))
    return st.columns([1.7, 3.4, width], gap="small", vertical_alignment="center")


def _toggle(key: str) -> None:
    opened = st.query_params.get_all(OPEN)[:MAX_OPEN]
    others = [name for name in opened if name != key]
    st.query_params[OPEN] = others if key in opened else [*others, key]


def _which_sample(report: Report, model: str, check: str) -> str:
    """The sample whose evidence is shown; the default has the worst outcome."""
    rows = sorted(report.of(model, check), key=lambda row: WORST_FIRST.index(row.outcome))
    where = [row.sample for row in rows] or ([""] if check in ONCE else list(report.samples))
    offered = [sample for sample in ("", *report.samples) if sample in where]
    if len(offered) < 2:
        return where[0]
    names = short_names(report.samples)
    chosen = st.segmented_control(
        "Evidence on sample",
        offered,
        default=where[0],
        required=True,
        format_func=lambda sample: names.get(sample, "all samples"),
        key=f"verify_sample_{model}_{check}",
    )
    return str(chosen)


def short_names(samples: Sequence[str]) -> dict[str, str]:
    """id -> a short name for a narrow column, numbered where two are equal."""
    names: dict[str, str] = {}
    for sample in samples:
        name = sample[:8] if _UUID.fullmatch(sample) else sample
        if len(name) > _NAME_CHARS:
            name = f"{name[: _NAME_CHARS - 1]}…"
        names[sample] = f"{len(names) + 1}: {name}" if name in names.values() else name
    return names


def _card(report: Report, model: Model) -> str:
    said = summary(report, model)
    return (
        verdict_markup.line(said.words, f"state proof-{said.state}")
        + verdict_markup.line(said.headline, "headline")
        + verdict_markup.bullets("Proved", said.proved)
        + verdict_markup.bullets("Not proved", said.not_proved)
    )


def _heads(report: Report) -> str:
    if len(report.samples) > COLUMNS:
        return verdict_markup.names([(f"{len(report.samples)} samples", "")])
    names = short_names(report.samples)
    return verdict_markup.names([(name, f"sample {sample}") for sample, name in names.items()])


def _marks(report: Report, model: str, check: str) -> str:
    """The outcomes on all samples; one mark if the check is about all of them."""
    whole = report.found(model, check, "")
    where = ("",) if whole or check in ONCE else report.samples
    absent = ("" if report.passed_by(model) else "pending", "")
    worst = [(row[0].outcome, row[0].sentence) if row else absent
             for row in (report.found(model, check, sample) for sample in where)]  # fmt: skip
    marks = [verdict_markup.mark(*pair) for pair in worst]
    if len(worst) > COLUMNS:
        outcomes = [outcome for outcome, _ in worst]
        kinds = [name for name in verdict_markup.MARKS if name in outcomes]
        marks = [" ".join(verdict_markup.mark(one, "", outcomes.count(one)) for one in kinds)]
    elif where == ("",) and len(report.samples) > 1:
        marks[0] += verdict_markup.about("all samples")
    return verdict_markup.cells(marks)
