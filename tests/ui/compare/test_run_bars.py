"""Bars and table say the measured numbers and sources, in a fixed order, and escape all text."""

import re

from engine.analysis.compared import ComparedModel
from engine.types import RunResult
from tests.ui.answers import CACHED, result
from ui.compare import run_bars


def model(*results: RunResult, label: str = "One") -> ComparedModel:
    return ComparedModel(label, "llava", results)


def test_a_cached_stage_is_as_long_as_its_read_and_a_second_bar_shows_the_run_without_cache() -> (
    None
):
    bar = run_bars.finished(model(result(vision=CACHED)))
    lengths = {part.name: part.ms for part in bar.parts}
    without = {part.name: part.ms for part in bar.uncached}
    assert lengths["vision"] == 2 and without["vision"] == 40
    assert {**lengths, "vision": 0} == {**without, "vision": 0}
    assert bar.cached == {"vision"} and bar.detail == ""
    drawn = run_bars.html([bar])
    assert drawn.count("repeating-linear-gradient") == 1 and drawn.count("run-thin") == 1
    plain = run_bars.html([run_bars.finished(model(result()))])  # control
    assert "repeating-linear-gradient" not in plain and "run-thin" not in plain


def test_text_from_outside_is_escaped() -> None:
    label = '<img src=x onerror="a">'
    drawn = run_bars.html([run_bars.finished(model(result(), label=label))])
    assert "<img" not in drawn and "&lt;img" in drawn
    state = run_bars.html([run_bars.growing("a", "b", (), label)])
    assert "<img" not in state


def test_the_legend_names_what_is_visible_alone() -> None:
    drawn = run_bars.html([run_bars.finished(model(result()))])
    keys = re.findall(r'class="run-key"><i [^>]*></i>([^<]*)', drawn)
    assert keys == ["load", "preprocess", "vision", "prefill", "token steps", "unaccounted"]


def test_the_legend_names_a_stage_that_only_the_bar_without_cache_shows() -> None:
    quick = (0.01, "cached", 40.0)
    drawn = run_bars.html([run_bars.finished(model(result(vision=quick)))])
    assert "</i>vision</span>" in drawn
    unseen = run_bars.html([run_bars.finished(model(result(vision=(0.01, "measured", None))))])
    assert "</i>vision</span>" not in unseen  # control
