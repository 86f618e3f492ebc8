"""What the planned run would cost and detect, from an earlier run: a line, and a closed box.

A cache key contains the sizes and times of change of the runs' files.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from engine import settings
from engine.analysis import earlier_run, run_planning
from engine.analysis.earlier_run import EarlierRun
from engine.analysis.run_planning import RunForecast
from engine.errors import StoreError
from engine.machine.disk import free_bytes
from engine.quoting import size
from engine.report import planning_words
from engine.storage import run_store
from engine.storage.run_header import HEADER
from engine.storage.run_store import RunInfo
from ui.benchmark.run_choice import RunChoice
from ui.widgets import notices
from ui.widgets.text import escape

Stamp = tuple[tuple[str, int, int], ...]  # (file, size, time of last change)
FILES = (HEADER, run_store.RESULTS, run_store.JOURNAL, run_store.SUMMARY)
MOST_AT_ONCE = 8 * 2**20  # bytes of results that are read without a click
Found = tuple[RunForecast, EarlierRun]


def line(choice: RunChoice) -> None:
    """The forecast in one line, if an earlier run allows one and is read quickly."""
    try:
        found = _forecast(choice, intervals=False)
    except StoreError as error:
        notices.small(str(error), "benchmark_forecast")
        return
    if found is not None:
        notices.small(planning_words.short(*found), "benchmark_forecast")


def details(choice: RunChoice) -> None:
    """The whole forecast in a closed box; it is drawn when the box is opened."""
    if choice.plan is None:
        return
    box = st.expander("Plan: duration, disk, power", key="benchmark_plan", on_change="rerun")
    if not box.open:
        return
    with box:
        try:
            found = _forecast(choice, intervals=True)
        except StoreError as error:
            notices.problem(str(error), "benchmark_plan")
            return
        if found is None:
            notices.small(planning_words.nothing_known(choice.plan.models), "benchmark_no_plan")
            return
        _draw(*found)


def _draw(forecast: RunForecast, earlier: EarlierRun) -> None:
    said = [*planning_words.facts(forecast, earlier, found=True)]
    base = settings.load().runs_dir
    if (free := free_bytes(base)) is not None:
        said.append(f"Free on the disk of {base}: {size(free)}.")
    notices.small("\n".join(said), "benchmark_plan_facts")
    if rows := planning_words.rows(forecast):
        import pandas as pd  # slow to import

        st.text(planning_words.asked(forecast))
        head, *cells = ([escape(cell) for cell in row] for row in rows)
        table = pd.DataFrame(cells, columns=["comparison", *head[1:]]).set_index("comparison")
        st.table(table, alt="Sequences needed and power, by comparison.")
    notices.small("\n".join(planning_words.remarks(forecast)), "benchmark_plan_remarks")


def _forecast(choice: RunChoice, intervals: bool) -> Found | None:
    """The forecast and its source; None without a plan or an earlier run."""
    plan, dataset = choice.plan, choice.dataset
    if plan is None or dataset is None:
        return None
    base = settings.load().runs_dir
    info = earlier_run.newest(plan, dataset.root, _listing(base, _stamps(base)))
    if info is None:
        return None
    key = info.folder, _stamp(info.folder)
    if not intervals and _size(key[1]) > MOST_AT_ONCE:
        return None
    earlier = _measured(*key, plan.models)
    place = len(choice.sweep), str(dataset.root), len(dataset.samples)
    return _computed(*key, hash(plan), place, intervals, choice, earlier), earlier


@st.cache_resource(max_entries=64, show_spinner=False)
def _computed(
    folder: Path,
    stamp: Stamp,
    plan: int,
    place: tuple[int, str, int],
    intervals: bool,
    _choice: RunChoice,
    _earlier: EarlierRun,
) -> RunForecast:
    assert _choice.plan is not None and _choice.dataset is not None
    sequences = {sample.id: sample.sequence for sample in _choice.dataset.samples}
    runs = max(1, place[0])
    return run_planning.forecast(_choice.plan, sequences, _earlier, runs=runs, intervals=intervals)


def _stamps(base: Path) -> tuple[Stamp, ...]:
    return tuple(_stamp(path.parent) for path in sorted(base.glob(f"*/{HEADER}")))


def _stamp(folder: Path) -> Stamp:
    found = []
    for name in FILES:
        try:
            stat = (folder / name).stat()
        except OSError:
            continue
        found.append((f"{folder}/{name}", stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _size(stamp: Stamp) -> int:
    return sum(held for name, held, _ in stamp if name.endswith(run_store.RESULTS))


@st.cache_resource(max_entries=4, show_spinner=False)
def _listing(base: Path, stamps: tuple[Stamp, ...]) -> tuple[RunInfo, ...]:
    return run_store.listing(base)


@st.cache_resource(max_entries=16, show_spinner="Reading the earlier run …")
def _measured(folder: Path, stamp: Stamp, models: tuple[str, ...]) -> EarlierRun:
    return earlier_run.measure(run_store.read(folder), models)
