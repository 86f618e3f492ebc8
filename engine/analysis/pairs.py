"""Two models (or two runs of one) compared sample by sample.

A sample's value is the median of its repeats.  Clips of one sequence overlap in time, so each
sequence counts once, by the median of its samples.  The figure is the median over sequences with
the exact interval of the sign test (statistics.median_interval).  Fewer than MIN_CLUSTERS
sequences give no 95 % interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.analysis import machine_loads, statistics
from engine.analysis.model_summary import BY_NAME, PAIRED, Metric, batched, fair
from engine.analysis.results_table import measured, perturbed_alike
from engine.analysis.statistics import MIN_CLUSTERS, Interval
from engine.quoting import count

if TYPE_CHECKING:
    import pandas as pd

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
