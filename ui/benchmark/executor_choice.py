"""Where a dataset run is answered: in this process, or by workers of the settings' Ray cluster.

Boundary: widgets of the sidebar in, ClusterOptions out.  Without an address nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from engine import settings
from engine.benchmark.cluster.cluster_options import AUTO, LOCAL, ClusterOptions
from ui.widgets import notices
from ui.widgets.run_settings import either
from ui.widgets.text import count

PLACES = {"ray": "Ray", "here": "This process"}
WHERE_HELP = (
    "Ray: one worker on each device of the cluster, each with one model at a time; results of "
    "different types of devices are kept apart. This process: one after another, here."
)
WORKERS_HELP = "At most one on each device. Empty: as many as there are devices."
CORES_HELP = "A worker computes on so many threads."
GPUS_HELP = (
    "Empty: 1 where the cluster has any, else 0. A part of 1, such as 0.5, lets several workers "
    "share a GPU; their results say so."
)
Place = Callable[[], ClusterOptions]


def configured() -> bool:
    """Whether the settings name a cluster."""
    return bool(settings.load().ray_address)


def pick() -> Place | None:
    """What gives the options, or BadInput for values that cannot be used; None: this process.

    It is for after the last widget: one that is not drawn loses its value.
    """
    address = settings.load().ray_address
    if not address or either("Runs on", PLACES, "benchmark_where", WHERE_HELP) != "ray":
        return None
    place = st.container()
    with st.expander("Workers", key="benchmark_crew"):
        workers, cpus, gpus = _crew()
    with place:
        notices.small(words(address, workers, cpus, gpus), "benchmark_address")
    return partial(ClusterOptions, address, workers, cpus, gpus)


def _crew() -> tuple[int | None, int, float | None]:
    """How many workers and what each takes; without bounds here, because the engine has a sentence
    for what is out of them."""
    workers = st.number_input(
        "Workers",
        value=None,
        step=1,
        key="benchmark_workers",
        bind="query-params",
        placeholder="One on each device",
        help=WORKERS_HELP,
    )
    cpus = st.number_input(
        "Cores per worker",
        value=ClusterOptions.cpus,
        step=1,
        key="benchmark_cpus",
        bind="query-params",
        help=CORES_HELP,
    )
    gpus = st.number_input(
        "GPUs per worker",
        value=None,
        step=1.0,
        format="%g",
        key="benchmark_gpus",
        bind="query-params",
        placeholder="1 if there are any",
        help=GPUS_HELP,
    )
    return workers, cpus, gpus


def words(address: str, workers: int | None, cpus: int, gpus: float | None) -> str:
    """Which cluster, how many workers, and what each takes where that is not the usual."""
    place = "Ray on this machine" if address in (LOCAL, AUTO) else f"Ray at {address}"
    crew = "one worker on each device" if workers is None else count(workers, "worker")
    takes = []
    if cpus != ClusterOptions.cpus or gpus is not None:
        takes.append(count(cpus, "core"))
    if gpus is not None:
        takes.append("no GPU" if gpus == 0 else "1 GPU" if gpus == 1 else f"{gpus:g} GPUs")
    return f"{place}: {crew}{', each with ' if takes else ''}{' and '.join(takes)}"
