"""p-values of a difference of two shares against a limit, and planning.

Boundary: numbers in, numbers out; the interval of clustered_shares.py decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.analysis.clustered_shares import clustered_difference

MOST = 100_000  # values of a plan
_HALVINGS = 24


def chance(values: Sequence[float], sequences: Sequence[str], limit: float, upwards: bool) -> float:
    """p of "the difference is at most `limit`" (upwards), or at least: the smallest tail whose
    interval leaves the limit out."""

    def outside(tail: float) -> bool:
        found = clustered_difference(values, sequences, 1 - 2 * tail)
        if found.low is None or found.high is None:
            return False
        return found.low > limit if upwards else found.high < limit

    low, high = math.log(1e-9), math.log(0.499)
    if not outside(math.exp(high)):
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if outside(math.exp(middle)) else (middle, high)
    return math.exp(high)


def more(
    values: Sequence[float], sequences: Sequence[str], limit: float, level: float
) -> int | None:
    """How many more values would decide at `level` if further clusters were as these: copies of
    them.  None if more than MOST would be needed."""

    def decides(times: int) -> bool:
        copies = [f"{copy} {name}" for copy in range(times) for name in sequences]
        found = clustered_difference([*values] * times, copies, 1 - 2 * level)
        if found.low is None or found.high is None:
            return False
        return found.low > limit or found.high < limit

    doubled = [2**power for power in range(1, 16) if 2**power * len(values) <= MOST]
    times = next((times for times in doubled if decides(times)), None)
    if times is None:
        return None
    few, many = times // 2, times
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if decides(middle) else (middle, many)
    return (many - 1) * len(values) or 1
