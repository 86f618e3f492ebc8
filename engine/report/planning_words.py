"""The forecast of a planned run in sentences, for the terminal and the Benchmark page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from engine.analysis.gate import ACCURACY
from engine.analysis.metrics import BY_NAME
from engine.analysis.run_planning import EarlierRun, RunForecast, worst
from engine.analysis.statistics import MIN_CLUSTERS, POWER
from engine.machine.device import free_disk_bytes
from engine.quoting import count, duration, gib, listed, shown
from engine.report.blocks import Block, Bullets, ReportTable

ASSUMED = (
    "Assumption: new sequences vary as those of that run do, on the same machine with the same "
    "settings, and one metric is tested alone."
)
SIGN_TEST = "Two models: the exact sign test of comparisons, with one value per sequence."
ASSUMED_ACCURACY = (
    "Assumption: new questions vary as those of that run do; the interval of a difference of "
    "accuracies shrinks with the root of the number of sequences."
)
NO_RESULT = "not known, because that run has no result of these models."


def nothing_known(models: Sequence[str]) -> str:
    """What to do without an earlier run."""
    return (
        f"Duration, size and power are not known, because there is no earlier run of "
        f"{listed(models)} on this dataset: run 10 samples of at least 6 sequences first, and "
        "plan again."
    )


def blocks(
    forecast: RunForecast, earlier: EarlierRun, found: bool, disk: Iterable[str] = ()
) -> Iterator[Block]:
    """The whole forecast; `found`: the earlier run was found here, not named by the user; `disk`:
    what is known of the place of the run."""
    yield Bullets((*facts(forecast, earlier, found), *disk))
    notes = [
        f"{one.a} and {one.b}: not known from that run, because {one.reason}."
        for one in forecast.detections
        if one.reason
    ]
    if len(notes) < len(forecast.detections):
        yield table(forecast)
        notes += (ASSUMED_ACCURACY,) if forecast.metric == ACCURACY else (ASSUMED, SIGN_TEST)
    if notes:
        yield Bullets(tuple(notes))


def free(place: Path) -> Iterator[str]:
    """The free space on the disk of a folder, if it is known."""
    if (known := free_disk_bytes(place)) is not None:
        yield f"Free on the disk of {shown(place)}: {gib(known)}."


def planned(forecast: RunForecast) -> str:
    """How many results of how many sequences are planned."""
    runs = f" in {forecast.runs:,} runs" if forecast.runs > 1 else ""
    return (
        f"Planned: {count(forecast.results, 'result')} and "
        f"{count(forecast.warmups, 'warm-up run')}{runs}, "
        f"{count(forecast.sequences, 'independent sequence')}."
    )


def facts(forecast: RunForecast, earlier: EarlierRun, found: bool) -> Iterator[str]:
    """Counts, source, duration and size."""
    yield planned(forecast)
    where = f" on {earlier.device}" if earlier.device else ""
    newest = ", the newest own run of these models on this dataset" if found else ""
    yield f"From run {earlier.run.id} ({count(earlier.results, 'result')}{where}){newest}."
    if forecast.other_settings:
        words = "; ".join(f"{there}, not {here}" for here, there in forecast.other_settings)
        yield f"That run has other settings ({words}): its figures may not hold for this plan."
    if earlier.busy:
        yield (
            "The machine was busy during that run: times and spread are larger than on an idle "
            "machine."
        )
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


def table(forecast: RunForecast) -> ReportTable:
    """A row per comparison with figures: its names, the needed sequences, power and smallest
    difference of the planned ones."""
    unit = " points of accuracy" if forecast.metric == ACCURACY else f" % in {_label(forecast)}"
    caption = (
        f"To detect a difference of {forecast.difference * 100:g}{unit} with {_share(POWER)} power "
        "at the 5 % level:"
    )
    rows = []
    for one in (one for one in forecast.detections if not one.reason):
        needed, high = (f"{n:,}" if n else "no practical number" for n in (one.needed, one.high))
        interval = "" if one.low is None else f"{one.low:,} to {high}, "
        words = f"{needed} ({interval}from {one.earlier:,})"
        smallest = f"nothing: an interval needs {MIN_CLUSTERS} sequences"
        smallest = smallest if one.smallest is None else _percent(one.smallest, forecast)
        rows.append((f"{one.a} and {one.b}", words, _share(one.power or 0.0), smallest))
    power = f"power of the {forecast.sequences:,} planned"
    columns = ("comparison", "sequences needed (about 95 % interval)", power, "they detect")
    return ReportTable(caption, columns, tuple(rows), 4)


def short(forecast: RunForecast, earlier: EarlierRun) -> str:
    """The forecast in one line."""
    cost = "Duration not known"
    if forecast.seconds is not None and forecast.row_bytes is not None:
        less = f" without {listed(forecast.without_time)}" if forecast.without_time else ""
        cost = (
            f"About {_time(forecast.seconds)} and {gib(round(forecast.row_bytes))} for "
            f"{count(forecast.results, 'result')}{less}"
        )
    weakest = worst(forecast.detections)
    planned = count(forecast.sequences, "sequence")
    if weakest is None:
        power = "which differences it detects is not known"
    elif weakest.smallest is None:
        power = f"{planned} give no interval, which needs {MIN_CLUSTERS}"
    else:
        power = (
            f"{planned} detect a difference of {_percent(weakest.smallest, forecast)} in "
            f"{_label(forecast)} between any two of its models with {_share(POWER)} power"
        )
    busy = ", on a busy machine" if earlier.busy else ""
    return f"{cost}; {power} (from run {earlier.run.id}{busy})."


def _share(share: float) -> str:
    if not share:
        return "none"
    return "under 1 %" if share < 0.01 else f"{math.floor(share * 100):,} %"


def _time(seconds: float | None) -> str:
    """A sum of measured times is never 0."""
    return duration(max(1.0, seconds or 0.0))


def _label(forecast: RunForecast) -> str:
    return "accuracy" if forecast.metric == ACCURACY else BY_NAME[forecast.metric].label


def _percent(share: float, forecast: RunForecast) -> str:
    """Rounded up, so that the difference is not below what is detected."""
    places = 1 if share < 0.1 else 0
    value = math.ceil(share * 100 * 10**places - 1e-9) / 10**places
    unit = "points" if forecast.metric == ACCURACY else "%"
    return f"{value:,.{places}f} {unit} or more"
