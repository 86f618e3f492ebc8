"""The runs that Results can open; the chosen ones as one table, and its figures, cached.

A cache's key has the files' sizes and times of change.  Tables are shared between sessions and
never changed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, ParamSpec, TypeVar

import pandas as pd
import streamlit as st

from engine import settings
from engine.analysis import agreement, model_summary, pairs, results_table
from engine.analysis.agreement import DeckCard
from engine.analysis.model_summary import Figure
from engine.analysis.pairs import Comparison
from engine.analysis.results_table import Lens, LensName
from engine.report.report_figures import Findings
from engine.storage import annotations as feedback
from engine.storage import explanations, run_store
from engine.storage.annotations import RunDetails
from engine.storage.run_store import Run, RunInfo, Stamp
from ui.widgets import uploads
from ui.widgets.text import count, when

P = ParamSpec("P")
R = TypeVar("R")
Key = tuple[tuple[str, Stamp], ...]
EQUAL = (
    "So the answers to each sample are compared over their first tokens, as many as the shortest "
    "has."
)
SOURCES, TABLES, COMPUTED = 10, 4, 64  # cache sizes, for all sessions together
STALE_S = 3  # a released lock is noticed after this time at most


@dataclass(frozen=True)
class Source:
    info: RunInfo
    details: RunDetails = feedback.NO_DETAILS
    details_problem: str = ""
    baseline: bool = False  # other runs are compared with this one
    private: bool = False  # a run of own files, for this visit only

    @property
    def key(self) -> str:
        return self.info.folder.name

    @property
    def title(self) -> str:
        named = self.details.name or when(self.info.created) or self.info.id
        return f"Baseline: {named}" if self.baseline else named

    @property
    def name(self) -> str:
        """As part of a label: the users' name, otherwise the day and time."""
        start = self.info.created.removesuffix("+00:00").replace("T", " ")
        named = self.details.name or start or self.info.id
        return f"{named} (baseline)" if self.baseline else named

    @property
    def dataset(self) -> str:
        return PurePath(self.info.dataset).name

    @property
    def amount(self) -> str:
        kept, planned = self.info.results, self.info.planned
        rows = f"{count(kept, 'row')}, including warm-up"
        if self.info.state != "finished":
            return f"{rows}, {count(planned, 'result')} planned"
        return count(kept, "result") if kept == planned else rows

    def stamp(self) -> Stamp:
        return run_store.stamp(self.info.folder)


def named(chosen: Sequence[Source]) -> tuple[str, ...]:
    """What tells the chosen runs apart in labels; with the id where several have one name."""
    taken = Counter(source.name for source in chosen)
    return tuple(
        f"{source.name} · {source.info.id}" if taken[source.name] > 1 else source.name
        for source in chosen
    )


def sources() -> tuple[Source, ...]:
    """The baseline, then newer runs first, with those of this visit; StoreError if unreadable."""
    base, own = settings.load().runs_dir, uploads.runs_folder()
    pinned, _ = feedback.baseline(base)
    found = [
        Source(info, details=details, details_problem=problem, private=folder == own,
               baseline=folder == base and info.folder.name == pinned)
        for folder in filter(None, (base, own))
        for info, details, problem in _stored(folder, run_store.stamps(folder, feedback.DETAILS))
    ]  # fmt: skip
    found.sort(key=lambda run: (run.baseline, run.info.created, run.info.id), reverse=True)
    return tuple(found)


@st.cache_data(max_entries=8, ttl=STALE_S, show_spinner=False)
def _stored(base: Path, stamps: tuple[Stamp, ...]) -> tuple[tuple[RunInfo, RunDetails, str], ...]:
    return tuple((info, *feedback.details(info.folder)) for info in run_store.listing(base))


@dataclass(frozen=True, eq=False)
class OpenedRuns:
    """The column "number" of `table` is an index into the tuples.  problems: what could not be read
    of each run."""

    key: Key
    sources: tuple[Source, ...]
    runs: tuple[Run, ...]
    problems: tuple[tuple[str, ...], ...]
    table: pd.DataFrame

    @property
    def labels(self) -> list[str]:
        return results_table.labels(self.table)

    @property
    def families(self) -> dict[str, str]:
        """The colour of each label, named as in palette.tones."""
        return results_table.tones(self.table)


