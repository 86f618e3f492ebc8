"""Two models (or two runs of one) compared sample by sample.

A sample's value is the median of its repeats.  Clips of one sequence overlap in time, so each
sequence counts once, by the median of its samples.  The figure is the median over sequences with
the exact interval of the sign test (statistics.median_interval).  Fewer than MIN_CLUSTERS
sequences give no 95 % interval.

A ratio of total times is split exactly into its factors.  The split is Shapley's (L. S. Shapley, "A
value for n-person games", 1953): a factor's share is its mean effect over all orders in which the
factors of one model can replace those of the other.  It does not depend on an order, and the shares
add up to the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from engine.analysis import machine_loads, statistics
from engine.analysis.model_summary import BY_NAME, PAIRED, Metric, batched, fair
from engine.analysis.results_table import measured, of_both, perturbed_alike
from engine.analysis.statistics import MIN_CLUSTERS, Interval
from engine.palette import UNACCOUNTED
from engine.quoting import count

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["less", "more", "equal", "undecided", "unknown"]
LOAD, PREPROCESS, VISION, PREFILL = "loading", "preprocessing", "vision", "prefill"
TOKENS, PER_TOKEN = "number of tokens", "time per token"
AROUND = "decode outside its steps"  # the decode stage minus its prefill and its token steps
FACTORS = (LOAD, PREPROCESS, VISION, PREFILL, TOKENS, PER_TOKEN, AROUND, UNACCOUNTED)
_COLUMNS = ("load_ms", "preprocess_ms", "vision_ms", "decode_ms", "prefill_ms", "steps_ms",
            "total_ms")  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """a against b: `ratio` is the median of a/b, `difference` that of a - b, over sequences.

    `verdict`: a has "less" or "more" than b or is "equal", if the printed interval shows it.
    `more_samples`: how many more samples, each of a new sequence, would decide an undecided
    comparison if the share of sequences on the larger side stays the same; None if it is decided,
    or if too many would be needed.
    """

    metric: str
    unit: str
    a: str
    b: str
    n: int
    sequences: int
    difference: Interval | None
    ratio: Interval | None
    verdict: Verdict
    more_samples: int | None
    reason: str = ""  # why there is no interval


def compare_all(table: pd.DataFrame, a: str, b: str) -> tuple[Comparison, ...]:
    """Every metric of PAIRED, in its order."""
    table = table[table["label"].isin((a, b))]
    loads = machine_loads.incomparable(table, a, b)
    return tuple(compare(table, a, b, metric.name, loads) for metric in PAIRED)


def compare(
    table: pd.DataFrame, a: str, b: str, metric: str, loads: str | None = None
) -> Comparison:
    """One metric of two labels, over the samples that both answered.  `loads`: why times cannot be
    compared, or ""; None to find out."""
    loads = machine_loads.incomparable(table, a, b) if loads is None else loads
    kind = BY_NAME[metric]
    both = paired(table, a, b, kind)
    first, second = both["a"].to_numpy(), both["b"].to_numpy()
    sequences = both["sequence"].tolist()
    difference, ratio, more = None, None, None
    verdict: Verdict = "unknown"
    if not (reason := _no_interval(table, a, b, both, loads if kind.timed else "")):
        difference = statistics.median_interval(list(first - second), sequences)
        verdict = _verdict(difference, 0.0)
        if (first > 0).all() and (second > 0).all():
            ratios = list(first / second)
            ratio = statistics.median_interval(ratios, sequences, ratios=True)
            verdict = _verdict(ratio, 1.0)
            if verdict == "undecided":
                medians = statistics.cluster_medians(ratios, sequences, ratios=True)
                more = statistics.more_clusters(medians, 1.0)
    return Comparison(
        metric=kind.name,
        unit=kind.unit,
        a=a,
        b=b,
        n=len(both),
        sequences=len(set(sequences)),
        difference=difference,
        ratio=ratio,
        verdict=verdict,
        more_samples=more,
        reason=reason,
    )


def _no_interval(table: pd.DataFrame, a: str, b: str, both: pd.DataFrame, loads: str) -> str:
    """Why a comparison has no interval, or ""."""
    if both.empty:
        if not perturbed_alike(table, a, b):
            return "their inputs were not perturbed alike"
        if grouped := [label for label in batched(table) if label in (a, b)]:
            who = " and ".join(grouped)
            return f"{who} answered in batches, where samples are not timed separately"
        return "no sample has a measured value of both models"
    if loads:
        return loads
    if (groups := both["sequence"].nunique()) < MIN_CLUSTERS:
        return (
            f"an interval needs at least {MIN_CLUSTERS} independent sequences, and both models "
            f"answered {count(len(both), 'sample')} of {count(groups, 'sequence')}"
        )
    return ""


def paired(table: pd.DataFrame, a: str, b: str, metric: Metric) -> pd.DataFrame:
    """A line (sample, sequence, a, b) per sample with a measured value of both.  None if their
    inputs were not perturbed alike."""
    lines = fair(measured(table), metric).dropna(subset=metric.column)
    lines = lines if perturbed_alike(table, a, b) else lines[:0]
    sides = (lines[lines["label"] == label] for label in (a, b))
    first, second = (side.groupby("sample", sort=False) for side in sides)
    of_a = first.agg(a=(metric.column, "median"), sequence=("cluster", "first"))
    both = of_a.join(second.agg(b=(metric.column, "median")), how="inner").reset_index()
    return both[["sample", "a", "b", "sequence"]].astype({"a": float, "b": float})


def _verdict(interval: Interval, equal: float) -> Verdict:
    """By the printed interval: an end printed as 1 does not exclude equality."""
    if interval.low == interval.high == equal:
        return "equal"
    if float(statistics.printed(interval.high)) < equal:
        return "less"
    return "more" if float(statistics.printed(interval.low)) > equal else "undecided"


@dataclass(frozen=True)
class SpeedupFactor:
    """One factor: its value in a and in b, and its share of the speed-up.  `ratio` is b / a of the
    factor itself.  Over all factors, the product of `factor` is the whole ratio and the sum of `ms`
    the whole difference (b - a)."""

    name: str
    unit: str
    a: float
    b: float
    ratio: float | None
    factor: float
    ms: float


@dataclass(frozen=True)
class Split:
    """b's mean total / a's mean total over n shared samples: `ratio` > 1 means a is faster.
    `parts` are in the fixed order of FACTORS."""

    a: str
    b: str
    n: int
    a_ms: float
    b_ms: float
    ratio: float
    parts: tuple[SpeedupFactor, ...]


def split(table: pd.DataFrame, a: str, b: str) -> Split | None:
    """The split of two labels, or None if no sample of both was measured completely.  Results with
    a cached stage are left out.  A sample's values are the means of its repeats."""
    lines = measured(table)
    lines = lines[~lines["cached"].astype(bool) & (lines["new_tokens"] > 0)]
    lines = lines.dropna(subset=list(_COLUMNS))
    sides = of_both(lines, a, b)
    samples = sides[0]["sample"].nunique()
    if not samples or not perturbed_alike(table, a, b):
        return None
    columns = [*_COLUMNS, "new_tokens"]
    means = (side.groupby("sample")[columns].mean().mean() for side in sides)
    return split_of(a, b, samples, *(factors_of([*map(float, side)]) for side in means))


