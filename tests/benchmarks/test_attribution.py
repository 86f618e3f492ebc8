"""The figures of explanations: what counts as found."""

from __future__ import annotations

from benchmarks import attribution
from benchmarks.attribution import Said
from engine.types import RunRequest, Sample

RIGHT = (0.7, 0.4, 0.9, 0.8)


def said(*boxes: tuple[float, float, float, float], thing: str = "pedestrian") -> Said:
    run = RunRequest(Sample("a", "s"), "m", "What?")
    return Said(run, (1,), thing, "A pedestrian.", boxes)


def test_a_cell_that_touches_the_thing_is_a_hit_and_chance_is_the_share_of_such_cells() -> None:
    one = said(RIGHT)
    hit = attribution.pointed(one, (0.75, 0.5, 1.0, 0.75), 4)
    assert hit.hit and hit.side is True and hit.chance == 6 / 16
    miss = attribution.pointed(one, (0.5, 0.0, 0.75, 0.25), 4)  # on its side, above it
    assert not miss.hit and miss.side is True
    assert attribution.pointed(one, (0.0, 0.5, 0.25, 0.75), 4).side is False
    beside = (RIGHT[2], 0.4, 1.0, 0.8)  # a common edge is no common area
    assert not attribution.touches(beside, (RIGHT,))
