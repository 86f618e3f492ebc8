"""All models and samples: a failure stays its own, a cancelled one stops, nothing is polluted."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import media, settings, timing
from engine.errors import BadInput, Cancelled, ModelUnavailable
from engine.models.llava import LlavaAdapter
from engine.types import Sample
from engine.verify import runner
from engine.verify.verdict import VerifyRequest
from tests.conftest import make_sample
from tests.verify.conftest import Notes, only


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch: pytest.MonkeyPatch, tiny_models: Path) -> None:
    monkeypatch.setattr(runner, "PAIRS", 5)


def request(*samples: Sample, models: tuple[str, ...] = ("tiny-llava",)) -> VerifyRequest:
    return VerifyRequest(models, samples, max_new_tokens=8, runs=1)


@pytest.mark.loads
def test_what_cannot_run_is_a_row_and_the_others_go_on(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "equal_hooked", "probe")
    blind = replace(make_sample(tmp_path, 7), missing={"image": "It has no picture: add one."})
    blind = replace(blind, frames=(), images=())
    notes = Notes()
    wanted = request(blind, sample, models=("tiny-odd", "tiny-llava"))
    odd, llava = runner.verify(wanted, notes)
    assert "not a known model" in odd.verdicts[0].sentence
    first, *others = llava.verdicts
    assert (first.check, first.outcome, first.sample) == ("answer", "skipped", blind.id)
    assert first.sentence == "It has no picture: add one."
    assert {v.sample for v in others} == {sample.id, ""} and others[0].passed
    assert [v for one in (odd, llava) for v in one.verdicts] == notes.verdicts
    assert notes.steps.count("gave way") == 2


@pytest.mark.loads
def test_what_a_verification_plants_is_seen_by_nobody_else(sample: Sample) -> None:
    """A page loads the same sample in another thread, over 50 times, while checks show noise; the
    user's cache and random generator stay as they are."""
    own, clock = media.load(sample, "image").digest, timing.synchronizer
    seen: list[tuple[str, object]] = []
    before, done = torch.get_rng_state(), threading.Event()

    def visit() -> None:
        while not done.wait(0.01) or len(seen) < 50:
            seen.append((media.load(sample, "image").digest, timing.synchronizer))

    visitor = threading.Thread(target=visit)
    visitor.start()
    try:
        runner.verify(request(sample), Notes())
    finally:
        done.set()
        visitor.join()
    assert set(seen) == {(own, clock)} and len(seen) >= 50
    assert torch.equal(torch.get_rng_state(), before)
    assert not (settings.load().cache_dir / "features").exists()


@pytest.mark.loads
def test_a_question_with_choices_is_verified_as_any_other(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "counted")
    wanted = request(replace(sample, question="Which?", choices=("one", "two")))
    (found,) = runner.verify(replace(wanted, prompt="Which?"), Notes())
    counted = [v for v in found.verdicts if v.check == "counted"]
    assert counted and all(v.passed for v in counted)


@pytest.mark.loads
@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ZeroDivisionError("odd"), "ZeroDivisionError while answering the features way: odd"),
        (BadInput("odd: choose another."), "odd: choose another."),  # not after the first answer
    ],
)
def test_a_model_that_raises_is_a_row_that_says_where(
    error: Exception, sentence: str, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(LlavaAdapter, "generate_from_features", broken)
    only(monkeypatch, "equal_hooked", "equal_features")
    models = ("tiny-llava", "tiny-eventgpt")
    llava, other = runner.verify(request(sample, models=models), Notes())
    assert [(one.outcome, one.sentence) for one in llava.verdicts] == [("failed", sentence)]
    assert {one.outcome for one in other.verdicts} == {"passed"}


@pytest.mark.loads
def test_what_a_models_checks_cannot_load_is_its_row(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the local weights of a server are gone."""
    only(monkeypatch, "equal_hooked")
    whole = runner._ModelChecks.verdicts

    def gone(checks: Any) -> Any:
        if checks.info.name == "tiny-llava":
            raise ModelUnavailable("Its weights are gone.")
        return whole(checks)

    monkeypatch.setattr(runner._ModelChecks, "verdicts", gone)
    models = ("tiny-llava", "tiny-eventgpt")
    llava, other = runner.verify(request(sample, models=models), Notes())
    assert [one.sentence for one in llava.verdicts] == ["Its weights are gone."]
    assert {one.outcome for one in other.verdicts} == {"passed"}


@pytest.mark.loads
def test_a_sample_beside_a_broken_one_is_still_verified(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "equal_batch", "sight", "left_as_found")
    broken = make_sample(tmp_path, 7)
    for path in broken.frames:
        path.write_bytes(b"no picture")
    (llava,) = runner.verify(request(sample, broken), Notes())
    good = {v.check: v for v in llava.verdicts if v.sample == sample.id}
    assert good["left_as_found"].passed
    assert next(v for v in llava.verdicts if v.check == "sight").passed  # with its own pixels
    (bad,) = [v for v in llava.verdicts if v.sample == broken.id]
    assert bad.outcome == "skipped"


def test_cancel_stops_between_two_steps(sample: Sample) -> None:
    notes = Notes(stop_at="timing the stages")
    with pytest.raises(Cancelled):
        runner.verify(request(sample), notes)
    assert notes.steps[-1].startswith("timing the stages")
    assert {verdict.check for verdict in notes.verdicts} >= {"equal_hooked", "encoded_once"}


@pytest.mark.slow
def test_bfloat16_is_exact_or_tied(
    sample: Sample, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (tiny_folder / "models.toml").read_text(encoding="utf-8")
    other = tiny_folder / "bfloat16.toml"
    other.write_text(text.replace("float32", "bfloat16"), encoding="utf-8")
    monkeypatch.setenv("STAGESCOPE_MODELS", str(other))
    models = ("tiny-eventgpt", "tiny-video_llava", "tiny-llava")
    for examined in runner.verify(request(sample, models=models), Notes()):
        compared = [v for v in examined.verdicts if v.check.startswith("equal_")]
        equal = [v for v in compared if v.check != "equal_batch"]  # may stay open in this dtype
        assert len(equal) == 3 and all(v.passed for v in equal), equal
        assert examined.info is not None and examined.info.dtype == "bfloat16"
