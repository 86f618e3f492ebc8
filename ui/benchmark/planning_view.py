"""What the planned run would cost, from an earlier run; and the command that starts it.

A cache key contains the sizes and times of change of the runs' files.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from engine import settings
from engine.analysis import run_planning
from engine.analysis.run_planning import EarlierRun
from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.errors import StoreError
from engine.media.dataset import Dataset
from engine.report import planning_words
from engine.storage import run_store
from engine.storage.plan import Plan, flags
from engine.storage.run_store import RESULTS, RunInfo
from ui.benchmark.run_choice import RunChoice
from ui.widgets import notices
from ui.widgets.stored_runs import Stamp, stamp_of, stamps

MOST_AT_ONCE = 8 * 2**20  # bytes of results that are read for a forecast


def line(choice: RunChoice) -> None:
    """The forecast in one line, if an earlier run allows one and is read quickly."""
    plans, dataset = choice.plans, choice.dataset
    if not plans or dataset is None:
        return
    plan, base = plans[0], settings.load().runs_dir
    try:
        info = run_planning.newest(plan, dataset.root, _listing(base, stamps(base)))
        if info is None:
            return
        stamp = stamp_of(info.folder)
        if sum(size for name, size, _ in stamp if name.endswith(RESULTS)) > MOST_AT_ONCE:
            return
        earlier = _measured(info.folder, stamp, plan.models)
    except StoreError as error:
        notices.small(str(error), "benchmark_forecast")
        return
    sequences = {sample.id: sample.sequence for sample in dataset.samples}
    forecast = run_planning.forecast(plan, sequences, earlier, len(plans))
    notices.small(planning_words.short(forecast, earlier), "benchmark_forecast")


@st.cache_resource(max_entries=4, show_spinner=False)
def _listing(base: Path, stamps: tuple[Stamp, ...]) -> tuple[RunInfo, ...]:
    return run_store.listing(base)


@st.cache_resource(max_entries=16, show_spinner="Reading the earlier run …")
def _measured(folder: Path, stamp: Stamp, models: tuple[str, ...]) -> EarlierRun:
    return run_planning.measure(run_store.read(folder), models)


def command(plans: Sequence[Plan], dataset: Dataset, cluster: ClusterOptions | None = None) -> str:
    """`python -m engine bench` for a plan or a sweep, for a shell; `cluster` None: this process.

    Ids of samples that are not the first ones are expected in the file plan.IDS.
    """
    parts = [*flags(plans, str(dataset.root), [sample.id for sample in dataset.samples])]
    parts += cluster.flags if cluster else ()
    return f"{settings.COMMAND} bench {shlex.join(parts)}"
