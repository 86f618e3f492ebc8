"""A report on the page: a sentence per model, one table of checks and models, what is not proved.
It redraws only what has changed, while a verification runs.  The open rows are in the URL.
Certificates are listed, and open in place, one at a time, by their row or by a link."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.models import registry, variants
from engine.models.checkpoint import ModelEntry
from engine.quoting import cut
from engine.report.blocks import Bullets
from engine.verify import certificates
from engine.verify import report as reports
from engine.verify.report import WORDS, WORST_FIRST, Model, Report, passed_by_all, shared, summary
from engine.verify.verdict import CHECKS, ONCE, taken, unproved
from ui.verify import evidence
from ui.widgets import blocks, notices
from ui.widgets.model_picker import columns
from ui.widgets.text import count, escape, when

MAX_OPEN = 48
HASH = "verify_certificate"  # in the URL
FEW = 8


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
        sentences = ""
        for model in report.models:
            said, label = summary(report, model), self._label(model.name)
            sentences += evidence.sentence(said.state, WORDS[said.state], label, said.headline)
        self._draw(self._sentences, sentences)
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

    def _lay_out_row(self, report: Report, check: str) -> None:
        title, question = report.title(check)
        opened = f"{self._name}_open"
        is_open = check in st.query_params.get_all(opened)
        left, right = _columns(report)
        if check in CHECKS and CHECKS[check].may_stay_open:
            question += " This check may stay open."
        label, key = f"{'▾' if is_open else '▸'} {escape(title)}", f"{self._name}_row_{check}"
        args = (opened, check)
        left.button(label, key=key, type="tertiary", help=question, on_click=_toggle, args=args)
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


def _linked(kept: Sequence[Mapping[str, Any]]) -> str:
    """The hash of the certificate that the link names by its hash or the beginning, or ""."""
    wanted = str(st.query_params.get(HASH, ""))[:64]
    if len(wanted) >= certificates.SHOWN:
        for certificate in kept:
            if certificate["hash"].startswith(wanted):
                return str(certificate["hash"])
    if wanted:
        name = f"Certificate {wanted[: certificates.SHOWN]!r}"
        notices.notice(f"{name} was not found: choose one of those below.", "no_certificate")
    return ""


def _toggled(key: str, name: str) -> None:
    if st.session_state[key]:
        st.query_params[HASH] = name
    else:
        st.query_params.pop(HASH, None)


def listed(entries: Sequence[ModelEntry], above: str = "") -> None:
    """The newest first.  `above`: the hash of the one whose checks the page shows already."""
    kept = certificates.stored_certificates()
    with st.container(key="verify_certificates", gap="xsmall"):
        st.subheader("Certificates", anchor=False, help="One JSON file per finished verification.")
        for number, file in enumerate(certificates.unusable_files()[:FEW]):
            text = f"{cut(file.name)} is not used: {file.reason}. Remove it, or verify again."
            notices.notice(text, f"unused_{number}")
        linked = _linked(kept)
        if not kept:
            st.caption("None yet. Each finished verification saves one.")
        if len(kept) > FEW and not st.toggle(f"Show all {len(kept):,}", key="verify_all"):
            kept = kept[:FEW] + [one for one in kept[FEW:] if one["hash"] == linked]
        for certificate in kept:
            name = certificate["hash"]
            key = f"verify_kept_{name}"
            st.session_state[key] = name == linked
            label = _label(certificate, entries, name == above)
            with st.expander(label, key=key, on_change=_toggled, args=(key, name)):
                if name == linked:
                    _opened(certificate, entries, name == above)


def _label(certificate: Mapping[str, Any], entries: Sequence[ModelEntry], above: bool) -> str:
    """`above`: the page names its models and open checks already."""
    models = certificate["models"]
    good = sum(model["verified"] for model in models)
    rows = reports.of_certificate(certificate).rows
    unresolved = len({(row.model, row.check) for row in rows if row.outcome == "unresolved"})
    words = (
        f"{'✓' if good == len(models) else '✕'} {good} of {count(len(models), 'model')}",
        f"{unresolved} open" if unresolved and not above else "",
        "" if above else ", ".join(registry.label(model["name"]) for model in models),
        when(certificate["made"]),
        "stale" if certificates.why_stale(certificate, entries) else "valid",
        certificate["hash"][: certificates.SHOWN],
    )
    return escape(" · ".join(filter(None, words)))


def _opened(certificate: Mapping[str, Any], entries: Sequence[ModelEntry], above: bool) -> None:
    name, text = certificate["hash"], json.dumps(certificate, indent=1)
    if reason := certificates.why_stale(certificate, entries):
        notices.notice(f"Stale: {reason} Verify again to prove what runs now.", "stale")
    if above:
        st.caption("Its checks are shown above.")
    else:
        Board(reports.of_certificate(certificate), entries, "verify_kept")
    with st.expander("What exactly was verified", key="verify_how"):
        made = {name: certificate[name] for name in ("engine", "libraries")}
        for part in (certificate["request"] | made, *certificate["models"]):
            blocks.draw(evidence.tables(part), f"verify_how_{part.get('name', '')}")
    notices.small(f"SHA-256 {name}", "certificate")
    file = (f"certificate-{name[: certificates.SHOWN]}.json", "application/json")
    st.download_button("Download JSON", text, *file, "verify_json", on_click="ignore")
