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
from engine.verify.report import WORST_FIRST, Model, Report, Summary, summary
from engine.verify.verdict import CHECKS, ONCE, Verdict
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
        found = (variants.named(model.name, known) for model in report.models)
        self._entries = {item.name: item for item in columns([one for one in found if one])}
        self._cards: dict[str, DeltaGenerator] = {}
        self._marks: dict[tuple[str, str], DeltaGenerator] = {}
        self._evidence: dict[tuple[str, str], tuple[str, DeltaGenerator]] = {}
        self._drawn: dict[object, object] = {}
        self._lay_out_cards(report)
        for model in report.models:
            self._lay_out_table(report, model)
        self.draw(report)

    def draw(self, report: Report) -> None:
        for model in report.models:
            self._draw_card(summary(report, model), model)
            for check in report.checks:
                html = _marks(report, model.name, check)
                place = self._marks.get((model.name, check))
                if place is not None and self._drawn.get((model.name, check)) != html:
                    self._drawn[model.name, check] = html
                    place.html(html)
        for (model_name, check), (sample, place) in self._evidence.items():
            self._draw_evidence(report.found(model_name, check, sample), (model_name, check), place)

    def _lay_out_cards(self, report: Report) -> None:
        for start in range(0, len(report.models), CARDS):
            places = st.columns(min(CARDS, len(report.models)))
            row = report.models[start : start + CARDS]
            for model, column in zip(row, places, strict=False):
                with column, st.container(border=True, key=f"proof_card_{start}_{model.name}"):
                    if model.name in self._entries:
                        cards.heading(self._entries[model.name])
                    else:
                        st.markdown(f"**{escape(model.name)}**")
                    self._cards[model.name] = st.empty()

    def _draw_card(self, found: Summary, model: Model) -> None:
        if self._drawn.get(model.name) == found:
            return
        self._drawn[model.name] = found
        self._cards[model.name].html(
            verdict_markup.line(found.words, f"state proof-{found.state}")
            + verdict_markup.line(found.headline, "headline")
            + verdict_markup.bullets("Proved", found.proved)
            + verdict_markup.bullets("Not proved", found.not_proved)
        )

    def _lay_out_table(self, report: Report, model: Model) -> None:
        with st.container(border=True, key=f"proof_table_{model.name}", gap="xsmall"):
            label = self._entries[model.name].label if model.name in self._entries else model.name
            st.markdown(f"#### {escape(label)}", help="Click a check to open its evidence.")
            _, _, right = self._columns(report)
            right.html(_heads(report))
            for check in report.checks:
                self._lay_out_row(report, model.name, check)

    def _columns(self, report: Report) -> list[DeltaGenerator]:
        width = 0.85 * min(COLUMNS, max(1.6, len(report.samples)))
        return st.columns([1.7, 3.4, width], gap="small", vertical_alignment="center")

    def _lay_out_row(self, report: Report, model: str, check: str) -> None:
        title, question = report.title(check)
        key = f"{model}~{check}"
        is_open = key in st.query_params.get_all(OPEN)
        left, middle, right = self._columns(report)
        left.button(
            f"{'▾' if is_open else '▸'} {escape(title)}",
            key=f"verify_row_{key}",
            type="tertiary",
            on_click=_toggle,
            args=(key,),
        )
        open_too = check in CHECKS and CHECKS[check].may_stay_open
        optional = " This check may stay open." if open_too else ""
        middle.html(verdict_markup.line(question + optional, "question"))
        self._marks[model, check] = right.empty()
        if is_open:
            with st.container(border=True, key=f"proof_evidence_{model}_{check}"):
                sample = _which_sample(report, model, check)
                self._evidence[model, check] = (sample, st.empty())
        else:
            st.empty()  # each row keeps two elements, so opening one does not shift the others

    def _draw_evidence(
        self, rows: Sequence[Verdict], where: tuple[str, str], place: DeltaGenerator
    ) -> None:
        key = ("evidence", *where)
        if self._drawn.get(key) == len(rows):
            return
        self._drawn[key] = len(rows)
        with place.container():
            if not rows:
                st.caption("There is no evidence for this check yet.")
            for number, row in enumerate(rows):
                evidence.show(row, f"proof_{'_'.join(where)}_{number}")


def _toggle(key: str) -> None:
    opened = st.query_params.get_all(OPEN)[:MAX_OPEN]
    others = [name for name in opened if name != key]
    st.query_params[OPEN] = others if key in opened else [*others, key]


def _which_sample(report: Report, model: str, check: str) -> str:
    """The sample whose evidence is shown; the default has the worst outcome."""
    rows = sorted(report.of(model, check), key=lambda row: WORST_FIRST.index(row.outcome))
    where = [row.sample for row in rows]
    if not where:
        where = [""] if check in ONCE else list(report.samples)
    offered = [sample for sample in ("", *report.samples) if sample in where]
    if len(offered) < 2:
        return offered[0] if offered else where[0]
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
    found: dict[str, str] = {}
    for sample in samples:
        name = sample[:8] if _UUID.fullmatch(sample) else sample
        if len(name) > _NAME_CHARS:
            name = f"{name[: _NAME_CHARS - 1]}…"
        if name in found.values():
            name = f"{len(found) + 1}: {name}"
        found[sample] = name
    return found


def _heads(report: Report) -> str:
    if len(report.samples) > COLUMNS:
        return verdict_markup.names([(f"{len(report.samples)} samples", "")], 1)
    names = short_names(report.samples)
    heads = [(names[sample], f"sample {sample}") for sample in report.samples]
    return verdict_markup.names(heads, max(1, len(heads)))


def _marks(report: Report, model: str, check: str) -> str:
    """The outcomes on all samples; one mark if the check is about all of them."""
    whole = report.found(model, check, "")
    absent = "" if report.passed_by(model) else "pending"
    if whole or check in ONCE:
        shown = whole[0] if whole else None
        about = "" if len(report.samples) == 1 else verdict_markup.about("all samples")
        return verdict_markup.cells([_mark(shown, absent) + about], 1)
    worst = [next(iter(report.found(model, check, name)), None) for name in report.samples]
    if len(worst) <= COLUMNS:
        return verdict_markup.cells([_mark(row, absent) for row in worst], max(1, len(worst)))
    outcomes = [row.outcome if row else absent for row in worst]
    kinds = [name for name in verdict_markup.MARKS if name in outcomes]
    counted = (verdict_markup.mark(name, "", outcomes.count(name)) for name in kinds)
    return verdict_markup.cells([" ".join(counted)], 1)


def _mark(row: Verdict | None, absent: str) -> str:
    if row is None:
        return verdict_markup.mark(absent)
    return verdict_markup.mark(row.outcome, row.sentence)
