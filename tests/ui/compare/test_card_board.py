"""The verdict as HTML: a heading, every model's figures, and nothing unescaped; what is spoken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from engine.analysis.compared import ComparedModel, verdict
from engine.jobs.run_job import RunView
from tests.ui.answers import result
from ui.compare.card_board import markup, sentence


def one(label: str, *runs: float) -> ComparedModel:
    results = (result(vision=(ms, "measured", None)) for ms in runs)
    return ComparedModel(label, "llava", tuple(results))


def test_the_strip_has_a_heading_the_reason_and_whether_the_answers_agree() -> None:
    both = [one("Slow", 140.0), one("Fast", 40.0)]
    html = markup(verdict(both, {}), both)
    assert "<h2>Fast was first in this run: 175 ms, 100 ms less than Slow.</h2>" in html
    assert "<p>Less time for vision (40.0 ms against 140 ms) saved 100 ms.</p>" in html
    assert html.index("saved") < html.index("The answers state nothing") and "aria-live" not in html


def test_labels_are_escaped() -> None:
    html = markup(verdict([one("<b>A", 40.0), one("<i>B", 10.0)], {}))
    assert not any(tag in html for tag in ("<b>A", "<i>B"))
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
