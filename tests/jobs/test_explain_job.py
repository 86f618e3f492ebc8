"""An explanation as a job: progress, Cancel, refusals, and that it waits its turn."""

from dataclasses import replace
from typing import Any

import pytest

from engine.attribution.explained import ExplainOptions, ExplainRequest
from engine.errors import BadInput, Cancelled
from engine.jobs.model_work import ExplainJob
from engine.models import registry
from engine.types import DecodeConfig, RunOptions, RunRequest, Sample

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("tiny_models")]
SMALL = ExplainOptions(grid=2, side=1, coarse=0)
SHORT = DecodeConfig(max_new_tokens=6)


def job(sample: Sample, model: str = "tiny-llava", **more: Any) -> ExplainJob:
    run = RunRequest(sample, model, "What is it?", RunOptions(decode=SHORT))
    return ExplainJob(request=ExplainRequest(run, **{"words": "a car", "options": SMALL, **more}))


def test_cancel_between_two_batches_gives_no_result(sample: Sample) -> None:
    one = job(sample, options=replace(SMALL, batch=1))

    def stops(encodings: int, of: int) -> None:
        seen.append((encodings, of))
        one.cancel()

    seen: list[tuple[int, int]] = []
    one.done = stops  # type: ignore[method-assign]
    one.work()
    assert one.state == "cancelled" and isinstance(one.failure, Cancelled)
    assert seen == [(1, 5)] and one.found is None and one.map == b""
    assert one.error == "The explanation was cancelled."


def test_words_that_were_not_said_are_scored_with_a_note(sample: Sample) -> None:
    one = job(sample, words="a purple bicycle")
    one.work()
    assert one.found is not None and not one.found.said and one.found.notes


def test_what_cannot_be_explained_is_one_sentence(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = job(replace(sample, missing={"image": "No picture here."}))
    blind.work()
    assert blind.state == "failed" and blind.error == "No picture here."
    adapter = registry.load(registry.entry("tiny-llava"))
    monkeypatch.setattr(adapter, "refuses", {"decoupled": "Its stages cannot be run apart."})
    whole = job(sample)
    whole.work()
    assert whole.state == "failed" and isinstance(whole.failure, BadInput)
    assert "choose another model to explain" in whole.error and "\n" not in whole.error