def factors_of(means: Sequence[float]) -> tuple[float, ...]:
    """Values in the order of FACTORS, such that total_of() gives the mean total exactly.  `means`:
    milliseconds of load, preprocess, vision, decode, prefill, steps and the total, and the number
    of new tokens."""
    load, preprocess, vision, decode, prefill, steps, total, tokens = means
    gaps = tokens - 1
    per_token = steps / gaps if gaps > 0 else 0.0
    around = decode - prefill - gaps * per_token
    unaccounted = total - load - preprocess - vision - decode
    return load, preprocess, vision, prefill, gaps, per_token, around, unaccounted


def total_of(factors: Sequence[float]) -> float:
    """Milliseconds: load + preprocess + vision + prefill + steps x time per step + decoding outside
    the steps + unaccounted."""
    load, preprocess, vision, prefill, gaps, per_token, around, unaccounted = factors
    return load + preprocess + vision + prefill + gaps * per_token + around + unaccounted


def split_of(a: str, b: str, n: int, first: Sequence[float], second: Sequence[float]) -> Split:
    """The split of two models by their factors, each in the order of FACTORS.  ValueError for a
    total of 0 ms or less."""
    a_ms, b_ms = total_of(first), total_of(second)
    if min(a_ms, b_ms) <= 0:
        raise ValueError("a total time must be positive")
    logs = shapley(first, second, lambda chosen: math.log(max(total_of(chosen), 1e-12)))
    times = shapley(first, second, total_of)
    parts = []
    for name, one, other, log, ms in zip(FACTORS, first, second, logs, times, strict=True):
        unit, more = ("tokens", 1) if name == TOKENS else ("ms", 0)  # the prefill gives the first
        ratio = other / one if one > 0 and other > 0 else None
        parts.append(SpeedupFactor(name, unit, one + more, other + more, ratio, math.exp(log), ms))
    return Split(a, b, n, a_ms, b_ms, b_ms / a_ms, tuple(parts))


