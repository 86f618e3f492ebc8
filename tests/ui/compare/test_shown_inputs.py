"""Which settings of the shown runs are chips, and what has changed since them."""

from dataclasses import replace

from engine.types import RunOptions, RunRequest, Sample
from tests.ui.answers import SAMPLE
from ui.compare import shown_inputs
from ui.compare.shown_inputs import changes

USUAL = RunRequest(SAMPLE, "one", "Why?")
SAMPLE, OTHER = Sample("one", "drive"), Sample("two", "drive")
SHOWN = [RunRequest(SAMPLE, name, "Why?") for name in ("a", "b")]


def test_the_table_shows_every_value_beside_the_default() -> None:
    found = shown_inputs.table([USUAL, replace(USUAL, how=RunOptions(cache="off"))])
    assert ("Feature cache", "cache on<br>cache off", "cache on") in found.rows
    assert len(found.rows) == len(shown_inputs.DEFAULTS)


def test_each_input_is_named() -> None:
    assert changes(SHOWN, OTHER, [replace(one, sample=OTHER) for one in SHOWN]) == ("sample",)
    assert changes(SHOWN, SAMPLE, [replace(one, prompt="When?") for one in SHOWN]) == ("question",)
    assert changes(SHOWN, SAMPLE, SHOWN[:1]) == ("models",)
    assert changes(SHOWN, None, []) == ("sample", "models")
