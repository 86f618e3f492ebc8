"""The chosen sources as one table, and the figures that the engine computes from it, cached.

Boundary: Streamlit's caches around engine functions.  Cache keys contain the files' sizes and times
of change; tables are shared between sessions and never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from engine import palette
from engine.analysis import (
    agreement,
    equal_length,
    machine_loads,
    metrics,
    model_summary,
    pairs,
    ranking,
    results_table,
    robustness,
    speedup,
)
from engine.analysis.agreement import AttributeScore, OverlapScore
from engine.analysis.equal_length import Lens, LensName
from engine.analysis.metrics import BY_NAME
from engine.analysis.model_summary import Figure
from engine.analysis.pairs import Comparison
from engine.analysis.ranking import DeckCard
from engine.analysis.robustness import Robustness
from engine.analysis.speedup import Split
from engine.report import named_baselines
from engine.report.report_figures import NO_BASELINES, Findings, outline, with_choices
from engine.report.tensor_shapes import Passage, passages
from engine.storage import plan_words
from engine.storage.run_store import Run
from ui.results.run_sources import ResultSource, Rows, Stamp

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[tuple[str, Stamp], ...]
EQUAL = (
    "So the answers to each sample are compared over their first tokens, as many as the shortest "
    "has."
)
_STAMPS = "results_stamps"
SOURCES, TABLES, COMPUTED = 10, 4, 64  # cache sizes, for all sessions together


@dataclass(frozen=True, eq=False)
class OpenedRuns:
    """The opened runs.  The column "number" of `table` is an index into `parts`."""

    key: Key
    sources: tuple[ResultSource, ...]
    parts: tuple[Rows, ...]
    table: pd.DataFrame

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(part.run for part in self.parts if part.run is not None)

    @property
    def labels(self) -> list[str]:
        return results_table.labels(self.table)

    @property
    def families(self) -> dict[str, str]:
        """The colour of each label, named as in palette.tones."""
        lines = self.table.drop_duplicates("label")
        families = dict(zip(lines["label"], lines["family"].astype(str), strict=True))
        return palette.toned({label: families[label] for label in self.labels})


def open_(chosen: Sequence[ResultSource]) -> OpenedRuns:
    """Opens one or more sources; StoreError if one cannot be read."""
    # A label may contain the run's name, so a new name makes a new table.
    key = tuple((f"{source.key}\n{source.name}", _stamp(source)) for source in chosen)
    parts = tuple(_rows(source, stamp) for source, (_, stamp) in zip(chosen, key, strict=True))
    table = _table(key, parts, tuple(source.name for source in chosen))
    return OpenedRuns(key, tuple(chosen), parts, table)


def sides(opened: OpenedRuns) -> tuple[str, str]:
    """The two labels that are compared first: A, and the reference B.

    If the baseline is chosen beside another run, it is the reference, and A is the same model in
    the other run if it is there.
    """
    labels = opened.labels
    pinned = [number for number, source in enumerate(opened.sources) if source.baseline]
    lines = opened.table[["label", "model", "number"]].drop_duplicates("label")
    known = {str(label): (str(model), int(n)) for label, model, n in lines.itertuples(index=False)}
    reference = [label for label in labels if known[label][1] in pinned]
    others = [label for label in labels if label not in reference]
    for b in reference:
        for a in others:
            if known[a][0] == known[b][0]:
                return a, b
    if reference and others:
        return others[0], reference[0]
    return labels[0], labels[1]


def default_lens(opened: OpenedRuns) -> tuple[LensName, str]:
    """The lens in which the chosen results can be compared, and the reason if it is not the
    natural one."""
    rules = {run.id: plan_words.settings(run.header.plan)["length"] for run in opened.runs}
    if len(set(rules.values())) > 1 and len(look(opened, "first").table):
        told = "; ".join(dict.fromkeys(rules.values()))
        return "first", f"The chosen runs have different length rules ({told}). {EQUAL}"
    forced = bool(len(opened.table)) and bool(opened.table["forced"].all())
    return ("forced" if forced else "natural"), ""


def grown(chosen: Sequence[ResultSource]) -> bool:
    """Whether a live run has more results than are shown."""
    return any(_kept().get(source.key, source.stamp()) != source.stamp() for source in chosen)


def read_again() -> None:
    _kept().clear()


def _stamp(source: ResultSource) -> Stamp:
    """A live run is shown as it was when opened, until the visitor reloads it."""
    if source.state != "running":
        _kept().pop(source.key, None)
        return source.stamp()
    return _kept().setdefault(source.key, source.stamp())


def _kept() -> dict[str, Stamp]:
    stamps: dict[str, Stamp] = st.session_state.setdefault(_STAMPS, {})
    return stamps


def _rows(source: ResultSource, stamp: Stamp) -> Rows:
    return _read(source.key, stamp, source)


@st.cache_resource(max_entries=SOURCES, show_spinner="Reading the results …")
def _read(key: str, stamp: Stamp, _source: ResultSource) -> Rows:
    return _source.read()


@st.cache_resource(max_entries=TABLES, show_spinner=False)
def _table(key: Key, _parts: tuple[Rows, ...], names: tuple[str, ...]) -> pd.DataFrame:
    return results_table.join([part.table for part in _parts], names, titled=True)


def findings(opened: OpenedRuns) -> Findings:
    """Counts, figures, certificates, failures."""
    return _findings(opened.key, opened)


@st.cache_resource(max_entries=TABLES, show_spinner="Computing figures …")
def _findings(key: Key, _opened: OpenedRuns) -> Findings:
    return outline(_opened.runs, _opened.table)


def choices(opened: OpenedRuns) -> Findings:
    """The findings with the figures of multiple-choice questions and published figures."""
    published = named_baselines.of_runs(opened.runs)  # the files may change meanwhile
    return replace(_choices(opened.key, opened), baselines=published)


@st.cache_resource(max_entries=TABLES, show_spinner="Computing accuracies …")
def _choices(key: Key, _opened: OpenedRuns) -> Findings:
    return with_choices(findings(_opened), NO_BASELINES)


def look(opened: OpenedRuns, name: LensName) -> Lens:
    return _look(opened.key, name, opened)


@st.cache_resource(max_entries=2 * TABLES, show_spinner=False)
def _look(key: Key, name: LensName, _opened: OpenedRuns) -> Lens:
    return equal_length.look(_opened.table, name)


def figures(opened: OpenedRuns, name: LensName) -> tuple[Figure, ...]:
    """All figures for one choice of answer lengths."""
    return _figures(opened.key, name, opened)


@st.cache_resource(max_entries=COMPUTED, show_spinner="Computing figures …")
def _figures(key: Key, name: LensName, _opened: OpenedRuns) -> tuple[Figure, ...]:
    if name == "natural" and not _opened.table["forced"].any():
        shown = findings(_opened).figures  # the same results
        return tuple(figure for figure in shown if figure.group == "measured")
    return model_summary.figures(look(_opened, name).table)


def values(opened: OpenedRuns, name: LensName, metric: str) -> pd.DataFrame:
    """Columns label, sample, value: the results whose value was measured, not cached."""
    kind = BY_NAME[metric]
    lines = metrics.fair(look(opened, name).table, kind)
    kept = lines[["label", "sample", kind.column]].rename(columns={kind.column: "value"})
    return kept.dropna(subset=["value"])


def comparison(opened: OpenedRuns, name: LensName, a: str, b: str, metric: str) -> Comparison:
    return _comparison(opened.key, name, a, b, metric, opened)


@st.cache_resource(max_entries=8 * COMPUTED, show_spinner=False)
def _comparison(
    key: Key, name: LensName, a: str, b: str, metric: str, _opened: OpenedRuns
) -> Comparison:
    return pairs.compare(look(_opened, name).table, a, b, metric)


def load_note(opened: OpenedRuns, a: str, b: str) -> str:
    """A note on the machine's load for a comparison of two labels, or ""."""
    return _load_note(opened.key, a, b, opened)


