"""The files, and the findings of the audit rule by rule with the records concerned."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from engine.published.audit import RULES, SEVERITIES, AuditFinding, Rule, Severity, audit
from engine.published.claims import published_report
from engine.published.read import ResultFile, milliseconds
from engine.quoting import listed, number
from engine.report.blocks import Table
from ui.published.opened_sets import OpenedSets
from ui.widgets import blocks, notices
from ui.widgets.text import count

ALL = "All files"
MARKS: dict[Severity, tuple[str, str]] = {
    "error": ("✖", "red"), "warning": ("▲", "orange"), "note": ("●", "gray")}  # fmt: skip
MEANINGS = (
    "✖ Error: a figure or a label is false. ▲ Warning: a figure is misleading. ● Note: additional "
    "information. Rules without findings are not listed."
)
TALLEST, ROW = 420, 35  # pixels of a grid
LISTED = 50  # failures
Entry = tuple[str, ResultFile, AuditFinding]  # the key of its widgets


def show(found: OpenedSets) -> None:
    blocks.draw([published_report.files_table(found.files, found.corrected)], "imported_files")
    for index, file in enumerate(found.files):
        if file.message:
            notices.notice(file.message, f"imported_unread_{index}")
    st.subheader("Findings", anchor=False)
    notices.small(MEANINGS, "imported_meanings")
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    severities = left.pills(
        "Severity",
        SEVERITIES,
        selection_mode="multi",
        default=SEVERITIES,
        format_func=lambda one: f"{MARKS[one][0]} {one.capitalize()}s",
        key="published_severity",
        bind="query-params",
    )
    names = [file.name for file in found.files if audit(file)]
    chosen = right.selectbox("File", [ALL, *names], key="published_findings_of", bind=found.bind)
    entries = [
        (f"published_show_{place}.{index}", file, finding)
        for place, file in enumerate(found.files)
        for index, finding in enumerate(audit(file))
        if finding.severity in severities and chosen in (ALL, None, file.name)
    ]
    if not entries:
        st.caption("No finding matches this choice.")
    for rule in RULES:
        if those := [entry for entry in entries if entry[2].rule == rule.name]:
            _rule(rule, those, found)


def _rule(rule: Rule, entries: Sequence[Entry], found: OpenedSets) -> None:
    """One rule; it is open if the link opens the records of one of its findings."""
    symbol, colour = MARKS[rule.severity]
    held = count(len({id(file) for _, file, _ in entries}), "file")
    label = (
        f":{colour}[**{symbol} {rule.severity.capitalize()}**] {rule.title} "
        f":gray[{count(len(entries), 'finding')} in {held}]"
    )
    linked = any(key in st.query_params for key, _, _ in entries)
    name = f"published_rule_{rule.name}"
    with st.expander(label, expanded=linked, key=name, on_change="rerun") as panel:
        for key, file, finding in entries if panel.open or linked else ():
            with st.container(border=True, key=f"imported_{key}"):
                with st.container(horizontal=True, vertical_alignment="center"):
                    notices.small(file.name, f"imported_of_{key}")
                    shown = st.toggle("Records", key=key, bind=found.bind)
                st.text(finding.message)
                if finding.correction:
                    notices.small(f"Correction: {finding.correction}", f"imported_mended_{key}")
                if shown:
                    _evidence(key, file, finding)


def _evidence(key: str, file: ResultFile, finding: AuditFinding) -> None:
    rows = tuple((name, number(value)) for name, value in finding.figures.items())
    tables = [Table("Figures", ("in the file's units", "value"), rows)] if rows else []
    records = lines(file, finding)
    failed = [one for one in file.failures if one.path in set(finding.paths)][:LISTED]
    if failed:
        columns = ("place in the file", "sample", "reason")
        cells = tuple((one.path, one.sample, one.message) for one in failed)
        tables.append(Table("Samples that failed", columns, cells, 3))
    blocks.draw(tables, f"imported_figures_{key}")
    if len(records):
        grid(records, f"imported_records_{key}", "The records concerned")
    elif not failed:
        notices.small(f"Places in the file: {listed(finding.paths)}", f"imported_places_{key}")


def lines(file: ResultFile, finding: AuditFinding) -> pd.DataFrame:
    """The records that a finding names: path, counts, recorded times in ms."""
    paths, rows = set(finding.paths), list[dict[str, Any]]()
    for recorded, corrected in zip(file.records, file.corrected, strict=True):
        if recorded.path not in paths or finding.model not in ("", recorded.model):
            continue
        line: dict[str, Any] = {"where": recorded.path, "model": recorded.model}
        line["sample"] = recorded.sample
        for name in ("tokens", "context"):
            line[f"{name}, recorded"] = getattr(recorded, name)
            line[f"{name}, corrected"] = getattr(corrected, name)
        for key, value in recorded.times.items():
            line[f"{key.removesuffix('_ms')} (ms)"] = milliseconds(key, value)
        rows.append(line | {"answer": recorded.text})
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def grid(table: pd.DataFrame, key: str, what: str) -> None:
    """The table with a maximum height; `what`: its description."""
    numbers = {
        str(name): st.column_config.NumberColumn(format="%.4g")
        for name in table.select_dtypes("float64")
    }
    height = min(TALLEST, ROW * (len(table) + 1) + 3)
    alt = f"{what}: {count(len(table), 'line')}."
    st.dataframe(table, hide_index=True, height=height, column_config=numbers, key=key, alt=alt)
