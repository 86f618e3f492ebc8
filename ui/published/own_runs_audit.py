"""Own runs under the audit's rules, and one model's answers as drafts.

Boundary: from rows of runs to the common form of recorded files; uses the views of such files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from engine.published.audit import audit
from engine.published.read import own_rows
from engine.storage.run_store import Run
from ui.published import audit_view, draft_view
from ui.published import opened_sets as recorded
from ui.published.opened_sets import Audited, OpenedSets
from ui.results.opened_runs import OpenedRuns
from ui.widgets import notices
from ui.widgets.text import when

NOTHING = "The rules for published files found nothing in these runs."
TWO = "Acceptance needs the answers of two models. Choose a run with two models, or start one."


def show_audit(runs: OpenedRuns) -> None:
    """The findings of the audit in own runs."""
    found = _opened(runs)
    if any(item.findings for item in found.items):
        audit_view.listed(found)
    else:
        notices.hint(NOTHING)


def show_drafts(runs: OpenedRuns) -> None:
    """Any two models of one run."""
    found = _opened(runs)
    usable = [item for item in found.usable if len(item.file.models) > 1]
    if not usable:
        notices.hint(TWO)
        return
    models = list(dict.fromkeys(model for item in usable for model in item.file.models))
    left, right = st.columns(2)
    draft = left.selectbox("Draft", models, 0, key="results_draft", bind="query-params")
    target = right.selectbox("Target", models, 1, key="results_target", bind="query-params")
    if draft == target:
        notices.notice("Draft and target are the same model: choose another one.", "imported_same")
        return
    key = ("own pair", runs.key, draft, target)  # acceptance is remembered by the file
    paired = recorded.kept(key, lambda: _paired(usable, str(draft), str(target)))
    draft_view.show(replace(found, items=paired), "Run")


def _paired(items: Sequence[Audited], draft: str, target: str) -> tuple[Audited, ...]:
    """The runs that have both models, these two as draft and target."""
    return tuple(
        Audited(replace(item.file, draft=draft, target=target), item.findings)
        for item in items
        if {draft, target} <= set(item.file.models)
    )


def _opened(runs: OpenedRuns) -> OpenedSets:
    key = ("own", runs.key)
    items = recorded.kept(key, lambda: tuple(_item(run) for run in runs.runs))
    return OpenedSets((), (), items)


def _item(run: Run) -> Audited:
    """The first answer of each model to each sample; warm-up runs count nowhere."""
    rows = [row for _, row in run.results() if row.phase == "measured" and not row.repeat]
    name = f"{when(run.header.created)} · {run.id}"
    file = own_rows.from_rows(rows, name)
    return Audited(file, audit(file))
