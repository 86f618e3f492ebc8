"""An explanation as a job: progress, Cancel, refusals, and that it waits its turn."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image as Pictures

from engine.attribution import explained as cells
from engine.attribution.explained import ExplainOptions, ExplainRequest
from engine.errors import BadInput, Cancelled
from engine.jobs import explain_job
from engine.jobs.explain_job import ExplainJob
from engine.models import registry, supported
from engine.types import DecodeConfig, RunOptions, RunRequest, Sample

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("tiny_models")]
SMALL = ExplainOptions(grid=2, side=1, coarse=0)
SHORT = DecodeConfig(max_new_tokens=6)


def job(sample: Sample, model: str = "tiny-llava", **more: Any) -> ExplainJob:
    run = RunRequest(sample, model, "What is it?", RunOptions(decode=SHORT))
    return ExplainJob(request=ExplainRequest(run, **{"words": "a car", "options": SMALL, **more}))


@pytest.mark.parametrize(
    ("model", "moments"), [("tiny-llava", 0), ("tiny-video_llava", 8), ("tiny-eventgpt", 5)]
)
def test_the_result_and_its_map_stay_with_the_job(model: str, moments: int, sample: Sample) -> None:
    one = job(sample, model)
    entry = registry.entry(model)
    planned = explain_job.cost_of(entry, SMALL, max(moments, 1), False)
    one.work()
    assert one.state == "done", one.error
    assert one.found is not None and not one.found.pictures
    assert len(one.found.cells) == 4 and len(one.found.moments) == moments
    assert one.progress == (planned.encodings, planned.encodings)
    assert planned.encodings == one.found.cost.encodings
    assert planned.prefills == one.found.cost.prefills
    assert Pictures.open(io.BytesIO(one.map)).format == "PNG"
    seconds = explain_job.cost_of(entry, SMALL, 1, False).seconds
    assert seconds is not None and seconds > 0 and model in cells.measured_ms


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


def test_models_that_refuse_batches_are_counted_one_by_one() -> None:
    """The cost before the model is loaded is that of its adapter."""
    refusals = supported.ANY_FAMILY
    entry = next(item for item in registry.entries() if item.family != refusals)
    batched = explain_job.cost_of(entry, SMALL, 1, False)
    alone = explain_job.cost_of(replace(entry, family=refusals), SMALL, 1, False)
    assert batched.prefills < alone.prefills == alone.encodings == batched.encodings
