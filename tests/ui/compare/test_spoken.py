from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from engine.jobs.run_job import RunView
from ui.compare.spoken import sentence


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
