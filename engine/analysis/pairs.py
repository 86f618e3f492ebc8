"""Two models (or two runs of one) compared sample by sample.

A sample's value is the median of its repeats.  Clips of one sequence overlap in time, so each
sequence counts once, by the median of its samples.  The figure is the median over sequences with
the exact interval of the sign test (statistics.median_interval).  Fewer than MIN_SEQUENCES
sequences give no 95 % interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from engine.analysis import machine_loads, metrics, statistics
from engine.analysis.metrics import BY_NAME, PAIRED, Metric
from engine.analysis.results_table import measured, perturbed_alike
from engine.analysis.statistics import Interval
from engine.analysis.throughput import batched
from engine.quoting import count

if TYPE_CHECKING:
    import pandas as pd

MIN_SEQUENCES = statistics.MIN_CLUSTERS
Verdict = Literal["less", "more", "equal", "undecided", "unknown"]


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
    median_a: float | None
    median_b: float | None
    difference: Interval | None
    ratio: Interval | None
    verdict: Verdict
    more_samples: int | None
    reason: str = ""  # why there is no interval


def compare(table: pd.DataFrame, a: str, b: str, metric: str) -> Comparison:
    """One metric of two labels, over the samples that both answered."""
    kind = BY_NAME[metric]
    both = paired(table, a, b, kind)
    if both.empty:
        return _unknown(kind, a, b, both, _no_pair(table, (a, b)))
    if kind.timed and (why := machine_loads.incomparable(table, a, b)):
        return _unknown(kind, a, b, both, why)
    sequences = both["sequence"].tolist()
    groups = len(set(sequences))
    if groups < MIN_SEQUENCES:
        reason = (
            f"an interval needs at least {MIN_SEQUENCES} independent sequences, and the "
            f"{count(len(both), 'sample')} are of {count(groups, 'sequence')}"
        )
        return _unknown(kind, a, b, both, reason)
    first, second = both["a"].to_numpy(), both["b"].to_numpy()
    difference = statistics.median_interval(list(first - second), sequences)
    positive = bool((first > 0).all() and (second > 0).all())
    ratios = list(first / second) if positive else []
    ratio = statistics.median_interval(ratios, sequences, ratios=True) if positive else None
    verdict = _verdict(ratio, 1.0) if ratio else _verdict(difference, 0.0)
    return Comparison(
        metric=metric,
        unit=kind.unit,
        a=a,
        b=b,
        n=len(both),
        sequences=groups,
        median_a=float(np.median(first)),
        median_b=float(np.median(second)),
        difference=difference,
        ratio=ratio,
        verdict=verdict,
        more_samples=_more(ratios, sequences) if ratio and verdict == "undecided" else None,
    )


def _no_pair(table: pd.DataFrame, sides: tuple[str, str]) -> str:
    if not perturbed_alike(table, *sides):
        return "their inputs were not perturbed alike"
    grouped = [label for label in batched(table) if label in sides]
    if not grouped:
        return "no sample has a measured value of both models"
    return f"{' and '.join(grouped)} answered in batches, where samples are not timed separately"


def compare_all(table: pd.DataFrame, a: str, b: str) -> tuple[Comparison, ...]:
    """Every metric of PAIRED, in its order."""
    return tuple(compare(table, a, b, metric.name) for metric in PAIRED)


def paired(table: pd.DataFrame, a: str, b: str, metric: Metric) -> pd.DataFrame:
    """A line (sample, sequence, a, b) per sample with a measured value of both.

    None if their inputs were not perturbed alike.
    """
    lines = metrics.fair(measured(table), metric)
    if not perturbed_alike(table, a, b):
        lines = lines[:0]
    first, second = (
        sample_medians(lines[lines["label"] == label], metric).rename(columns={"value": name})
        for name, label in (("a", a), ("b", b))
    )
    both = first[["a"]].join(second[["b"]], how="inner").join(first["sequence"])
    return both.reset_index()


def sample_medians(lines: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """A line (sequence, value) per sample: the median of its repeats."""
    grouped = lines[lines[metric.column].notna()].groupby("sample", sort=False)
    return grouped.agg(sequence=("sequence", "first"), value=(metric.column, "median"))


def _unknown(kind: Metric, a: str, b: str, both: pd.DataFrame, reason: str) -> Comparison:
    some = len(both) > 0
    return Comparison(
        metric=kind.name,
        unit=kind.unit,
        a=a,
        b=b,
        n=len(both),
        sequences=both["sequence"].nunique(),
        median_a=float(both["a"].median()) if some else None,
        median_b=float(both["b"].median()) if some else None,
        difference=None,
        ratio=None,
        verdict="unknown",
        more_samples=None,
        reason=reason,
    )


def _verdict(interval: Interval, equal: float) -> Verdict:
    """By the printed interval: an end printed as 1 does not exclude equality."""
    if interval.low == interval.high == equal:
        return "equal"
    if float(statistics.printed(interval.high)) < equal:
        return "less"
    return "more" if float(statistics.printed(interval.low)) > equal else "undecided"


def _more(ratios: list[float], sequences: list[str]) -> int | None:
    return statistics.more_clusters(statistics.cluster_medians(ratios, sequences, ratios=True), 1.0)
