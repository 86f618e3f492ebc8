"""The workers of a run on a cluster: node, device, state, rate; and where each sample ran.

Boundary: draws what the run's progress and its folder tell.  Names of nodes and reasons are text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from engine.analysis import results_table
from engine.benchmark.run_progress import Progress, WorkerView
from engine.errors import StoreError
from engine.storage import run_store
from ui.benchmark import unfinished_runs
from ui.widgets import notices
from ui.widgets.text import count, escape

if TYPE_CHECKING:
    import pandas as pd

FRESH_S = 5.0  # a live run's table of places is read again so often at most
NOW = ("shared", "rate (/s)")  # what says nothing of a run that is over
HELP = (
    "A worker has one device and one model at a time. Shared: another worker of this run uses the "
    "same device or more threads run than there are cores; such times are kept apart."
)
OVER_HELP = (
    "Each had one device and one model at a time. Results: measured ones of the last sitting. "
    "Whether a device was shared is kept with each result."
)


def workers(found: Progress, over: bool) -> None:
    """A row per worker; those that have ended stay, with the reason.  `over`: so has the run."""
    if not found.workers:
        return
    import pandas as pd

    over = over or all(one.ended for one in found.workers)
    st.subheader(heading(found.workers, over), anchor=False, help=OVER_HELP if over else HELP)
    rows = [row(one, over) for one in sorted(found.workers, key=lambda one: one.ended)]
    what = "device, state and results" if over else "device, state and rate"
    st.table(pd.DataFrame(rows).set_index("worker"), alt=f"Workers with {what}.")


def heading(workers: Sequence[WorkerView], over: bool) -> str:
    """How many are there now; of a run that is over, how many had begun."""
    some = [one for one in workers if (one.device if over else not one.ended)]
    words = f"{count(len(some), 'worker')} on {count(len({one.node for one in some}), 'node')}"
    return f"{words} took part" if over else words


def row(one: WorkerView, over: bool) -> dict[str, str]:
    """Cells as text, escaped, because st.table reads Markdown."""
    device = f"{one.type}, {one.device}" if one.device else "–"
    cells = {
        "worker": one.id,
        "node": escape(one.node),
        "device": escape(device),
        "shared": " and ".join(one.shares) or "–",
        "state": escape(one.state),
        "results": f"{one.done:,}",
        "rate (/s)": "–" if one.per_s is None else f"{one.per_s:.3g}",
    }
    return {name: text for name, text in cells.items() if not (over and name in NOW)}


def places(folder: Path, cluster: bool, live: bool) -> None:
    """On demand: every result with the host, node, device and worker it comes from."""
    if not cluster or not st.toggle("Where each sample ran", key="benchmark_places"):
        return

    @st.fragment(run_every=FRESH_S if live else None)
    def look() -> None:
        try:
            found = _live(folder) if live else _ended(folder, unfinished_runs.stamp(folder))
        except StoreError as error:
            notices.problem(str(error), "benchmark_places")
            return
        st.dataframe(found, hide_index=True, alt=f"{count(len(found), 'result')} and their places.")

    look()


@st.cache_data(ttl=FRESH_S, max_entries=4, show_spinner=False)
def _live(folder: Path) -> pd.DataFrame:
    return _places(folder)


@st.cache_data(max_entries=4, show_spinner=False)
def _ended(folder: Path, stamp: tuple[int, int]) -> pd.DataFrame:
    return _places(folder)


def _places(folder: Path) -> pd.DataFrame:
    table = results_table.frame([run_store.read(folder)], answers=False)
    names = ["sample", "sequence", "model", "repeat", "phase"]
    names += ["host", "node", "device", "actor"]
    return table[names].rename(columns={"actor": "worker"})
