"""The runs that the Results page can open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import streamlit as st

from engine import settings
from engine.storage import run_details, run_store
from engine.storage.run_details import RunDetails
from engine.storage.run_store import RunInfo
from ui.widgets import uploads
from ui.widgets.stored_runs import FILES, Stamp, stamp_of, stamps
from ui.widgets.text import count, when

LISTED = (*FILES, run_details.DETAILS)
STALE_S = 3  # a released lock is noticed after this time at most


@dataclass(frozen=True)
class Source:
    """A run of the list."""

    info: RunInfo
    details: RunDetails = run_details.NONE
    details_problem: str = ""
    baseline: bool = False  # other runs are compared with this one
    private: bool = False  # a run of own files, for this visit only

    @property
    def key(self) -> str:
        """Its name in links."""
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
        """The number of results, in words."""
        kept, planned = self.info.results, self.info.planned
        rows = f"{count(kept, 'row')}, including warm-up"
        if self.info.state != "finished":
            return f"{rows}, {count(planned, 'result')} planned"
        return count(kept, "result") if kept == planned else rows

    def stamp(self) -> Stamp:
        """Changes whenever the results change."""
        return stamp_of(self.info.folder)


def names(chosen: Sequence[Source]) -> tuple[str, ...]:
    """What tells the chosen runs apart in labels; with the id where several have one name."""
    taken = Counter(source.name for source in chosen)
    return tuple(
        f"{source.name} · {source.info.id}" if taken[source.name] > 1 else source.name
        for source in chosen
    )


def runs() -> tuple[Source, ...]:
    """The baseline, then all other runs, newest first, those of this visit included; StoreError if
    the runs folder cannot be read."""
    base, own = settings.load().runs_dir, uploads.runs_folder()
    pinned, _ = run_details.baseline(base)
    found = [
        Source(info, details=details, details_problem=problem, private=folder == own,
               baseline=folder == base and info.folder.name == pinned)
        for folder in filter(None, (base, own))
        for info, details, problem in _stored(folder, stamps(folder, LISTED))
    ]  # fmt: skip
    found.sort(key=lambda run: (run.baseline, run.info.created, run.info.id), reverse=True)
    return tuple(found)


@st.cache_data(max_entries=8, ttl=STALE_S, show_spinner=False)
def _stored(base: Path, stamps: tuple[Stamp, ...]) -> tuple[tuple[RunInfo, RunDetails, str], ...]:
    return tuple((info, *run_details.read(info.folder)) for info in run_store.listing(base))
