"""The verdict and the stage bars above the cards: they grow while models run, and stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.analysis.compared import ComparedModel
from engine.analysis.run_verdict import RunVerdict, figures_of, verdict
from engine.jobs.run_job import RunView
from engine.models.checkpoint import ModelEntry
from ui.charts import run_bars
from ui.charts.run_bars import RunBar
from ui.compare import verdict_strip
from ui.widgets import followed_runs
from ui.widgets.text import count
from ui.widgets.theme import STAGE_MEANING

TABLE_PLACE = ".st-key-compare_times"
STYLE = verdict_strip.STYLE + run_bars.STYLE
MEANINGS = "; ".join(f"{name}: {meaning}" for name, meaning in STAGE_MEANING.items())


@dataclass
class Overview:
    """The verdict and the bars of the shown runs, redrawn in their places when they change.

    Their places hold HTML from the first moment: an empty place would make the page flicker.
    """

    entries: Sequence[ModelEntry]
    places: dict[str, DeltaGenerator] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def draw(self, views: Sequence[RunView]) -> None:
        """Redraws what has changed."""
        compared = followed_runs.compared(self.entries)
        by_name = {entry.name: entry for entry in self.entries}
        ended = all(view.ended for view in views)
        found = _judged(views, compared, by_name) if ended else _running(views, compared)
        rows = [_row(view, by_name[view.model], compared) for view in views]
        self._put("verdict", verdict_strip.markup(found))
        self._put("stages", run_bars.html(rows))

    def _put(self, name: str, html: str) -> None:
        if self.shown.get(name) == html:
            return
        self.shown[name] = html
        if name in self.places:
            self.places[name].html(html)
        else:
            with st.container(key=f"compare_{name}"):
                self.places[name] = st.html(html)


def begin(views: Sequence[RunView], entries: Sequence[ModelEntry]) -> Overview:
    """Draws verdict, bars and, when all runs have ended, their table; the same containers in the
    same order, also without runs."""
    found = Overview(entries)
    if views:
        found.draw(views)
    else:
        st.empty()
        st.empty()
    compared = followed_runs.compared(entries)
    if compared and all(view.ended for view in views):
        with st.container(key="compare_times"):
            _table(compared)
    else:
        st.empty()
    return found


def _judged(
    views: Sequence[RunView], compared: Sequence[ComparedModel], by_name: dict[str, ModelEntry]
) -> RunVerdict:
    known = {model.label for model in compared}
    labels = {by_name[view.model].label: view.state for view in views}
    return verdict(compared, {label: how for label, how in labels.items() if label not in known})


def _running(views: Sequence[RunView], compared: Sequence[ComparedModel]) -> RunVerdict:
    """How far the runs are, without a comparison."""
    done = sum(view.ended for view in views)
    models = count(len(views), "model")
    repeats = views[0].repeats
    of = f", {repeats:,} runs each" if repeats > 1 else ""
    return RunVerdict(
        tuple(figures_of(model) for model in compared), f"Running: {done:,} of {models} done{of}."
    )


def _row(view: RunView, entry: ModelEntry, compared: Sequence[ComparedModel]) -> RunBar:
    """The bar of the run that goes on, otherwise of the model's runs so far."""
    found = next((model for model in compared if model.label == entry.label), None)
    if found is not None and (view.ended or view.state == "queued"):
        return run_bars.finished(found)
    state = f"run {view.repeat:,} of {view.repeats:,}" if view.state == "running" else view.state
    spans = () if view.ended else view.progress
    return run_bars.growing(entry.label, entry.colour, spans, state)


def _table(compared: Sequence[ComparedModel]) -> None:
    from ui.charts import run_table  # pandas is slow to import

    with st.expander("All times and their sources"):
        st.table(run_table.table(compared), alt="Stage times and their sources.")
        st.caption(f"{MEANINGS}. Medians of parts need not add up to the median of the total.")
        st.html(f"<style>{run_table.head_style(compared, TABLE_PLACE)}</style>")
