"""A report on the page: a sentence per model, one table of checks and models, what is not proved.

It redraws only what has changed, while a verification runs.  The open rows are in the URL.
"""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.models import variants
from engine.models.checkpoint import ModelEntry
from engine.report.blocks import Bullets
from engine.verify.report import WORDS, WORST_FIRST, Model, Report, passed_by_all, shared, summary
from engine.verify.verdict import CHECKS, ONCE, taken, unproved
from ui.verify import evidence
from ui.widgets import blocks
from ui.widgets.model_picker import columns
from ui.widgets.text import count, escape

MAX_OPEN = 48


class Board:
    """A report on the page.  Each has the same elements, whatever has ended or is open: Streamlit
    removes old elements only when a script ends, so an extra one of an earlier report would stay
    below a running one."""

    def __init__(self, report: Report, entries: Sequence[ModelEntry], name: str) -> None:
        self._name = name  # begins the keys, and the name of the open checks in the URL
        known = {entry.name: entry for entry in entries}
        named = (variants.named(model.name, known) for model in report.models)
        self._entries = {entry.name: entry for entry in columns([one for one in named if one])}
        self._places: dict[str, DeltaGenerator] = {}  # by check
        self._evidence: dict[str, tuple[str, str, DeltaGenerator]] = {}  # check -> model, sample
        self._drawn: dict[DeltaGenerator, object] = {}
        self._sentences = st.empty()
        folded = passed_by_all(report)
        with st.container(border=True, key=f"proof_table_{name}", gap="xsmall"):
            labels = [(self._label(model.name), model.name) for model in report.models]
            _columns(report)[1].html(evidence.heads(labels))
            for check in report.checks:
                if check not in folded:
                    self._lay_out_row(report, check)
            if folded:
                with st.expander(f"{count(len(folded), 'check')} passed", key=f"{name}_passed"):
                    for check in folded:
                        self._lay_out_row(report, check)
        limits = st.empty()
        if report.ended:
            with limits.container(gap="xsmall"):
                self._limits(report)
        self.draw(report)

    def draw(self, report: Report) -> None:
        sentences = (self._sentence(report, model) for model in report.models)
        self._draw(self._sentences, "".join(sentences))
        for check in report.checks:
            marks = [_mark(report, model, check) for model in report.models]
            self._draw(self._places[check], evidence.cells(marks))
        for check, (model_name, sample, place) in self._evidence.items():
            rows = report.found(model_name, check, sample)
            if self._drawn.get(place) == len(rows):
                continue
            self._drawn[place] = len(rows)
            with place.container():
                if not rows:
                    st.caption("There is no evidence for this check yet.")
                for number, row in enumerate(rows):
                    evidence.show(row, f"proof_{self._name}_{check}_{number}")

    def _draw(self, place: DeltaGenerator, html: str) -> None:
        if self._drawn.get(place) != html:
            self._drawn[place] = html
            place.html(html)

    def _label(self, name: str) -> str:
        return self._entries[name].label if name in self._entries else name

    def _sentence(self, report: Report, model: Model) -> str:
        said, label = summary(report, model), self._label(model.name)
        return evidence.sentence(said.state, WORDS[said.state], label, said.headline)

    def _lay_out_row(self, report: Report, check: str) -> None:
        title, question = report.title(check)
        is_open = check in st.query_params.get_all(f"{self._name}_open")
        left, right = _columns(report)
        if check in CHECKS and CHECKS[check].may_stay_open:
            question += " This check may stay open."
        left.button(
            f"{'▾' if is_open else '▸'} {escape(title)}",
            key=f"{self._name}_row_{check}",
            type="tertiary",
            help=question,
            on_click=_toggle,
            args=(f"{self._name}_open", check),
        )
        self._places[check] = right.empty()
        if is_open:
            with st.container(border=True, key=f"proof_evidence_{self._name}_{check}"):
                self._evidence[check] = (*self._which(report, check), st.empty())
        else:
            st.empty()  # each row has two elements

    def _which(self, report: Report, check: str) -> tuple[str, str]:
        """The model and the sample whose evidence is shown; the worst outcome comes first."""
        rows = [row for row in report.rows if row.check == check]
        rows.sort(key=lambda row: WORST_FIRST.index(row.outcome))
        offered = list(dict.fromkeys((row.model, row.sample) for row in rows))
        if len(offered) < 2:
            st.empty()
            return offered[0] if offered else (report.models[0].name, "")
        return st.selectbox(
            "Evidence of",
            offered,
            format_func=lambda pair: f"{self._label(pair[0])}, {pair[1] or 'all samples'}",
            key=f"{self._name}_evidence_{check}",
        )

    def _limits(self, report: Report) -> None:
        """What is not proved and what is, each sentence once."""
        named = [(self._label(model.name), model) for model in report.models]
        rows = [(label, report.of(model.name)) for label, model in named]
        left = shared([(label, unproved(own, report.samples)) for label, own in rows])
        proved = shared([(label, summary(report, model).proved) for label, model in named])
        proved += [
            f"{label}, {model.dtype} on {model.place}: {model.coverage}"
            for label, model in named
            if model.dtype
        ]
        for title, key, lines in (("Not proved", "limits", left), ("Proved", "proved", proved)):
            if lines:
                with st.expander(title, key=f"{self._name}_{key}"):
                    blocks.draw([Bullets(tuple(lines))], f"{self._name}_{key}")


def _columns(report: Report) -> list[DeltaGenerator]:
    width = min(6.0, 1.2 * len(report.models))
    return st.columns([2.0, width], gap="small", vertical_alignment="center")


def _toggle(key: str, check: str) -> None:
    opened = st.query_params.get_all(key)[:MAX_OPEN]
    others = [name for name in opened if name != check]
    st.query_params[key] = others if check in opened else [*others, check]


def _mark(report: Report, model: Model, check: str) -> str:
    """The worst outcome on the samples, and on how many of them it is."""
    every = report.of(model.name)
    rows = [row for row in every if row.check == check]
    if not rows:
        return evidence.mark("" if report.passed_by(model.name) else "pending")
    rows.sort(key=lambda row: WORST_FIRST.index(row.outcome))
    worst = [row for row in rows if row.outcome == rows[0].outcome]
    some = evidence.about(f"{len(worst)} of {len(rows)}") if len(worst) < len(rows) else ""
    due = 1 if check in ONCE or rows[0].sample == "" else len(taken(every, report.samples))
    if not report.passed_by(model.name) and len(rows) < due:
        some = evidence.about(f"{len(rows)} of {due}")
    return evidence.mark(rows[0].outcome, rows[0].sentence) + some
