"""A margin on the scale of a change: where the gate's verdict turns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.analysis import gate, gate_limits
from engine.analysis.gate import GateResult
from engine.storage.run_values import ModelValues, SampleValues

ONE = GateResult(
    label="ev", metric="total", unit="ratio", verdict="undecided", n=9, sequences=9, base=1.0,
    new=1.0, change=1.0, low=0.9, high=1.1, p_no_worse=1.0, p_worse=1.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "worse"), [("total", 1.25), ("tokens_per_s", 0.8), ("new_tokens", 1.25)]
)
def test_beyond_the_limit_is_worse_and_before_it_is_not(metric: str, worse: float) -> None:
    limits = gate_limits.limits(replace(ONE, metric=metric), 0.25)
    assert worse in limits and len(limits) == (2 if metric == "new_tokens" else 1)
    for factor, expected in ((1.01, True), (0.99, False)):
        ratio = worse**factor  # a little more of the same change, or a little less
        logs = np.full(8, np.log(ratio))
        samples = [
            {f"s{n}": SampleValues(sequence=f"q{n}", results=1, values={metric: float(value)})
             for n, value in enumerate(values)}
            for values in (np.full(8, 10.0), 10.0 * np.exp(logs))
        ]  # fmt: skip
        base, new = (
            [ModelValues(label="ev", model="ev", device="", shared="", cached=0, load=None,
                         samples=side)] for side in samples
        )  # fmt: skip
        tested = gate._test("ev", metric, base, new, 0.25, asked=False)
        assert isinstance(tested, GateResult) and (tested.p_worse <= gate.TAIL) is expected


def test_accuracy_is_in_points() -> None:
    points = replace(ONE, metric="accuracy", unit="points", change=-0.02)
    assert gate_limits.limits(points, 0.05) == (-0.05,)
    assert gate_limits.shown(points, -0.05) == -5.0
    assert gate_limits.shown(ONE, 1.05) == pytest.approx(5.0)
