"""Repeats of models: which run a card shows, and which runs belong together."""

from __future__ import annotations

from dataclasses import replace

from engine.jobs.run_job import RunView
from engine.models.checkpoint import ModelEntry
from engine.types import DecodeConfig, RunOptions, RunRequest
from tests.ui import answers
from tests.ui.answers import SAMPLE, result
from ui.widgets.followed_runs import grouped

ENTRY = ModelEntry("one", "One", "llava", "image", "./one", None, None, "float32", True)


def view(name: str, state: str = "done", model: str = "one", error: str = "") -> RunView:
    found = result(model) if state == "done" else None
    request = RunRequest(SAMPLE, model, "Why?")
    text = f"text of {name}" if found else ""
    return answers.view(
        name, state, model=model, error=error, text=text, result=found, request=request
    )


def test_a_card_follows_the_repeat_that_runs_and_keeps_the_text_before_it() -> None:
    (runs,) = grouped([view("a"), view("b", "loading"), view("c", "queued")])
    shown = runs.shown
    assert (shown.id, shown.repeat, shown.repeats) == ("b", 2, 3)
    assert shown.text == "text of a" and not shown.ended


def test_at_the_end_the_newest_run_with_an_answer_is_shown() -> None:
    (runs,) = grouped([view("a"), view("b"), view("c", "failed", error="It broke.")])
    assert runs.shown.id == "b"
    model = runs.compared(ENTRY)
    assert model is not None and len(model.results) == 2 and model.failures == ("It broke.",)
    (broken,) = grouped([view("a", "failed"), view("b", "failed")])
    assert broken.shown.id == "b" and broken.compared(ENTRY) is None
    assert runs.compared(None) is None


def test_repeats_that_were_cancelled_in_the_queue_have_not_failed() -> None:
    stopped = [view(name, "cancelled", error="one was cancelled.") for name in ("b", "c")]
    (runs,) = grouped([view("a"), *stopped, view("d", "failed", error="It broke."),
                       view("e", "queued")])  # fmt: skip
    model = runs.compared(ENTRY)
    assert model is not None
    assert model.left_out == {"cancelled before the end": 2, "failed": 1}


def test_runs_of_another_question_or_setting_do_not_belong() -> None:
    other = replace(view("b"), request=RunRequest(SAMPLE, "one", "How?"))
    longer = DecodeConfig(max_new_tokens=7)
    changed = replace(
        view("c"), request=RunRequest(SAMPLE, "one", "Why?", RunOptions(decode=longer))
    )
    both = grouped([view("a"), other, changed, view("d", model="two"), view("a"), view("e")])
    assert [[one.id for one in runs.views] for runs in both] == [["a", "e"], ["d"]]
    assert grouped([]) == []
