"""One model's answers in own runs as drafts for another model."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from engine.published.read import own_rows
from ui.published import draft_view
from ui.published import opened_sets as recorded
from ui.published.opened_sets import Audited, OpenedSets
from ui.results.opened_runs import OpenedRuns
from ui.widgets import notices
from ui.widgets.text import when

TWO = "Acceptance needs the answers of two models. Choose a run with two models, or start one."


def show(runs: OpenedRuns) -> None:
    """Any two models of one run."""
    every = runs.table.groupby("number")["model"].unique()
    models = list(dict.fromkeys(model for names in every if len(names) > 1 for model in names))
    if not models:
        notices.hint(TWO)
        return
    left, right = st.columns(2)
    draft = left.selectbox("Draft", models, 0, key="results_draft", bind="query-params")
    target = right.selectbox("Target", models, 1, key="results_target", bind="query-params")
    if draft == target:
        notices.notice("Draft and target are the same model: choose another one.", "imported_same")
        return
    key = ("own pair", runs.key, draft, target)  # acceptance is remembered by the file
    items = recorded.kept(key, lambda: tuple(_paired(runs, str(draft), str(target))))
    draft_view.show(OpenedSets((), (), items), "Run")


def _paired(runs: OpenedRuns, draft: str, target: str) -> Iterator[Audited]:
    """The runs that have both models; only the first answer to each sample, no warm-up run."""
    for run in runs.runs:
        rows = [row for _, row in run.results() if row.phase == "measured" and not row.repeat]
        name = f"{when(run.header.created)} · {run.id}"
        file = own_rows.from_rows(rows, name, draft, target)
        if {draft, target} <= set(file.models):
            yield Audited(file, ())
