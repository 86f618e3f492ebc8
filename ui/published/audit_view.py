"""The findings of the audit, rule by rule, with the records concerned.

The open finding is in the URL, or in the session for files without a link.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.published.audit import RULES, SEVERITIES, AuditFinding, Rule, Severity
from engine.quoting import number
from engine.report.blocks import ReportTable
from ui.published import file_list
from ui.published.opened_sets import Audited, OpenedSets
from ui.widgets import blocks, notices
from ui.widgets.text import count

OPEN = "results_finding"  # in the URL: the index of the file and of the finding, as 3.0
_HERE = "results_finding_here"  # the same in the session, with the key of the files
ALL = "All files"
SYMBOLS: dict[Severity, str] = {"error": "✖", "warning": "▲", "note": "●"}
COLOURS: dict[Severity, str] = {"error": "red", "warning": "orange", "note": "gray"}
MEANINGS = (
    "✖ Error: a figure or a label is false. ▲ Warning: a figure is misleading. ● Note: additional "
    "information. Rules without findings are not listed."
)
Entry = tuple[str, Audited, AuditFinding]  # its key in the URL


def show(found: OpenedSets) -> None:
    """The files, then their findings rule by rule, errors first."""
    blocks.draw([file_list.table(found)], "imported_files")
    for index, sentence in enumerate(file_list.unread(found)):
        notices.notice(sentence, f"imported_unread_{index}")
    st.subheader("Findings", anchor=False)
    notices.small(MEANINGS, "imported_meanings")
    chosen = _chosen(found)
    if not chosen:
        st.caption("No finding matches this choice.")
    for rule in RULES:
        entries = [entry for entry in chosen if entry[2].rule == rule.name]
        if entries:
            _rule(rule, entries, found)


def _chosen(found: OpenedSets) -> list[Entry]:
    """The findings of the chosen severities and file."""
    every: list[Entry] = [
        (f"{place}.{index}", item, finding)
        for place, item in enumerate(found.items)
        for index, finding in enumerate(item.findings)
    ]
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    severities = left.pills(
        "Severity",
        SEVERITIES,
        selection_mode="multi",
        default=SEVERITIES,
        format_func=lambda one: f"{SYMBOLS[one]} {one.capitalize()}s",
        key="results_severity",
        bind="query-params",
    )
    names = [item.name for item in found.items if item.findings]
    file = right.selectbox("File", [ALL, *names], key="results_findings_of", bind=found.bind)
    return [
        entry
        for entry in every
        if entry[2].severity in severities and file in (ALL, None, entry[1].name)
    ]


def _rule(rule: Rule, entries: Sequence[Entry], found: OpenedSets) -> None:
    """One rule; it is open if the link names one of its findings."""
    severity = entries[0][2].severity
    held = len({id(item) for _, item, _ in entries})
    label = (
        f":{COLOURS[severity]}[**{SYMBOLS[severity]} {severity.capitalize()}**] {rule.title} "
        f":gray[{count(len(entries), 'finding')} in {count(held, 'file')}]"
    )
    linked = any(key == _open_key(found) for key, _, _ in entries)
    panel = st.expander(label, expanded=linked, key=f"results_rule_{rule.name}", on_change="rerun")
    with panel:
        if panel.open or linked:
            for key, item, finding in entries:
                _finding(key, item, finding, found)


def _open_key(found: OpenedSets) -> str | None:
    """Which finding shows its records."""
    if found.linkable:
        return st.query_params.get(OPEN)
    of, key = st.session_state.get(_HERE, (None, None))
    return key if of == found.key else None


def _finding(key: str, item: Audited, finding: AuditFinding, found: OpenedSets) -> None:
    opened = _open_key(found) == key
    with st.container(border=True, key=f"imported_finding_{key}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            notices.small(item.name, f"imported_of_{key}")
            st.button(
                "Hide the records" if opened else "Show the records",
                key=f"results_show_{key}",
                type="tertiary",
                on_click=_toggle,
                args=(key, found),
            )
        st.text(finding.message)
        if finding.correction:
            notices.small(f"Correction: {finding.correction}", f"imported_mended_{key}")
        if opened:
            _evidence(key, item, finding)


def _toggle(key: str, found: OpenedSets) -> None:
    shown = _open_key(found) == key
    if not found.linkable:
        st.session_state[_HERE] = (found.key, None if shown else key)
    elif shown:
        del st.query_params[OPEN]
    else:
        st.query_params[OPEN] = key


def _evidence(key: str, item: Audited, finding: AuditFinding) -> None:
    """The figures of a finding, then its records or their paths in the file."""
    if finding.figures:
        rows = tuple((name, number(value)) for name, value in finding.figures.items())
        table = ReportTable("Figures", ("in the file's units", "value"), rows)
        blocks.draw([table], f"imported_figures_{key}")
    both = file_list.concerned(item.file, finding)
    failures = [one for one in item.file.failures if one.path in set(finding.paths)]
    if both:
        file_list.grid(file_list.lines(both), f"imported_records_{key}", "The records concerned")
    elif failures:
        lines = tuple((one.path, one.sample, one.message) for one in failures[:50])
        table = ReportTable(
            "Samples that failed", ("place in the file", "sample", "reason"), lines, 3
        )
        blocks.draw([table], f"imported_failures_{key}")
    else:
        _places(key, finding)


def _places(key: str, finding: AuditFinding) -> None:
    shown = finding.paths[:20]
    more = f"\n… and {len(finding.paths) - 20:,} more" if len(finding.paths) > 20 else ""
    notices.small("Places in the file: " + ", ".join(shown) + more, f"imported_places_{key}")
