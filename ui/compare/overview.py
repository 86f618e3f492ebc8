"""The verdict and the stage bars above the cards: they grow while models run, and stay.

Boundary: views of jobs in, HTML in the page's places out.  The figures are the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.analysis.compared import ComparedModel
from engine.analysis.verdict import Verdict, figures_of, verdict
from engine.jobs.run_job import RunView
from engine.models.checkpoint import ModelEntry
from ui.charts import run_bars
from ui.charts.run_bars import RunBar
from ui.compare import cards, verdict_strip
from ui.widgets import followed_runs
from ui.widgets.text import count
from ui.widgets.theme import STAGE_MEANING

STAGES_PLACE = ".st-key-compare_stages"
STYLE = verdict_strip.STYLE + run_bars.STYLE
MEANINGS = "; ".join(f"{name}: {meaning}" for name, meaning in STAGE_MEANING.items())


@dataclass
class Overview:
    """The places of the verdict, the bars and their table, and what they show now."""

    verdict: DeltaGenerator
    bars: DeltaGenerator
    table: DeltaGenerator
    shown: dict[str, str] = field(default_factory=dict)

    def draw(self, views: Sequence[RunView], entries: Sequence[ModelEntry]) -> None:
        """Draws what has changed; the table only when all runs have ended."""
        compared = followed_runs.compared(entries)
        by_name = {entry.name: entry for entry in entries}
        ended = all(view.ended for view in views)
        found = _judged(views, compared, by_name) if ended else _running(views, compared)
        self._put("verdict", self.verdict, verdict_strip.markup(found))
        rows = [_row(view, by_name[view.model], compared) for view in views]
        self._put("bars", self.bars, run_bars.html(rows))
        if ended and compared and "table" not in self.shown:
            self.shown["table"] = "drawn"
            with self.table.container():
                _table(compared)

    def _put(self, name: str, place: DeltaGenerator, html: str) -> None:
        if self.shown.get(name) != html:
            self.shown[name] = html
            place.html(html)


def places(live: bool) -> Overview:
    """Empty places, always the same ones in the same order."""
    with st.container(key="compare_verdict"):
        strip = cards.place(live)
    with st.container(key="compare_stages"):
        return Overview(strip, cards.place(live), cards.place(live))


def _judged(
    views: Sequence[RunView], compared: Sequence[ComparedModel], by_name: dict[str, ModelEntry]
) -> Verdict:
    known = {model.label for model in compared}
    labels = {by_name[view.model].label: view.state for view in views}
    return verdict(compared, {label: how for label, how in labels.items() if label not in known})


def _running(views: Sequence[RunView], compared: Sequence[ComparedModel]) -> Verdict:
    """How far the runs are, without a comparison."""
    done = sum(view.ended for view in views)
    models = count(len(views), "model")
    repeats = views[0].repeats
    of = f", {repeats:,} runs each" if repeats > 1 else ""
    return Verdict(
        tuple(figures_of(model) for model in compared), f"Running: {done:,} of {models} done{of}."
    )


def _row(view: RunView, entry: ModelEntry, compared: Sequence[ComparedModel]) -> RunBar:
    """The bar of the run that goes on, or of all runs of the model."""
    found = next((model for model in compared if model.label == entry.label), None)
    if view.ended and found is not None:
        return run_bars.finished(found)
    if view.ended:
        return run_bars.growing(entry.label, entry.family, (), view.state)
    return run_bars.growing(entry.label, entry.family, view.progress, cards.status(view))


def _table(compared: Sequence[ComparedModel]) -> None:
    from ui.charts import run_table  # pandas is slow to import

    with st.expander("All times and their sources"):
        st.table(run_table.table(compared), alt="Stage times and their sources.")
        st.caption(MEANINGS)
        st.html(f"<style>{run_table.head_style(compared, STAGES_PLACE)}</style>")
