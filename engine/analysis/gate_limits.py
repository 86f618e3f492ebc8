"""Where a gate's margin lies on the scale of a result's change, for charts.

Boundary: a result and the margin in, numbers of the result's unit out.
"""

from __future__ import annotations

from engine.analysis.gate import ACCURACY, GateResult
from engine.analysis.gate_values import TOKENS
from engine.analysis.metrics import BY_NAME


def limits(result: GateResult, margin: float) -> tuple[float, ...]:
    """The changes beyond which the metric is worse by more than the margin, ascending: one, or two
    for tokens, which must not change in either direction."""
    if result.metric == ACCURACY:
        return (-margin,)
    fewer, more = 1 / (1 + margin), 1 + margin
    if result.metric == TOKENS:
        return (fewer, more)
    return (more,) if BY_NAME[result.metric].less_is_faster else (fewer,)


def shown(result: GateResult, value: float) -> float:
    """A change as it is printed: in percent, of accuracy in percentage points."""
    return 100 * (value if result.unit == "points" else value - 1)
