"""The first line of a comparison of two labels."""

import pytest

from engine.analysis.pairs import Comparison, Verdict
from engine.analysis.statistics import Interval
from engine.report.comparison_part import headline

SIZE = "A took 0.5 times as long as B (95 % interval 0.4 to 0.6; 12 samples of 8 sequences)."


def compared(verdict: Verdict, ratio: Interval | None, reason: str = "") -> Comparison:
    return Comparison("total", "ms", "A", "B", 12, 8, None, ratio, verdict, None, reason)


@pytest.mark.parametrize(
    ("verdict", "start"),
    [
        ("less", "A was faster than B: "),
        ("more", "B was faster than A: "),
        ("equal", "A and B are equally fast: "),
        ("undecided", "A and B show no difference: "),
    ],
)
def test_a_verdict_comes_with_its_ratio_and_interval(verdict: Verdict, start: str) -> None:
    assert headline(compared(verdict, Interval(0.5, 0.4, 0.6, 12, 8))) == start + SIZE