def cached(spinner: str = "", most: int = COMPUTED) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keeps what a function of opened runs gives, by their key, for all sessions."""
    keys: Any = {OpenedRuns: lambda opened: opened.key}
    return st.cache_resource(max_entries=most, show_spinner=spinner or False, hash_funcs=keys)


def open_(chosen: Sequence[Source]) -> OpenedRuns:
    """Opens one or more own runs; StoreError if one cannot be read."""
    # A label may contain the run's name, so a new name makes a new table.
    names = named(chosen)
    key = tuple(
        (f"{source.key}\n{name}", _stamp(source))
        for source, name in zip(chosen, names, strict=True)
    )
    read = [_read(one.info.folder, stamp) for one, (_, stamp) in zip(chosen, key, strict=True)]
    runs, problems, tables = zip(*read, strict=True)
    return OpenedRuns(key, tuple(chosen), runs, problems, _joined(key, tables, names))


@st.cache_resource(max_entries=SOURCES, show_spinner="Reading the results …")
def _read(folder: Path, stamp: Stamp) -> tuple[Run, tuple[str, ...], pd.DataFrame]:
    run = run_store.read(folder)
    table = results_table.one(run)  # damaged lines are found while it is made
    kept = (feedback.problem(folder), explanations.problem(folder))
    return run, (*run.problems, *filter(None, kept)), table


@st.cache_resource(max_entries=TABLES, show_spinner=False)
def _joined(key: Key, _tables: tuple[pd.DataFrame, ...], names: tuple[str, ...]) -> pd.DataFrame:
    return results_table.join(_tables, names, titled=True)


def grown(chosen: Sequence[Source]) -> bool:
    """Whether a live run has more results than are shown."""
    shown = shown_stamps()
    return any(shown.get(one.key, one.stamp()) != one.stamp() for one in chosen)


def _stamp(source: Source) -> Stamp:
    """A live run is shown as it was when opened, until the visitor reloads it."""
    if source.info.state != "running":
        shown_stamps().pop(source.key, None)
        return source.stamp()
    return shown_stamps().setdefault(source.key, source.stamp())


def shown_stamps() -> dict[str, Stamp]:
    """The stamps of live runs as this session shows them; without them they are read again."""
    stamps: dict[str, Stamp] = st.session_state.setdefault("results_stamps", {})
    return stamps


def sides(opened: OpenedRuns) -> tuple[str, str]:
    """The two labels that are compared first: A, and the reference B.  Of several runs the baseline
    is the reference, otherwise the oldest one, and A is the same model in another run if it is
    there."""
    labels = opened.labels
    lines = opened.table.drop_duplicates("label").set_index("label")
    models, numbers = lines["model"], lines["number"]
    pinned = opened.sources[0].baseline
    reference = 0 if pinned else len(opened.sources) - 1  # of the list: the baseline, newer runs
    base = [label for label in labels if numbers[label] == reference]
    others = [label for label in labels if label not in base]
    alike = [(a, b) for b in base for a in others if models[a] == models[b]]
    if alike:
        return alike[0]
    return (others[0], base[0]) if pinned and base and others else (labels[0], labels[1])


def default_lens(opened: OpenedRuns) -> tuple[LensName, str]:
    """The lens in which the runs can be compared, and why it is not the natural one."""
    rules = {run.id: run.header.plan.settings["length"] for run in opened.runs}
    if len(set(rules.values())) > 1 and len(look(opened, "first").table):
        told = "; ".join(dict.fromkeys(rules.values()))
        return "first", f"The chosen runs have different length rules ({told}). {EQUAL}"
    forced = bool(len(opened.table)) and bool(opened.table["forced"].all())
    return ("forced" if forced else "natural"), ""


@cached(most=TABLES)
def findings(opened: OpenedRuns, name: LensName | None = None) -> Findings:
    """Of all results, or for one choice of answer lengths."""
    return Findings(opened.runs, look(opened, name).table if name else opened.table)


@cached(most=2 * TABLES)
def look(opened: OpenedRuns, name: LensName) -> Lens:
    return results_table.look(opened.table, name)


@cached("Computing figures …")
def figures(opened: OpenedRuns, name: LensName) -> tuple[Figure, ...]:
    if name == "natural" and not opened.table["forced"].any():
        shown = findings(opened).figures  # the same results
        return tuple(figure for figure in shown if figure.group == "measured")
    return model_summary.figures(look(opened, name).table)


@cached(most=8 * COMPUTED)
def comparison(opened: OpenedRuns, name: LensName, a: str, b: str, metric: str) -> Comparison:
    return pairs.compare(look(opened, name).table, a, b, metric)


@cached("Comparing answers word by word …")
def disagreement(opened: OpenedRuns) -> pd.DataFrame:
    return agreement.by_disagreement(opened.table)


@cached("Ordering the samples by disagreement …")
def deck(opened: OpenedRuns, a: str, b: str) -> tuple[DeckCard, ...]:
    return agreement.deck(opened.table, a, b)


@cached()
def ratios(opened: OpenedRuns, a: str, b: str) -> pd.DataFrame:
    return agreement.by_ratio(opened.table, a, b)
