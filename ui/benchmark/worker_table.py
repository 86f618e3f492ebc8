"""The workers of a run on a cluster: node, device, state, rate; and where each sample ran.

Boundary: draws data of the run's progress and folder.  Node names and reasons are plain text.
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

FRESH_S = 5.0  # a live run's table of places is reread at most this often
LIVE_ONLY = ("shared", "rate (/s)")  # columns of a live run
HELP = (
    "A worker has one device and one model at a time. Shared: another worker of this run uses the "
    "same device, or there are more threads than cores; such times are kept apart."
)
ENDED_HELP = (
    "Each worker had one device and one model at a time. Results: measured ones since the run was "
    "last started or resumed. Each result records whether its device was shared."
)


def workers(found: Progress, run_ended: bool) -> None:
    """A row per worker; one that has ended stays, with the reason."""
    if not found.workers:
        return
    import pandas as pd

    ended = run_ended or all(worker.ended for worker in found.workers)
    st.subheader(heading(found.workers, ended), anchor=False, help=ENDED_HELP if ended else HELP)
    rows = [row(w, ended) for w in sorted(found.workers, key=lambda worker: worker.ended)]
    what = "device, state and results" if ended else "device, state and rate"
    with st.container(key="worded_workers"):
        st.table(pd.DataFrame(rows).set_index("worker"), alt=f"Workers with {what}.")


def heading(workers: Sequence[WorkerView], ended: bool) -> str:
    """The number of live workers, or of those that had started if the run has `ended`."""
    counted = [worker for worker in workers if (worker.device if ended else not worker.ended)]
    nodes = {worker.node for worker in counted}
    words = f"{count(len(counted), 'worker')} on {count(len(nodes), 'node')}"
    return f"{words} took part" if ended else words


def row(worker: WorkerView, ended: bool) -> dict[str, str]:
    """Cells as text, escaped, because st.table renders Markdown."""
    device = f"{worker.type}, {worker.device}" if worker.device else "–"
    cells = {
        "worker": worker.id,
        "node": escape(worker.node),
        "device": escape(device),
        "shared": " and ".join(worker.shares) or "–",
        "state": escape(worker.state),
        "results": f"{worker.done:,}",
        "rate (/s)": "–" if worker.per_s is None else f"{worker.per_s:.3g}",
    }
    return {name: text for name, text in cells.items() if not (ended and name in LIVE_ONLY)}


def places(folder: Path, cluster: bool, live: bool) -> None:
    """On demand: the host, node, device and worker of every result."""
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
    table = results_table.frame([run_store.read(folder)], answers=False, titled=True)
    names = ["sample", "sequence", "model", "repeat", "phase"]
    names += ["host", "node", "device", "actor"]
    return table[names].rename(columns={"actor": "worker"})
