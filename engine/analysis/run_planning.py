"""How long a planned run takes, how large it is, and which differences it can detect.

Every figure comes from an earlier run.  What that run does not have is None, with the reason;
nothing is assumed in its place.  The spread of differences comes from values that the run really
has, one per sequence: the ratio of two models' values, as pairs.compare() uses it, centred on the
median, because only the spread is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.analysis import pairs, statistics
from engine.analysis.gate import ACCURACY, accuracy
from engine.analysis.machine_loads import by_label
from engine.analysis.metrics import BY_NAME
from engine.analysis.results_table import answered, frame, labels, measured
from engine.analysis.statistics import (
    LEVEL,
    MAX_MORE,
    MIN_CLUSTERS,
    POWER,
    POWER_Z,
    TWO_SIDED,
    clustered_difference,
)
from engine.storage import plan_words
from engine.storage.plan import Plan
from engine.storage.run_store import Run, RunInfo

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
FEATURES = "features"  # the name, or its beginning, of the tensors that the feature cache stores
COSTS = ("result_ms", "warmup_ms", "load_ms", "row_bytes", "feature_bytes")
DRAWS = 200  # of the bootstrap
_CUT = round(DRAWS * (1 - LEVEL) / 2)
MANY = 200  # values of a smoothed spread
_KERNEL = np.array([NormalDist().inv_cdf(share) for share in (0.1, 0.3, 0.5, 0.7, 0.9)])
MOST_DIFFERENT = 1e6  # where the search for a detected difference ends
# statistics.printed() shows a ratio between these two as 1, so a verdict needs one outside.
_PRINTED_LESS, _PRINTED_MORE = 0.9995, 1.005


@dataclass(frozen=True)
class PairSpread:
    """How the values of two labels vary.  `reason`: why this is not known.

    ratios: of their values per sequence, divided by the median: ascending, positive.  error: the
    standard error of the difference of their accuracies, times the root of the sequences.
    """

    a: str
    b: str
    sequences: int = 0
    ratios: tuple[float, ...] = ()
    error: float | None = None
    reason: str = ""


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
    spreads: tuple[PairSpread, ...] = ()
    busy: tuple[str, ...] = ()


def newest(plan: Plan, root: Path, runs: Sequence[RunInfo]) -> RunInfo | None:
    """The newest of `runs` (newest first) with results of the plan's models on this dataset; one
    with the same settings first."""
    wanted = {**plan_words.settings(plan), "repeat": ""}
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


def measure(run: Run, models: Sequence[str], metric: str = "total") -> EarlierRun:
    """What the run tells about these models; one label of each, that with the most results."""
    table = frame([run], answers=metric == ACCURACY)
    lines = table[table["model"].isin(list(models))]
    sizes = lines["label"].value_counts()
    names = lines.drop_duplicates("label").set_index("label")["model"]
    asked = labels(lines) if len(lines) else []
    of_models = [[label for label in asked if names[label] == model] for model in models]
    known = [max(own, key=lambda label: int(sizes[label])) for own in of_models if own]
    loads = by_label(lines) if len(lines) else {}
    spread = _shares if metric == ACCURACY else _ratios
    return EarlierRun(
        run=run,
        results=len(measured(lines)),
        device=", ".join(dict.fromkeys(filter(None, lines["device"].astype(str)))),
        costs=_costs(run, lines).reindex(list(models)),
        spreads=tuple(spread(lines, a, b, metric) for a, b in combinations(known, 2)),
        busy=tuple(label for label in known if (load := loads.get(label)) and load.busy),
    )


def _costs(run: Run, lines: pd.DataFrame) -> pd.DataFrame:
    """COSTS of each model that has some."""
    import pandas as pd  # slow to import

    rows = [
        (row.model, offset, sum(one.bytes for one in row.tensors if one.name.startswith(FEATURES)))
        for offset, row in run.results()
    ]
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
    return pd.concat(parts, axis=1).reindex(columns=list(COSTS))


def _ratios(lines: pd.DataFrame, a: str, b: str, metric: str) -> PairSpread:
    both = pairs.paired(lines, a, b, BY_NAME[metric])
    if both.empty:
        return PairSpread(a, b, reason="no sample has a measured value of both")
    if min(both["a"].min(), both["b"].min()) <= 0:
        return PairSpread(a, b, reason="some values are 0, so that there is no ratio")
    ratios, sequences = (both["a"] / both["b"]).tolist(), both["sequence"].tolist()
    medians = statistics.cluster_medians(ratios, sequences, ratios=True)
    if len(medians) < MIN_CLUSTERS:
        return PairSpread(a, b, reason=_too_few(len(medians)))
    middle = statistics.median_interval(medians.tolist(), ratios=True).median
    return PairSpread(a, b, len(medians), tuple((medians / middle).tolist()))


def _shares(lines: pd.DataFrame, a: str, b: str, metric: str) -> PairSpread:
    """The error of a difference from its interval, which shrinks with the root of the sequences."""
    answers = answered(lines)
    sequences = dict(zip(answers["sample"], answers["sequence"], strict=True))
    first, second = (accuracy(answers[answers["label"] == label]) for label in (a, b))
    both = [sample for sample in first if sample in second]
    if not both:
        return PairSpread(a, b, reason="no sample of both has a known right answer")
    share = clustered_difference(
        [first[sample] - second[sample] for sample in both],
        [str(sequences[sample] or sample) for sample in both],
    )
    if share.low is None or share.high is None:
        return PairSpread(a, b, reason=_too_few(share.clusters))
    error = (share.high - share.low) / (2 * TWO_SIDED)
    return PairSpread(a, b, share.clusters, error=error * share.clusters**0.5)


def _too_few(sequences: int) -> str:
    return f"it has {sequences:,} sequences of both, and {MIN_CLUSTERS} are needed"


@dataclass(frozen=True)
class Detection:
    """How well a comparison of a and b detects a difference.

    needed: sequences for a power of POWER at the asked difference, with the 95 % interval `low` to
    `high` that the earlier run leaves open; None: no practical number.  power: at the planned
    number of sequences.  smallest: the smallest difference that the planned number detects with a
    power of POWER; None if there is none.  earlier: sequences that the figures come from.
    """

    a: str
    b: str
    earlier: int = 0
    needed: int | None = None
    low: int | None = None
    high: int | None = None
    power: float | None = None
    smallest: float | None = None
    reason: str = ""  # why nothing is known


@dataclass(frozen=True)
class RunForecast:
    """The forecast of a plan.  Seconds and bytes are of all `runs` of a sweep together.

    load_s and warmup_s are parts of seconds.  without_time, without_load, without_size: models
    that the earlier run does not have, or not with this figure; they are in no sum.
    """

    results: int
    warmups: int
    runs: int
    sequences: int
    metric: str
    difference: float
    seconds: float | None
    load_s: float | None
    warmup_s: float | None
    row_bytes: float | None
    feature_bytes: float | None
    without_time: tuple[str, ...]
    without_load: tuple[str, ...]
    without_size: tuple[str, ...]
    detections: tuple[Detection, ...]
    other_settings: tuple[tuple[str, str], ...]  # (planned, earlier) where they differ


def forecast(
    plan: Plan,
    sequences: Mapping[str, str],
    earlier: EarlierRun | None,
    metric: str = "total",
    difference: float = 0.05,
    runs: int = 1,
) -> RunForecast:
    """`sequences`: of each planned sample; `difference`: a share, 0.05 for 5 %."""
    import pandas as pd  # slow to import

    costs = earlier.costs if earlier else pd.DataFrame(columns=list(COSTS), dtype=float)
    costs = costs.reindex(list(plan.models))
    planned = len({sequences[sample] for sample in plan.samples})
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
        metric=metric,
        difference=difference,
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
        detections=tuple(
            Detection(one.a, one.b, reason="samples of a batch are not timed separately")
            if plan.batch > 1 and metric != ACCURACY
            else detection(one, planned, difference)
            for one in (earlier.spreads if earlier else ())
        ),
        other_settings=tuple(plan_words.differing(plan, earlier.run.header.plan).values())
        if earlier
        else (),
    )


def detection(spread: PairSpread, planned: int, difference: float) -> Detection:
    """Of ratios: by one per sequence and the sign test.  Of accuracies: by the interval of a
    difference, whose width shrinks with the root of the number of sequences; a normal form."""
    if spread.reason:
        return Detection(spread.a, spread.b, reason=spread.reason)
    enough = planned >= MIN_CLUSTERS
    if spread.error is not None:
        least = spread.error * (TWO_SIDED + POWER_Z)
        needed = math.ceil((least / difference) ** 2)
        reached = difference * math.sqrt(planned) / spread.error - TWO_SIDED
        return Detection(
            a=spread.a,
            b=spread.b,
            earlier=spread.sequences,
            needed=max(MIN_CLUSTERS, needed) if needed <= MAX_MORE else None,
            power=NormalDist().cdf(reached) if enough else 0.0,
            smallest=least / math.sqrt(planned) if enough else None,
        )
    logs = np.log(np.array(spread.ratios))
    values = smoothed(logs)
    # The 95 % interval of the needed number by the bootstrap: sequences drawn again.
    drawn = np.random.default_rng(0).choice(logs, (DRAWS, len(logs)))
    centred = drawn - np.median(drawn, axis=1, keepdims=True)
    again = [statistics.needed(_share(smoothed(some), difference)) for some in centred]
    low, high = (
        int(end) if math.isfinite(end) else None
        for end in np.sort([math.inf if one is None else one for one in again])[[_CUT, -1 - _CUT]]
    )
    return Detection(
        a=spread.a,
        b=spread.b,
        earlier=len(logs),
        needed=statistics.needed(_share(values, difference)),
        low=low,
        high=high,
        power=statistics.power(planned, _share(values, difference)),
        smallest=_smallest(values, planned) if enough else None,
    )


def _share(values: Floats, difference: float) -> float:
    """The share of sequences that a difference puts on one side of equality.  The figure that
    reports print must exclude equality, which takes a little more in one direction."""
    more = math.log1p(difference) - math.log(_PRINTED_MORE)
    less = math.log1p(difference) + math.log(_PRINTED_LESS)
    places = (np.arange(len(values)) + 0.5) / len(values)
    return 1 - float(np.interp(-min(more, less), values, places, left=0.0, right=1.0))


def smoothed(logs: Floats) -> Floats:
    """MANY or fewer values spread as these [n] are, ascending.

    Mirrored, because a difference may be in either direction, and smoothed by normal kernels
    (Silverman's rule), because the share of few values on one side is coarse.
    """
    quartiles = np.percentile(logs, [25, 75])
    size = min(float(logs.std(ddof=1)), float(quartiles[1] - quartiles[0]) / 1.349)
    width = 0.9 * size * len(logs) ** -0.2
    both = np.concatenate([logs, -logs])
    every = np.sort((both[:, None] + width * _KERNEL[None, :]).ravel())
    if len(every) <= MANY:
        return every
    places = (np.arange(MANY) + 0.5) / MANY
    thinned: Floats = np.quantile(every, places)
    return thinned


def _smallest(values: Floats, planned: int) -> float | None:
    """The smallest difference that has a power of POWER; None without one."""
    low, high = 0.0, 1.0
    while statistics.power(planned, _share(values, high)) < POWER:
        low, high = high, 2 * high
        if high > MOST_DIFFERENT:
            return None
    for _ in range(20):
        middle = (low + high) / 2
        enough = statistics.power(planned, _share(values, middle)) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def worst(detections: Sequence[Detection]) -> Detection | None:
    """The comparison that detects least at the planned number; None if nothing is known."""
    known = [one for one in detections if not one.reason]
    return max(known, key=lambda one: math.inf if one.smallest is None else one.smallest,
               default=None)  # fmt: skip