def shapley(
    first: Sequence[float], second: Sequence[float], value: Callable[[Sequence[float]], float]
) -> list[float]:
    """Each factor's share of value(second) - value(first), over all 2^n coalitions."""
    n = len(first)
    worth = {
        chosen: value([second[i] if i in chosen else first[i] for i in range(n)])
        for size in range(n + 1)
        for chosen in map(frozenset, combinations(range(n), size))
    }
    weights = [1 / (n * math.comb(n - 1, size)) for size in range(n)]
    found = []
    for player in range(n):
        others = [chosen for chosen in worth if player not in chosen]
        gains = [weights[len(one)] * (worth[one | {player}] - worth[one]) for one in others]
        found.append(float(np.sum(gains)))
    return found


def supported(found: Split, verdict: str) -> bool:
    """Whether the verdict of the paired comparison of total times supports the ratio of means; if
    not, the means hold for these samples only."""
    if verdict == "equal":
        return round(found.ratio, 2) == 1
    return verdict == ("less" if found.ratio > 1 else "more") and found.ratio != 1


def sentence(found: Split, decided: bool) -> str:
    """The split in words: "a is 3.20x as fast as b ...: loading 30x faster ...".  `decided`:
    supported() of the paired comparison; if not, the sentence says so first."""
    fast, slow, ratio = found.a, found.b, found.ratio
    parts, means = list(found.parts), (found.a_ms, found.b_ms)
    if ratio < 1:
        fast, slow, ratio, means = slow, fast, 1 / ratio, means[::-1]
        parts = [
            replace(part, a=part.b, b=part.a, ratio=part.ratio and 1 / part.ratio,
                    factor=1 / part.factor, ms=-part.ms)
            for part in parts
        ]  # fmt: skip
    if decided:
        samples = count(found.n, "sample")
        return f"{fast} is {ratio:.2f}x as fast as {slow} in the mean of {samples}{_listed(parts)}"
    samples = "this sample" if found.n == 1 else f"these {found.n:,} samples"
    return (
        "No conclusion about mean total time, because the paired test does not support one. In "
        f"{samples}, {fast} took {means[0]:,.1f} ms on average and {slow} {means[1]:,.1f} ms, "
        f"{ratio:.2f}x as long{_listed(parts, f'. Of {fast}')}"
    )


def _listed(parts: Sequence[SpeedupFactor], whose: str = "") -> str:
    """The end of the sentence: the factors that are not 1, the largest first."""
    texts = []
    for part in sorted(parts, key=lambda part: -abs(math.log(part.factor))):
        if abs(math.log(part.factor)) < 0.005:  # it would read x1.00
            continue
        if part.name == TOKENS:
            times = max(part.a, part.b) / max(min(part.a, part.b), 1e-12)
            text = f"{times:.2f}x {'more' if part.a > part.b else 'fewer'} tokens"
        elif part.ratio is None:
            text = f"{part.name} {part.a:.1f} ms against {part.b:.1f} ms"
        elif part.ratio >= 1:
            text = f"{part.name} {part.ratio:.2f}x faster"
        else:
            text = f"{part.name} {1 / part.ratio:.2f}x slower"
        texts.append(f"{text} (x{part.factor:.2f})")
    if not texts:
        return "."
    return f"{whose}: {'; '.join(texts)}."
