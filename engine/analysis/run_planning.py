"""How long a planned run takes and how large it is, in figures and in sentences.  Every figure
comes from an earlier run.  What that run does not have is None; nothing is assumed in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.analysis.machine_loads import by_label
from engine.analysis.results_table import frame, measured
from engine.analysis.statistics import cluster_of
from engine.machine.device import free_disk_bytes
from engine.models import registry
from engine.quoting import count, duration, gib, listed, shown
from engine.storage.plan import Plan
from engine.storage.run_store import Run, RunInfo

if TYPE_CHECKING:
    import pandas as pd

FEATURES = "features"  # the name, or its beginning, of the tensors that the feature cache stores
NO_RESULT = "not known, because that run has no result of these models."
COSTS = ("result_ms", "warmup_ms", "load_ms", "row_bytes", "feature_bytes")


@dataclass(frozen=True)
class EarlierRun:
    """A run as a source for planning.  `busy`: labels whose results ran on a busy machine.

    costs: a line per model with the means COSTS, NaN if the run does not have them: result_ms and
    warmup_ms per sample, also of a batch; load_ms to load the checkpoint, the longest; row_bytes of
    a line of results.jsonl; feature_bytes of a sample in the feature cache.
    """

    run: Run
    results: int
    device: str
    costs: pd.DataFrame
    busy: tuple[str, ...] = ()


def newest(plan: Plan, root: Path, runs: Sequence[RunInfo]) -> RunInfo | None:
    """The newest of `runs` (newest first) with results of the plan's models on this dataset; one
    with the same settings first."""
    wanted = {**plan.settings, "repeat": ""}
    fitting = [
        info
        for info in runs
        if info.state in ("finished", "stopped")
        and info.results
        and info.settings.get("kind") == wanted["kind"]
        and set(plan.models) <= set(info.models)
        and Path(info.dataset) == root
    ]
    return max(fitting, key=lambda info: {**info.settings, "repeat": ""} == wanted, default=None)


def measure(run: Run, models: Sequence[str]) -> EarlierRun:
    import pandas as pd  # slow to import

    table = frame([run], answers=False)
    lines = table[table["model"].isin(list(models))]
    loads = by_label(lines) if len(lines) else {}
    rows = []
    for offset, row in run.results():
        kept = (one.bytes for one in row.tensors if one.name.startswith(FEATURES))
        rows.append((row.model, offset, sum(kept)))
    sizes = pd.DataFrame(rows, columns=["model", "offset", "feature_bytes"])
    sizes["row_bytes"] = -sizes["offset"].astype(float).diff(-1)  # to the next row; the last: none
    sizes["feature_bytes"] = sizes["feature_bytes"].astype(float).replace(0.0, np.nan)
    events = [event for event in run.journal if event.get("event") == "loaded"]
    loaded = pd.DataFrame(events, columns=["model", "ms"])
    loaded["load_ms"] = pd.to_numeric(loaded.pop("ms"), errors="coerce").astype(float)
    answers = lines[lines["error"] == ""]
    # A sample of a batch has its share of the batch.
    each = answers["total_ms"].fillna(answers["batch_ms"] / answers["batch"])
    phases = each.groupby([answers["model"], answers["phase"]]).mean().unstack()
    phases = phases.rename(columns={"measured": "result_ms", "warmup": "warmup_ms"})
    parts = [phases, loaded.groupby("model").max(), sizes.groupby("model").mean()]
    return EarlierRun(
        run=run,
        results=len(measured(lines)),
        device=", ".join(dict.fromkeys(filter(None, lines["device"].astype(str)))),
        costs=pd.concat(parts, axis=1).reindex(columns=list(COSTS)).reindex(list(models)),
        busy=tuple(label for label, load in loads.items() if load and load.busy),
    )


@dataclass(frozen=True)
class RunForecast:
    """The forecast of a plan.  Seconds and bytes are of all `runs` of a sweep together.  load_s and
    warmup_s are parts of seconds.  without_time, without_load, without_size: models that the
    earlier run does not have, or not with this figure; they are in no sum."""

    results: int
    warmups: int
    runs: int
    sequences: int
    seconds: float | None
    load_s: float | None
    warmup_s: float | None
    row_bytes: float | None
    feature_bytes: float | None
    without_time: tuple[str, ...]
    without_load: tuple[str, ...]
    without_size: tuple[str, ...]
    other_settings: tuple[tuple[str, str], ...]  # (planned, earlier) where they differ


def forecast(
    plan: Plan, sequences: Mapping[str, str], earlier: EarlierRun | None, runs: int = 1
) -> RunForecast:
    """`sequences`: of each planned sample."""
    import pandas as pd  # slow to import

    costs = earlier.costs if earlier else pd.DataFrame(columns=list(COSTS), dtype=float)
    costs = costs.reindex(list(plan.models))
    planned = len({cluster_of(sequences[sample], sample) for sample in plan.samples})
    each = len(plan.samples) * plan.repeat
    warm = plan.warmup * min(plan.batch, len(plan.samples))
    timed = costs[costs["result_ms"].notna()]
    warmup_s = warm * float(timed["warmup_ms"].fillna(timed["result_ms"]).sum()) / 1000
    result_s = each * float(timed["result_ms"].sum()) / 1000
    load_s, row_bytes, feature_bytes = (
        float(known.sum()) if len(known := column.dropna()) else None
        for column in (timed["load_ms"] / 1000, costs["row_bytes"], costs["feature_bytes"])
    )
    stored = plan.cache != "off" and plan.batch == 1
    return RunForecast(
        results=plan.planned * runs,
        warmups=warm * len(plan.models) * runs,
        runs=runs,
        sequences=planned,
        # Models stay in memory between the runs of a sweep.
        seconds=runs * (result_s + warmup_s) + (load_s or 0.0) if len(timed) else None,
        load_s=load_s,
        warmup_s=runs * warmup_s if len(timed) else None,
        row_bytes=row_bytes and runs * (each + warm) * row_bytes,
        feature_bytes=feature_bytes and runs * len(plan.samples) * feature_bytes
        if stored
        else None,
        without_time=tuple(costs.index[costs["result_ms"].isna()]),
        without_load=tuple(timed.index[timed["load_ms"].isna()]),
        without_size=tuple(costs.index[costs["row_bytes"].isna()]),
        other_settings=tuple(plan.differing(earlier.run.header.plan).values()) if earlier else (),
    )


# The forecast in sentences, for the terminal and the Benchmark page.
def nothing_known(models: Sequence[str]) -> str:
    return (
        f"Duration and size are not known, because there is no earlier run of {listed(models)} on "
        "this dataset: run 10 samples first, and plan again."
    )


def free(place: Path) -> Iterator[str]:
    """The free space on the disk of a folder, if it is known."""
    if (known := free_disk_bytes(place)) is not None:
        yield f"Free on the disk of {shown(place)}: {gib(known)}."


def planned(forecast: RunForecast) -> str:
    runs = f" in {forecast.runs:,} runs" if forecast.runs > 1 else ""
    return (
        f"Planned: {count(forecast.results, 'result')} and "
        f"{count(forecast.warmups, 'warm-up run')}{runs}, "
        f"{count(forecast.sequences, 'independent sequence')}."
    )


def facts(forecast: RunForecast, earlier: EarlierRun, found: bool) -> Iterator[str]:
    yield planned(forecast)
    where = f" on {earlier.device}" if earlier.device else ""
    newest = ", the newest own run of these models on this dataset" if found else ""
    yield f"From run {earlier.run.id} ({count(earlier.results, 'result')}{where}){newest}."
    if forecast.other_settings:
        words = "; ".join(f"{there}, not {here}" for here, there in forecast.other_settings)
        yield f"That run has other settings ({words}): its figures may not hold for this plan."
    if earlier.busy:
        yield "The machine was busy during that run: times are longer than on an idle machine."
    parts = {"loading": forecast.load_s, "warm-up": forecast.warmup_s}
    inside = [f"{_time(seconds)} of {name}" for name, seconds in parts.items() if seconds]
    with_ = f", with {listed(inside)}" if inside else ""
    known = forecast.seconds is not None
    lasts = f"about {_time(forecast.seconds)}{with_}." if known else NO_RESULT
    yield f"Duration: {lasts}"
    if forecast.without_load:
        names = listed(forecast.without_load)
        yield f"Not included: the time to load {names}, which that run did not record."
    if known and (models := forecast.without_time):
        yield f"Not included: the time of {listed(models)}, which has no result in that run."
    if forecast.row_bytes is None:
        yield f"Disk: {NO_RESULT}"
        return
    but = f", without {listed(forecast.without_size)}" if forecast.without_size else ""
    if forecast.feature_bytes:
        but += f", and at most {gib(round(forecast.feature_bytes))} in the feature cache"
    yield f"Disk: about {gib(round(forecast.row_bytes))} of results{but}."


def short(forecast: RunForecast, earlier: EarlierRun) -> str:
    cost = "Duration not known"
    if forecast.seconds is not None and forecast.row_bytes is not None:
        missing = listed(map(registry.label, forecast.without_time))
        less = f" without {missing}" if missing else ""
        size, results = gib(round(forecast.row_bytes)), count(forecast.results, "result")
        cost = f"About {_time(forecast.seconds)} and {size} for {results}{less}"
    busy = ", on a busy machine" if earlier.busy else ""
    return f"{cost} (from run {earlier.run.id}{busy})."


def _time(seconds: float | None) -> str:
    """A sum of measured times is never 0."""
    return duration(max(1.0, seconds or 0.0))
