"""Summaries per model: counts, and for each stage and metric median, spread and percentiles.

Values of different sources (measured, cached, hook, derived) or groups (measured, cold, warm-up,
after a pause) are never in one figure.  p90 needs 10 values, p99 needs 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.analysis import metrics
from engine.analysis.compared import PARTS, StageTimes
from engine.analysis.metrics import METRICS, Metric
from engine.analysis.results_table import GROUPS, Group, labels

if TYPE_CHECKING:
    import pandas as pd

P90_FROM, P99_FROM = 10, 100


@dataclass(frozen=True)
class Figure:
    """n values of one metric of one model.  sd divides by n - 1; mad is not scaled."""

    label: str
    metric: str
    unit: str
    group: Group
    source: str
    n: int
    median: float
    mean: float
    sd: float | None
    mad: float
    p90: float | None
    p99: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Count:
    """Results of one model.  texts: the number of different answers among the measured results."""

    label: str
    results: int
    answered: int
    failed: int
    cold: int
    warm_up: int
    after_pause: int
    cached: int
    capped: int  # stopped at the length limit
    texts: int | None
    samples: int
    batched: int = 0  # answered in a batch, so in no figure of single samples
    off_script: int = 0  # answers to questions that the model was not trained on


def counts(table: pd.DataFrame) -> tuple[Count, ...]:
    """One per label; results, answered and failed count the measured phase only."""
    return tuple(_count(label, table[table["label"] == label]) for label in labels(table))


def _count(label: str, lines: pd.DataFrame) -> Count:
    asked = lines[lines["phase"] == "measured"]
    answered = asked[asked["error"] == ""]
    return Count(
        label=label,
        results=len(asked),
        answered=len(answered),
        failed=len(asked) - len(answered),
        cold=int((answered["group"] == "cold").sum()),
        warm_up=int((lines["group"] == "warm-up").sum()),
        after_pause=int((answered["group"] == "after a pause").sum()),
        cached=int(answered["cached"].sum()),
        capped=int(((answered["stop"] == "length") & ~answered["forced"].astype(bool)).sum()),
        texts=int(answered["text"].nunique()) if "text" in answered else None,
        samples=int(answered["sample"].nunique()),
        batched=int((answered["batch"] > 1).sum()),
        off_script=int(answered["off_script"].sum()),
    )


def figures(table: pd.DataFrame) -> tuple[Figure, ...]:
    """Every figure of every label, in the order of METRICS, groups and labels."""
    found = []
    for (label, group), lines in _parts(table):
        for metric in METRICS:
            if metric.name == "uncached_total" and not lines["cached"].any():
                continue  # it equals the total
            for source, some in lines.groupby(metrics.sources(lines, metric), sort=True):
                values = metrics.values(some, metric)
                if len(values):
                    found.append(_figure(label, metric, group, str(source), values))
    return tuple(found)


def _parts(table: pd.DataFrame) -> list[tuple[tuple[str, Group], pd.DataFrame]]:
    answered = table[table["error"] == ""]
    parts = dict(iter(answered.groupby(["label", "group"], sort=False)))
    keys = [(label, group) for label in labels(table) for group in GROUPS]
    return [(key, parts[key]) for key in keys if key in parts]


def _figure(
    label: str, metric: Metric, group: Group, source: str, values: npt.NDArray[np.float64]
) -> Figure:
    n, middle = len(values), float(np.median(values))
    return Figure(
        label=label,
        metric=metric.name,
        unit=metric.unit,
        group=group,
        source=source,
        n=n,
        median=middle,
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)) if n > 1 else None,
        mad=float(np.median(np.abs(values - middle))),
        p90=float(np.percentile(values, 90)) if n >= P90_FROM else None,
        p99=float(np.percentile(values, 99)) if n >= P99_FROM else None,
        low=float(values.min()),
        high=float(values.max()),
    )


def stage_medians(found: tuple[Figure, ...], names: Sequence[str]) -> StageTimes:
    """By label, the medians in ms of the parts of a bar that were not read from the cache."""
    fresh = [one for one in found if one.source != "cached" and one.group == "measured"]
    return {
        label: {
            one.metric: one.median for one in fresh if one.label == label and one.metric in PARTS
        }
        for label in names
    }


def find(
    found: tuple[Figure, ...], label: str, metric: str, group: Group = "measured"
) -> Figure | None:
    """The figure of a metric that was not read from the cache, if there is one."""
    return next(
        (
            one
            for one in found
            if (one.label, one.metric, one.group) == (label, metric, group)
            and one.source != "cached"
        ),
        None,
    )
