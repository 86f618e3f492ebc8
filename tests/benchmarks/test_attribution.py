"""The figures of explanations: what counts as found."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import attribution
from benchmarks.attribution import Said
from engine.types import RunRequest, Sample
from tests.attribution import made

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


def test_things_on_both_sides_have_no_side() -> None:
    both = said(RIGHT, (0.1, 0.4, 0.3, 0.8))
    assert attribution.pointed(both, (0.75, 0.5, 1.0, 0.75), 4).side is None
    car = replace(said(RIGHT), thing="lead vehicle")
    assert attribution.pointed(car, (0.75, 0.5, 1.0, 0.75), 4).side is None


def test_a_place_that_the_test_alone_would_name_is_counted_apart() -> None:
    found = [made.explanation(chance=test) for test in (made.CLEAR, made.UNLIKELY, made.NO_CHANCE)]
    named = attribution._named(found)
    assert (named["found"], named["alone"], named["n"]) == (1, 2, 3)
