"""The forecast of a planned run in sentences, for the terminal and the Benchmark page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.analysis.run_planning import EarlierRun, RunForecast
from engine.machine.device import free_disk_bytes
from engine.models import registry
from engine.quoting import count, duration, gib, listed, shown

NO_RESULT = "not known, because that run has no result of these models."


def nothing_known(models: Sequence[str]) -> str:
    """What to do without an earlier run."""
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
        yield ("The machine was busy during that run: times are longer than on an idle machine.")
    parts = {"loading": forecast.load_s, "warm-up": forecast.warmup_s}
    inside = [f"{_time(seconds)} of {name}" for name, seconds in parts.items() if seconds]
    with_ = f", with {listed(inside)}" if inside else ""
    known = forecast.seconds is not None
    yield (
        f"Duration: about {_time(forecast.seconds)}{with_}." if known else f"Duration: {NO_RESULT}"
    )
    if forecast.without_load:
        yield (
            f"Not included: the time to load {listed(forecast.without_load)}, which that run did "
            "not record."
        )
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
        cost = (
            f"About {_time(forecast.seconds)} and {gib(round(forecast.row_bytes))} for "
            f"{count(forecast.results, 'result')}{less}"
        )
    busy = ", on a busy machine" if earlier.busy else ""
    return f"{cost} (from run {earlier.run.id}{busy})."


def _time(seconds: float | None) -> str:
    """A sum of measured times is never 0."""
    return duration(max(1.0, seconds or 0.0))
