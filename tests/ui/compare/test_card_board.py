"""The verdict as HTML: a heading, every model's figures, and nothing unescaped; what is spoken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from engine.analysis.compared import ComparedModel, verdict
from engine.jobs.run_job import RunView
from tests.ui.answers import CACHED, result
from ui.compare.card_board import markup, sentence


def one(label: str, *runs: float) -> ComparedModel:
    results = (result(vision=(ms, "measured", None)) for ms in runs)
    return ComparedModel(label, "llava", tuple(results))


def test_the_strip_has_a_heading_the_figures_and_the_reason() -> None:
    html = markup(verdict([one("Slow", 140.0), one("Fast", 40.0)], {"Third": "failed"}))
    assert "<h2>Fast was first in this run: 175 ms, 100 ms less than Slow.</h2>" in html
    assert html.index("Slow<b>275 ms</b>") < html.index("Fast<b>175 ms</b>")
    assert "3 tokens · 37.5 ms per token" in html
    assert (
        "Less time: vision (40.0 ms against 140 ms)" in html
        and "Not counted: Third failed." in html
    )
    assert "aria-live" not in html


def test_repeats_show_the_median_and_the_range() -> None:
    html = markup(verdict([one("One", 40.0, 10.0, 90.0)], {}))
    assert "<b>175 ms</b><span>3 tokens · " in html
    assert "<span>median run of 3: 145 ms to 225 ms</span>" in html


def test_what_is_mixed_is_said() -> None:
    cached = ComparedModel("Two", "llava", (result(vision=CACHED),))
    html = markup(verdict([one("One", 40.0), cached], {}))
    assert "<h2>No winner: the runs differ in cache.</h2>" in html
    assert "<p>Cache: all stages computed for One; vision read from the cache for Two.</p>" in html


def test_labels_are_escaped() -> None:
    html = markup(verdict([one("<b>A", 40.0), one("<i>B", 10.0)], {"<u>C": "failed"}))
    assert not any(tag in html for tag in ("<b>A", "<i>B", "<u>C"))
    assert "&lt;i&gt;B was first" in html


@pytest.mark.parametrize(
    ("state", "total", "words"),
    [
        ("done", 458.2, "EventGPT answered in 458 ms"),
        ("failed", None, "EventGPT: failed"),
        ("cancelled", 12.0, "EventGPT: cancelled"),
    ],
)
def test_the_end_of_a_run_is_one_sentence(state: str, total: float | None, words: str) -> None:
    result = None if total is None else SimpleNamespace(total_ms=total)
    view = cast(RunView, SimpleNamespace(state=state, result=result, repeats=1))
    assert sentence(view, "EventGPT") == words


def test_of_several_runs_the_sentence_says_which_one_it_is() -> None:
    result = SimpleNamespace(total_ms=151.0)
    view = SimpleNamespace(state="done", result=result, repeat=4, repeats=5)
    words = sentence(cast(RunView, view), "EventGPT")
    assert words == "EventGPT answered in 151 ms (run 4 of 5)"
