"""A run as a job: what its view shows, cancelling, heartbeat, and failures that stay its own."""

import time
from pathlib import Path

import pytest

from engine.jobs import queue as jobs
from engine.jobs import run_job
from engine.jobs.run_job import GENERATE, RunJob, progress
from engine.models import registry
from engine.models.adapter import Adapter
from engine.types import DecodeConfig, Doing, RunOptions, RunRequest, Sample, Span
from tests.jobs.waiting import wait

LONG = DecodeConfig(max_new_tokens=600, min_new_tokens=600)
SHORT = DecodeConfig(max_new_tokens=5)


@pytest.fixture
def queue(tiny_models: Path) -> jobs.Jobs:
    return jobs.Jobs()


def submit(queue: jobs.Jobs, wanted: RunRequest) -> RunJob:
    job = RunJob(patience_s=run_job.PATIENCE_S, request=wanted)
    queue.submit(job)
    return job


def request(sample: Sample, model: str = "tiny-llava", decode: DecodeConfig = SHORT) -> RunRequest:
    return RunRequest(sample, model, "Why?", RunOptions(decode=decode))


def test_text_grows_while_it_runs_and_cancel_keeps_it(queue: jobs.Jobs, sample: Sample) -> None:
    job = submit(queue, request(sample, decode=LONG))
    view = wait(job, lambda view: view.new_tokens >= 20)
    assert view.state == "running" and view.stage == "decode" and view.text
    assert view.ttft_ms and view.tokens_per_s and view.result is None
    job.cancel()
    view = wait(job)
    assert view.state == "cancelled" and 20 <= view.new_tokens < 600
    assert view.result is not None and view.result.generation.stop == "cancelled"


def test_nobody_looking_cancels(queue: jobs.Jobs, sample: Sample) -> None:
    job = submit(queue, request(sample, decode=LONG))
    wait(job, lambda view: view.new_tokens > 0)
    job.patience_s, end = 0.02, time.monotonic() + 60
    while not job.ended and time.monotonic() < end:
        time.sleep(0.02)  # not through view(), which is the heartbeat
    assert job.state == "cancelled" and job.result is not None
    assert "no page had shown this run for 0.02 s" in job.result.notes[-1]


def test_a_failure_is_the_runs_own(
    queue: jobs.Jobs, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("odd model")

    monkeypatch.setattr(registry.load(registry.entry("tiny-llava")), "encode", explode)
    broken = Sample("broken", "q", missing={"image": "no picture"})
    asked = (
        request(sample, "no-such-model"),
        request(broken),
        request(sample),
        request(sample, "tiny-video_llava"),
    )
    unknown, absent, raised, fine = (wait(job) for job in [submit(queue, one) for one in asked])
    assert {view.state for view in (unknown, absent, raised)} == {"failed"}
    assert "not a known model" in unknown.error and "no picture" in absent.error
    named = registry.label("tiny-llava")
    assert raised.error == f"{named} failed with ZeroDivisionError: odd model"
    assert absent.result is None and fine.state == "done"


@pytest.mark.loads
def test_warm_up_loads_the_demo_models(queue: jobs.Jobs, tiny_models: Path) -> None:
    for entry in registry.entries():
        registry.unload(entry)
    queue.warm_up()
    end = time.monotonic() + 60
    while len([e for e in registry.entries() if e in registry.resident()]) < 3:
        assert time.monotonic() < end
        time.sleep(0.02)
    loaded: Adapter = registry.load(registry.entries()[0])
    assert loaded.use.runs == 0


MARKS: list[tuple[Doing, float]] = [
    ("compile", 0.0),
    ("load", 5.0),
    ("preprocess", 5.010),
    ("vision", 5.030),
    ("decode", 5.070),
]


def spans(marks: list[tuple[Doing, float]], tokens: list[float], now: float) -> dict[str, Span]:
    found = progress(marks, tokens, now, "decoupled")
    ends = [span.start_ms + span.ms for span in found[:-1]]
    assert ends == pytest.approx([span.start_ms for span in found[1:]])  # end to end
    return {span.name: span for span in found}


def test_a_hooked_run_does_not_tell_vision_from_prefill() -> None:
    found = progress(MARKS[:4], [90.0], 5.110, "hooked")
    assert [span.name for span in found[2:]] == [GENERATE, "decode.steps"]
    assert found[2].ms == pytest.approx(60)
