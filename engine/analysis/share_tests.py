"""p-values of a difference of two shares against a limit.

Boundary: numbers in, numbers out; the interval of clustered_shares.py decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.analysis.clustered_shares import clustered_difference

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
