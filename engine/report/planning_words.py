"""The forecast of a planned run in sentences, for the terminal and the Benchmark page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from engine.analysis.earlier_run import MIN_SEQUENCES, EarlierRun
from engine.analysis.gate import ACCURACY
from engine.analysis.metrics import BY_NAME
from engine.analysis.run_planning import POWER, Detection, RunForecast, worst
from engine.quoting import count, duration, listed, size

ASSUMED = (
    "Assumption: new sequences vary as those of that run do, on the same machine with the same "
    "settings, and one metric is tested alone."
)
SIGN_TEST = "Two models: the exact sign test of comparisons, with one value per sequence."
ASSUMED_ACCURACY = (
    "Assumption: new questions vary as those of that run do; the interval of a difference of "
    "accuracies shrinks with the root of the number of sequences."
)
NEWEST = ", the newest own run of these models on this dataset"


def nothing_known(models: Sequence[str]) -> str:
    """What to do without an earlier run."""
    return (
        f"Duration, size and power are not known, because there is no earlier run of "
        f"{listed(models)} on this dataset: run 10 samples of at least 6 sequences first, and "
        "plan again."
    )


def lines(forecast: RunForecast, earlier: EarlierRun, found: bool) -> Iterator[str]:
    """The whole forecast; `found`: the earlier run was found here, not named by the user."""
    yield from facts(forecast, earlier, found)
    yield asked(forecast)
    yield from table(forecast)
    yield from remarks(forecast)


def facts(forecast: RunForecast, earlier: EarlierRun, found: bool) -> Iterator[str]:
    """Counts, source, duration and size."""
    yield planned(forecast)
    yield source(earlier, found)
    yield from notes(forecast, earlier)
    yield from _cost(forecast)


def asked(forecast: RunForecast) -> str:
    """The heading of rows()."""
    return f"To detect a difference of {_difference(forecast)} with {_power()} at the 5 % level:"


def remarks(forecast: RunForecast) -> Iterator[str]:
    """What is not known, and what the figures assume."""
    for one in forecast.detections:
        if one.reason:
            yield f"{pair(one)}: not known from that run, because {one.reason}."
    known = [one for one in forecast.detections if not one.reason]
    if known:
        yield ASSUMED_ACCURACY if forecast.metric == ACCURACY else ASSUMED
        if forecast.metric != ACCURACY:
            yield SIGN_TEST


def planned(forecast: RunForecast) -> str:
    """How many results of how many sequences are planned."""
    return (
        f"Planned: {count(forecast.results, 'result')} and "
        f"{count(forecast.warmups, 'warm-up run')}"
        f"{_in_runs(forecast)}, {count(forecast.sequences, 'independent sequence')}."
    )


def source(earlier: EarlierRun, found: bool) -> str:
    where = f" on {earlier.device}" if earlier.device else ""
    named = NEWEST if found else ""
    return f"From run {earlier.run.id} ({count(earlier.results, 'result')}{where}){named}."


def notes(forecast: RunForecast, earlier: EarlierRun) -> Iterator[str]:
    """What makes the earlier run a weaker source."""
    if forecast.other_settings:
        words = "; ".join(f"{there}, not {here}" for here, there in forecast.other_settings)
        yield f"That run has other settings ({words}): its figures may not hold for this plan."
    if earlier.busy:
        yield (
            "The machine was busy during that run: times and spread are larger than on an idle "
            "machine."
        )


def _cost(forecast: RunForecast) -> Iterator[str]:
    if forecast.seconds is None:
        yield "Duration: not known, because that run has no result of these models."
    else:
        parts = [("loading", forecast.load_s), ("warm-up", forecast.warmup_s)]
        inside = [f"{_time(seconds)} of {name}" for name, seconds in parts if seconds]
        told = f", with {listed(inside)}" if inside else ""
        yield f"Duration: about {_time(forecast.seconds)}{told}."
    missing = [
        (forecast.without_load, "the time to load", "which that run did not record"),
        (forecast.without_time if forecast.seconds is not None else (), "the time of",
         "which has no result in that run"),
    ]  # fmt: skip
    for models, what, why in missing:
        if models:
            yield f"Not included: {what} {listed(models)}, {why}."
    yield from _disk(forecast)


def _disk(forecast: RunForecast) -> Iterator[str]:
    if forecast.row_bytes is None:
        yield "Disk: not known, because that run has no result of these models."
        return
    but = f", without {listed(forecast.without_size)}" if forecast.without_size else ""
    features = (
        f", and at most {size(round(forecast.feature_bytes))} in the feature cache"
        if forecast.feature_bytes
        else ""
    )
    yield f"Disk: about {size(round(forecast.row_bytes))} of results{but}{features}."


def rows(forecast: RunForecast) -> list[tuple[str, ...]]:
    """A row per comparison with figures: its names, the needed sequences, power and smallest
    difference of the planned ones.  The first row names the columns; () without figures."""
    planned = f"power of the {forecast.sequences:,} planned"
    head = ("", "sequences needed (about 95 % interval)", planned, "they detect")
    known = [
        (pair(one), needed(one), _share(one.power or 0.0), smallest(one, forecast))
        for one in forecast.detections
        if not one.reason
    ]
    return [head, *known] if known else []


def table(forecast: RunForecast) -> Iterator[str]:
    """rows() with aligned columns."""
    every = rows(forecast)
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    for row in every:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'   '.join(cells).rstrip()}"


def pair(one: Detection) -> str:
    """The two sides of a comparison."""
    return f"{one.a} and {one.b}"


def needed(one: Detection) -> str:
    """The number of sequences with its interval; the number of sequences that it comes from."""
    found = "no practical number" if one.needed is None else f"{one.needed:,}"
    if one.low is None:
        return f"{found} (from {one.earlier:,})"
    most = "no practical number" if one.high is None else f"{one.high:,}"
    return f"{found} ({one.low:,} to {most}, from {one.earlier:,})"


def smallest(one: Detection, forecast: RunForecast) -> str:
    """The smallest difference that the planned sequences detect."""
    if one.smallest is None:
        return f"nothing: an interval needs {MIN_SEQUENCES} sequences"
    return f"{_percent(one.smallest, forecast)} or more"


def short(forecast: RunForecast, earlier: EarlierRun) -> str:
    """The forecast in one line."""
    cost = "Duration not known"
    if forecast.seconds is not None and forecast.row_bytes is not None:
        less = "" if not forecast.without_time else f" without {listed(forecast.without_time)}"
        cost = (
            f"About {_time(forecast.seconds)} and {size(round(forecast.row_bytes))} for "
            f"{count(forecast.results, 'result')}{less}"
        )
    busy = ", on a busy machine" if earlier.busy else ""
    return f"{cost}; {_weakest(forecast)} (from run {earlier.run.id}{busy})."


def _weakest(forecast: RunForecast) -> str:
    one = worst(forecast.detections)
    planned = count(forecast.sequences, "sequence")
    if one is None:
        return "which differences it detects is not known"
    if one.smallest is None:
        return f"{planned} give no interval, which needs {MIN_SEQUENCES}"
    return (
        f"{planned} detect a difference of {smallest(one, forecast)} in {_label(forecast)} "
        f"between any two of its models with {_power()}"
    )


def _power() -> str:
    return f"{_share(POWER)} power"


def _share(share: float) -> str:
    if not share:
        return "none"
    return "under 1 %" if share < 0.01 else f"{math.floor(share * 100):,} %"


def _time(seconds: float) -> str:
    """A sum of measured times is never 0."""
    return duration(max(1.0, seconds))


def _in_runs(forecast: RunForecast) -> str:
    return f" in {forecast.runs:,} runs" if forecast.runs > 1 else ""


def _label(forecast: RunForecast) -> str:
    return "accuracy" if forecast.metric == ACCURACY else BY_NAME[forecast.metric].label


def _difference(forecast: RunForecast) -> str:
    points = " points of accuracy" if forecast.metric == ACCURACY else f" % in {_label(forecast)}"
    return f"{forecast.difference * 100:g}{points}"


def _percent(share: float, forecast: RunForecast) -> str:
    """Rounded up, so that the difference is not below what is detected."""
    places = 1 if share < 0.1 else 0
    value = math.ceil(share * 100 * 10**places - 1e-9) / 10**places
    return f"{value:,.{places}f}" + (" points" if forecast.metric == ACCURACY else " %")
