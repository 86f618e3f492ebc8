"""The 95 % interval of a function of sums, for records that depend on each other within clusters.

The jackknife over whole clusters (J. W. Tukey, 1958): the figure is computed again without each
cluster, and the spread of these values gives its standard error.  Student's t with the effective
number of clusters minus 1, (sum of weights)^2 / sum of weights^2 - 1, as degrees of freedom widens
the interval if clusters are few or if a few of them hold most records.

Boundary: numbers in, numbers out; numpy alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from engine.analysis.statistics import MIN_CLUSTERS

Floats = npt.NDArray[np.float64]
UPPER = 0.98  # not 0.975: skewed figures of few clusters need the margin (docs/intervals.md)
_GRID = 100_001


def ends(
    columns: Floats, clusters: Sequence[Hashable], figure: Callable[[Floats], Floats]
) -> tuple[float, float] | None:
    """The interval of figure(column sums); None for fewer than MIN_CLUSTERS clusters.

    columns [records, k], the first column being the records' weights; figure takes sums [n, k] and
    returns [n] values on a scale where they are roughly symmetric (log, log odds).
    """
    numbers: dict[Hashable, int] = {}
    rows = [numbers.setdefault(name, len(numbers)) for name in clusters]
    count = len(numbers)
    if count < MIN_CLUSTERS:
        return None
    table = np.zeros((count, columns.shape[1]))
    np.add.at(table, rows, columns)
    whole, weights = table.sum(axis=0), table[:, 0]
    value = float(figure(whole[None])[0])
    without = figure(whole - table)
    error = math.sqrt((count - 1) / count * float(((without - value) ** 2).sum()))
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    half = error * t_quantile(round(max(1.0, effective - 1), 2))
    return (value - half, value + half) if math.isfinite(value + half) else None


@lru_cache(maxsize=256)
def t_quantile(freedom: float) -> float:
    """The quantile UPPER of Student's t, integrated over a, where t = sqrt(freedom) tan(a): the
    density of a is proportional to cos(a)^(freedom - 1)."""
    angles = np.linspace(0, math.pi / 2, _GRID)
    density = np.cos(angles).clip(min=0) ** (freedom - 1)
    passed = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    angle = float(np.interp(2 * UPPER - 1, passed / passed[-1], angles))
    return math.sqrt(freedom) * math.tan(angle)
