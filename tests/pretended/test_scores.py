"""Scores, explanations and the verifier on the pretended device: as on the CPU, up to rounding."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from engine.attribution.explain import explain
from engine.attribution.explained import ExplainOptions, ExplainRequest
from engine.decoding import batched, compiled
from engine.models.adapter import Adapter
from engine.pipeline import batch_run, single_run
from engine.prompts import choice_question
from engine.types import DecodeConfig, RunOptions, RunRequest, RunResult, Sample
from engine.verify import checks, runner
from engine.verify.verdict import VerifyRequest
from tests.pretended.conftest import FAMILIES, GENERIC, Load
from tests.pretended.device import NAME
from tests.pretended.test_answers import forget
from tests.verify.conftest import Notes

CHOICES = ("a car", "a truck", "nothing")
QUESTION = choice_question("What is ahead?", CHOICES)
SHORT = DecodeConfig(max_new_tokens=8, min_new_tokens=4)
SMALL = ExplainOptions(grid=4, side=1, coarse=2, refined=1, batch=3)
CLOSE = 5e-5  # nats


def lettered(sample: Sample) -> Sample:
    return replace(sample, question=QUESTION, choices=CHOICES, choice_form="letters", answer="B")


def letters(adapter: Adapter, samples: list[Sample], **options: Any) -> list[Mapping[str, float]]:
    """Of a single run and, decoupled, of a batch."""
    asked = [
        RunRequest(
            lettered(one),
            adapter.info.name,
            QUESTION,
            RunOptions(decode=SHORT, cache="off", **options),
        )
        for one in samples
    ]
    found: list[Any] = [single_run.run(adapter, asked[0], None)]
    if "batch" not in adapter.refuses and not options:
        found += batch_run.run(adapter, asked, None)
    assert all(isinstance(one, RunResult) and one.letter_logprobs for one in found), found
    return [dict(one.letter_logprobs) for one in found]


@pytest.mark.parametrize("mode", ["decoupled", "hooked"])
@pytest.mark.parametrize("family", [*FAMILIES, *GENERIC])
def test_letter_scores_are_the_cpus(
    family: str, mode: str, load: Load, samples: list[Sample]
) -> None:
    more = {} if mode == "decoupled" else {"mode": mode}
    here, there = (letters(load(family, device), samples, **more) for device in ("cpu", NAME))
    assert len(here) == len(there)
    for mine, theirs in zip(here, there, strict=True):
        assert mine == pytest.approx(theirs, abs=CLOSE)


def explained(adapter: Adapter, sample: Sample) -> tuple[float, list[float], tuple[int, ...]]:
    run = RunOptions(decode=SHORT).ask(sample, adapter.info.name, "What is it?")
    found = explain(adapter, ExplainRequest(run, "a car", (), SMALL))
    return found.logprob, [cell.nats for cell in found.cells], found.token_ids


@pytest.mark.parametrize("family", [*FAMILIES, *GENERIC])
def test_an_explanation_is_the_cpus(family: str, load: Load, samples: list[Sample]) -> None:
    """It rests on forced scores (engine/decoding/batched.py) of many inputs."""
    here, there = (explained(load(family, device), samples[0]) for device in ("cpu", NAME))
    assert there[0] == pytest.approx(here[0], abs=CLOSE) and there[2] == here[2]
    assert there[1] == pytest.approx(here[1], abs=CLOSE) and any(there[1])


def test_control_forced_tokens_that_stay_on_the_cpu_are_refused(
    load: Load, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(batched)(monkeypatch)
    explained(load("llava", "cpu"), samples[0])
    adapter = load("llava", NAME)
    with pytest.raises(RuntimeError, match="same device"):
        explained(adapter, samples[0])


def verified(adapter: Adapter, sample: Sample, backend: Any = "auto") -> dict[str, str]:
    """The sentences of checks that failed, by check; the others only have to be there."""
    request = VerifyRequest(
        (adapter.info.name,), (sample,), max_new_tokens=8, runs=1, backend=backend
    )
    (examined,) = runner.verify(request, Notes())
    assert examined.info is not None and examined.info.device.startswith(NAME)
    equal = [one for one in examined.verdicts if one.check.startswith("equal_")]
    assert equal and all(one.outcome in ("passed", "refused") for one in equal), equal
    return {one.check: one.sentence for one in examined.verdicts if one.outcome == "failed"}


@pytest.fixture
def brief_verifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few timed pairs, a shorter long answer, and the compiled step as it is written."""
    monkeypatch.setattr(checks, "LONG", 24)
    monkeypatch.setattr(runner, "PAIRS", 3)
    monkeypatch.setattr(compiled, "_compile", lambda step, device: step)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")


@pytest.mark.usefixtures("brief_verifier")
@pytest.mark.parametrize("family", [*FAMILIES, "qwen2_5_vl"])
def test_no_check_of_the_verifier_fails(family: str, load: Load, samples: list[Sample]) -> None:
    assert verified(load(family, NAME), samples[0]) == {}


@pytest.mark.usefixtures("brief_verifier")
def test_no_check_of_the_compiled_step_fails(load: Load, samples: list[Sample]) -> None:
    assert verified(load("llava", NAME), samples[0], "compiled") == {}