@st.cache_resource(max_entries=COMPUTED, show_spinner=False)
def _load_note(key: Key, a: str, b: str, _opened: OpenedRuns) -> str:
    return machine_loads.couple(_opened.table, a, b)


def split(opened: OpenedRuns, name: LensName, a: str, b: str) -> Split | None:
    return _split(opened.key, name, a, b, opened)


@st.cache_resource(max_entries=COMPUTED, show_spinner=False)
def _split(key: Key, name: LensName, a: str, b: str, _opened: OpenedRuns) -> Split | None:
    return speedup.split(look(_opened, name).table, a, b)


def paired(opened: OpenedRuns, name: LensName, a: str, b: str, metric: str) -> pd.DataFrame:
    """A line per sample with measured values from both: sample, sequence, a, b."""
    return pairs.paired(look(opened, name).table, a, b, BY_NAME[metric])


def disagreement(opened: OpenedRuns) -> pd.DataFrame:
    return _disagreement(opened.key, opened)


@st.cache_resource(max_entries=COMPUTED, show_spinner="Comparing answers word by word …")
def _disagreement(key: Key, _opened: OpenedRuns) -> pd.DataFrame:
    return ranking.by_disagreement(_opened.table)


def deck(opened: OpenedRuns, a: str, b: str) -> tuple[DeckCard, ...]:
    """The samples that both answered, ordered by disagreement."""
    return _deck(opened.key, a, b, opened)


@st.cache_resource(max_entries=COMPUTED, show_spinner="Ordering the samples by disagreement …")
def _deck(key: Key, a: str, b: str, _opened: OpenedRuns) -> tuple[DeckCard, ...]:
    return ranking.deck(_opened.table, a, b)


def ratios(opened: OpenedRuns, a: str, b: str) -> pd.DataFrame:
    return _ratios(opened.key, a, b, opened)


@st.cache_resource(max_entries=COMPUTED, show_spinner=False)
def _ratios(key: Key, a: str, b: str, _opened: OpenedRuns) -> pd.DataFrame:
    return ranking.by_ratio(_opened.table, a, b)


Scores = tuple[tuple[AttributeScore, ...], tuple[OverlapScore, ...]]


def scores(opened: OpenedRuns) -> Scores:
    """Agreement with scene attributes and with reference answers."""
    return _scores(opened.key, opened)


@st.cache_resource(max_entries=COMPUTED, show_spinner="Comparing with the references …")
def _scores(key: Key, _opened: OpenedRuns) -> Scores:
    return agreement.attributes(_opened.table), agreement.overlaps(_opened.table)


def robustness_of(opened: OpenedRuns) -> Robustness | None:
    """The curves of a sweep; None if no run is perturbed.  Rereads every row."""
    return _robustness(opened.key, opened)


@st.cache_resource(max_entries=COMPUTED, show_spinner="Comparing the strengths …")
def _robustness(key: Key, _opened: OpenedRuns) -> Robustness | None:
    return robustness.find(_opened.runs)


def flow(opened: OpenedRuns) -> tuple[Passage, ...]:
    """The tensors between the stages; rereads every row."""
    return _flow(opened.key, opened)


@st.cache_resource(max_entries=COMPUTED, show_spinner="Reading the tensors' shapes …")
def _flow(key: Key, _opened: OpenedRuns) -> tuple[Passage, ...]:
    return passages(_opened.runs, _opened.table)
