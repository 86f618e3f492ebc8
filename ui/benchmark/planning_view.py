"""What the planned run would cost, from an earlier run; and the command that starts it.

A cache key contains the sizes and times of change of the runs' files.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from engine import settings
from engine.analysis import run_planning
from engine.analysis.run_planning import EarlierRun
from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.errors import StoreError
from engine.media.dataset import Dataset
from engine.media_options import sweep_text
from engine.report import planning_words
from engine.storage import run_store
from engine.storage.plan import Plan
from engine.storage.run_store import RESULTS, RunInfo
from engine.types import OFFERED, value_of
from ui.benchmark.run_choice import RunChoice
from ui.widgets import notices
from ui.widgets.stored_runs import Stamp, stamp_of, stamps

MOST_AT_ONCE = 8 * 2**20  # bytes of results that are read for a forecast
IDS = "ids.txt"


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

    Ids of samples that are not the first ones are expected in the file IDS, one on each line.
    """
    plan = plans[0] if plans[0].perturb else replace(plans[0], perturb_seed=0)
    parts = ["--dataset", str(dataset.root), "--models", ",".join(plan.models)]
    parts += _options(plan, dataset)
    if text := sweep_text([one.perturb for one in plans]):
        parts += ["--perturb", text]
    parts += _cluster(cluster) if cluster else ()
    return f"{settings.COMMAND} bench {shlex.join(parts)}"


def _cluster(cluster: ClusterOptions) -> Iterator[str]:
    yield from ("--executor", "ray", "--address", cluster.address)
    if cluster.workers is not None:
        yield from ("--workers", str(cluster.workers))
    if cluster.cpus != ClusterOptions.cpus or cluster.gpus is not None:
        gpus = "" if cluster.gpus is None else f",gpus={cluster.gpus:g}"
        yield from ("--per-worker", f"cpus={cluster.cpus}{gpus}")


def _options(plan: Plan, dataset: Dataset) -> Iterator[str]:
    """What differs from the defaults, without the changes of a sweep."""
    ids = tuple(sample.id for sample in dataset.samples)
    if plan.samples != ids:
        first = plan.samples == ids[: len(plan.samples)]
        yield from ("--samples", str(len(plan.samples))) if first else ("--ids", IDS)
    if plan.decode.forced is not None:
        yield from ("--length", f"forced:{plan.decode.forced}")
    for name in ("prompt", "repeat", "warmup", "order", "batch", *OFFERED):
        value = value_of(plan, name)
        set_by_length = name == "max_new_tokens" and plan.decode.forced is not None
        if value != value_of(Plan, name) and not set_by_length and name != "perturb":
            yield from ("--" + name.replace("_", "-"), str(value))
