"""How long a planned run takes, how large it is, and which differences it can detect.

Every figure comes from an earlier run (earlier_run.py).  What that run does not have is None, with
the reason; nothing is assumed in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from engine.analysis import one_sided_tests
from engine.analysis.earlier_run import EarlierRun, ModelCost, RatioSpread, ShareSpread
from engine.analysis.statistics import LEVEL, MAX_MORE, MIN_CLUSTERS
from engine.storage import plan_words
from engine.storage.plan import Plan

Floats = npt.NDArray[np.float64]
POWER = one_sided_tests.POWER
DRAWS = 200  # of the bootstrap
MANY = 200  # values of a smoothed spread
_KERNEL = np.array([NormalDist().inv_cdf(share) for share in (0.1, 0.3, 0.5, 0.7, 0.9)])
_HALVINGS = 20
MOST_DIFFERENT = 1e6  # where the search for a detected difference ends
_TWO_SIDED, _POWER_Z = 1.959964, 0.841621
# statistics.printed() shows a ratio between these two as 1, so a verdict needs one outside.
_PRINTED_LESS, _PRINTED_MORE = 0.9995, 1.005


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
    intervals: bool = True,
) -> RunForecast:
    """`sequences`: of each planned sample; `difference`: a share, 0.05 for 5 %; `intervals`: of the
    needed numbers, which take most of the time."""
    costs = earlier.costs if earlier else ()
    known = {cost.model: cost for cost in costs}
    every = [known.get(model, ModelCost(model)) for model in plan.models]
    planned = len({sequences[sample] for sample in plan.samples})
    each = len(plan.samples) * plan.repeat
    warm = plan.warmup * min(plan.batch, len(plan.samples))
    timed = [cost for cost in every if cost.result_ms is not None]
    loads = [cost.load_ms for cost in timed if cost.load_ms is not None]
    warmup_s = sum(warm * (cost.warmup_ms or cost.result_ms or 0.0) for cost in timed) / 1000
    result_s = sum(each * (cost.result_ms or 0.0) for cost in timed) / 1000
    sized = [cost.row_bytes for cost in every if cost.row_bytes is not None]
    features = [cost.feature_bytes for cost in every if cost.feature_bytes is not None]
    stored = plan.cache != "off" and plan.batch == 1
    return RunForecast(
        results=plan.planned * runs,
        warmups=warm * len(plan.models) * runs,
        runs=runs,
        sequences=planned,
        metric=metric,
        difference=difference,
        # Models stay in memory between the runs of a sweep.
        seconds=runs * (result_s + warmup_s) + sum(loads) / 1000 if timed else None,
        load_s=sum(loads) / 1000 if loads else None,
        warmup_s=runs * warmup_s if timed else None,
        row_bytes=runs * (each + warm) * sum(sized) if sized else None,
        feature_bytes=runs * len(plan.samples) * sum(features) if stored and features else None,
        without_time=tuple(cost.model for cost in every if cost.result_ms is None),
        without_load=tuple(cost.model for cost in timed if cost.load_ms is None),
        without_size=tuple(cost.model for cost in every if cost.row_bytes is None),
        detections=(
            _detections(earlier, planned, difference, plan.batch, intervals) if earlier else ()
        ),
        other_settings=tuple(plan_words.differing(plan, earlier.run.header.plan).values())
        if earlier
        else (),
    )


def alike(plan: Plan, other: Plan) -> bool:
    """Whether two plans have the same settings, apart from models, samples and repeats."""
    return not plan_words.differing(plan, other)


def _detections(
    earlier: EarlierRun, planned: int, difference: float, batch: int, intervals: bool
) -> tuple[Detection, ...]:
    if batch > 1 and earlier.spreads:
        why = "samples of a batch are not timed separately"
        return tuple(Detection(one.a, one.b, reason=why) for one in earlier.spreads)
    ratios = (of_ratios(one, planned, difference, intervals) for one in earlier.spreads)
    return (*ratios, *(of_shares(one, planned, difference) for one in earlier.shares))


def of_ratios(
    spread: RatioSpread, planned: int, difference: float, intervals: bool = True
) -> Detection:
    """By one ratio per sequence and the sign test."""
    if spread.reason:
        return Detection(spread.a, spread.b, reason=spread.reason)
    logs = np.log(np.array(spread.ratios))
    values, low, high = smoothed(logs), None, None
    found = _in_comparison(values, planned, difference)
    if intervals:
        low, high = _range(logs, lambda drawn: _in_comparison(drawn, planned, difference)[0])
    return Detection(
        a=spread.a,
        b=spread.b,
        earlier=len(logs),
        needed=found[0],
        low=low,
        high=high,
        power=found[1],
        smallest=_smallest(lambda size: _in_comparison(values, planned, size)[1], planned),
    )


def _in_comparison(values: Floats, planned: int, difference: float) -> tuple[int | None, float]:
    """The needed sequences, and the power of the planned ones.  The figure that reports print must
    exclude equality, which takes a little more in one direction than in the other."""
    more = math.log1p(difference) - math.log(_PRINTED_MORE)
    less = math.log1p(difference) + math.log(_PRINTED_LESS)
    places = (np.arange(len(values)) + 0.5) / len(values)
    share = 1 - float(np.interp(-min(more, less), values, places, left=0.0, right=1.0))
    return one_sided_tests.needed(share), one_sided_tests.power(planned, share)


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


def _range(logs: Floats, needed: Callable[[Floats], int | None]) -> tuple[int | None, int | None]:
    """The 95 % interval of the needed number by the bootstrap: sequences drawn again; None for an
    end without a practical number."""
    generator = np.random.default_rng(0)
    drawn = (generator.choice(logs, len(logs)) for _ in range(DRAWS))
    found = sorted(
        math.inf if (one := needed(smoothed(some - np.median(some)))) is None else float(one)
        for some in drawn
    )
    cut = round(DRAWS * (1 - LEVEL) / 2)
    low, high = found[cut], found[-1 - cut]
    return None if math.isinf(low) else int(low), None if math.isinf(high) else int(high)


def _smallest(power: Callable[[float], float], planned: int) -> float | None:
    """The smallest difference that has a power of POWER; None without one."""
    if planned < MIN_CLUSTERS:
        return None
    low, high = 0.0, 1.0
    while power(high) < POWER:
        low, high = high, 2 * high
        if high > MOST_DIFFERENT:
            return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high


def of_shares(spread: ShareSpread, planned: int, difference: float) -> Detection:
    """By the interval of a difference of accuracies, whose width shrinks with the root of the
    number of sequences; a normal form."""
    if spread.reason:
        return Detection(spread.a, spread.b, reason=spread.reason)
    from scipy.special import ndtr  # slow to import

    needed = math.ceil((spread.error * (_TWO_SIDED + _POWER_Z) / difference) ** 2)
    reached = difference * math.sqrt(planned) / spread.error - _TWO_SIDED
    enough = planned >= MIN_CLUSTERS
    return Detection(
        a=spread.a,
        b=spread.b,
        earlier=spread.sequences,
        needed=max(MIN_CLUSTERS, needed) if needed <= MAX_MORE else None,
        power=float(ndtr(reached)) if enough else 0.0,
        smallest=spread.error * (_TWO_SIDED + _POWER_Z) / math.sqrt(planned) if enough else None,
    )


def worst(detections: Sequence[Detection]) -> Detection | None:
    """The comparison that detects least at the planned number; None if nothing is known."""
    known = [one for one in detections if not one.reason]
    return max(known, key=lambda one: math.inf if one.smallest is None else one.smallest,
               default=None)  # fmt: skip
