"""Where a dataset run executes: in this process, or on workers of the configured Ray cluster.

Boundary: sidebar widgets in, ClusterOptions out.  Nothing is drawn without a configured address.
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
    "Ray: one worker per device of the cluster, each with one model at a time; results of "
    "different device types are kept apart. This process: one run after another, on this machine."
)
WORKERS_HELP = "At most one per device. Empty: one per device."
CORES_HELP = "The number of threads of each worker."
GPUS_HELP = (
    "Empty: 1 if the cluster has GPUs, otherwise 0. A fraction such as 0.5 lets several workers "
    "share a GPU; their results say so."
)
Place = Callable[[], ClusterOptions]


def configured() -> bool:
    """Whether the settings name a cluster."""
    return bool(settings.load().ray_address)


def pick() -> Place | None:
    """A function that returns the options, or raises BadInput; None: this process.

    Call it after the last widget is drawn, because a widget that is not drawn loses its value.
    """
    address = settings.load().ray_address
    if not address or either("Runs on", PLACES, "benchmark_where", WHERE_HELP) != "ray":
        return None
    place = st.container()
    with st.expander("Workers", key="benchmark_crew"):
        workers, cpus, gpus = _worker_options()
    with place:
        notices.small(words(address, workers, cpus, gpus), "benchmark_address")
    return partial(ClusterOptions, address, workers, cpus, gpus)


def _worker_options() -> tuple[int | None, int, float | None]:
    """Workers, and cores and GPUs of each; the engine checks the bounds and words the errors."""
    workers = st.number_input(
        "Workers",
        value=None,
        step=1,
        key="benchmark_workers",
        bind="query-params",
        placeholder="One per device",
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
    """The cluster, the number of workers, and their resources if not the default."""
    place = "Ray on this machine" if address in (LOCAL, AUTO) else f"Ray at {address}"
    number = "one worker per device" if workers is None else count(workers, "worker")
    each = []
    if cpus != ClusterOptions.cpus or gpus is not None:
        each.append(count(cpus, "core"))
    if gpus is not None:
        each.append("no GPU" if gpus == 0 else "1 GPU" if gpus == 1 else f"{gpus:g} GPUs")
    return f"{place}: {number}{', each with ' if each else ''}{' and '.join(each)}"
