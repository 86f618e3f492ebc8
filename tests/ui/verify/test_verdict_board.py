"""What the board of a verification shows of its samples."""

from __future__ import annotations

from tests.ui.verify.made import A, B
from ui.verify.verdict_board import short_names


def test_names_of_samples_are_short_and_differ() -> None:
    long = "a_very_long_name_of_a_sample"
    twin = A[:8] + B[8:].replace("a", "b")
    names = short_names([A, B, long, long + "2", twin])
    assert names[A] == "357e6028" and len(names[long]) <= 14
    assert len(set(names.values())) == 5
