"""Every way of answering gives, on the pretended device, what it gives on the CPU.

A control per way: the module that makes its tensors forgets the device, which the device refuses.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from transformers.generation import StoppingCriteriaList

from engine.decoding import batched, compiled, decode
from engine.models import adapter as adapters
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import Watcher, batch_run, draft_loop, single_run
from engine.pipeline.drafts import DraftRequest
from engine.pipeline.feature_cache import FeatureCache
from engine.types import DecodeConfig, RunOptions, RunRequest, RunResult, Sample
from tests.pretended.conftest import FAMILIES, GENERIC, Load
from tests.pretended.device import NAME

QUESTION = "What is on the road?"
GREEDY = DecodeConfig(max_new_tokens=12, min_new_tokens=8)
SAMPLED = replace(GREEDY, temperature=0.8, top_p=0.9, seed=3)
Answers = tuple[tuple[int, ...], ...]


def ask(adapter: Adapter, sample: Sample, prompt: str = QUESTION, **options: Any) -> RunRequest:
    chosen = {"decode": GREEDY, "cache": "off", **options}
    return RunRequest(sample, adapter.info.name, prompt, RunOptions(**chosen))


def ids(*results: RunResult | str) -> Answers:
    assert all(isinstance(one, RunResult) for one in results), results
    return tuple(one.generation.token_ids for one in results if isinstance(one, RunResult))


def single(**options: Any) -> Callable[[Adapter, list[Sample], Path], Answers]:
    def way(adapter: Adapter, samples: list[Sample], folder: Path) -> Answers:
        found = single_run.run(adapter, ask(adapter, samples[0], **options), None)
        assert found.backend == {"hooked": "generate"}.get(
            found.request.how.mode, _backend(options)
        )
        assert found.environment["device"] == str(adapter.device)
        return ids(found)

    return way


def _backend(options: dict[str, Any]) -> str:
    return "compiled" if options.get("decode", GREEDY).backend == "compiled" else "eager"


def cached(adapter: Adapter, samples: list[Sample], folder: Path) -> Answers:
    cache, request = FeatureCache(folder, 64), ask(adapter, samples[0], cache="use")
    first, second = (single_run.run(adapter, request, cache) for _ in range(2))
    assert second.cached and not first.cached
    return ids(first, second)


def batch(decode: DecodeConfig) -> Callable[[Adapter, list[Sample], Path], Answers]:
    def way(adapter: Adapter, samples: list[Sample], folder: Path) -> Answers:
        questions = ("Why?", QUESTION, "Is it there, or is it not?")
        pairs = zip(samples, questions, strict=True)
        asked = [ask(adapter, sample, question, decode=decode) for sample, question in pairs]
        return ids(*batch_run.run(adapter, asked, None))

    return way


def drafted(adapter: Adapter, samples: list[Sample], folder: Path) -> Answers:
    """Drafts by prompt lookup, and by the target itself."""
    name, answers = adapter.info.name, []
    request = DraftRequest((samples[0],), name, "lookup", prompt=QUESTION, decode=GREEDY, runs=1)
    for draft in (None, adapter):
        trial = draft_loop.try_sample(samples[0], request, adapter, draft, Watcher())
        assert trial.difference is None
        answers.append(trial.ids)
    return tuple(answers)


WAYS: dict[str, Callable[[Adapter, list[Sample], Path], Answers]] = {
    "decoupled": single(),
    "sampled": single(decode=SAMPLED),
    "hooked": single(mode="hooked"),
    "hooked sampled": single(mode="hooked", decode=SAMPLED),
    "cached": cached,
    "batch": batch(GREEDY),
    "batch sampled": batch(SAMPLED),
    "compiled": single(decode=replace(GREEDY, backend="compiled")),
    "compiled sampled": single(decode=replace(SAMPLED, backend="compiled")),
    "drafted": drafted,
}
_LLAMA = ("batch", "batch sampled", "compiled", "compiled sampled", "drafted")
REFUSED = {"qwen2_5_vl": _LLAMA, "llava_next": _LLAMA}
CASES = [
    (family, way)
    for family in (*FAMILIES, *GENERIC)
    for way in WAYS
    if way not in REFUSED.get(family, ())
]


@pytest.fixture(autouse=True)
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled step runs as it is written; torch's compiler does not know the device."""
    monkeypatch.setattr(compiled, "_compile", lambda step, device: step)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")


@pytest.mark.parametrize(("family", "way"), CASES)
def test_answers_are_the_cpus(
    family: str, way: str, load: Load, samples: list[Sample], tmp_path: Path
) -> None:
    here, there = (
        WAYS[way](load(family, device), samples, tmp_path / device) for device in ("cpu", NAME)
    )
    assert here == there and all(len(one) >= 8 for one in there)


class Forgetful:
    """The module torch, whose functions make every tensor on the CPU."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(torch, name)
        if name not in ("tensor", "zeros", "ones", "full", "arange", "empty"):
            return found
        return lambda *args, device=None, **options: found(*args, **options)


def forget(*modules: ModuleType) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        for module in modules:
            patch.setattr(module, "torch", Forgetful())

    return plant


def features_stay_on_the_cpu(patch: pytest.MonkeyPatch) -> None:
    read = FeatureCache.read

    def stays(self: FeatureCache, spec: Any) -> Any:
        found = read(self, spec)
        if found is not None:
            object.__setattr__(found.features, "changed", lambda change: found.features)
        return found

    patch.setattr(FeatureCache, "read", stays)


def stops_on_the_cpu(patch: pytest.MonkeyPatch) -> None:
    def ended(input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return torch.zeros(len(input_ids), dtype=torch.bool)

    patch.setattr(decode, "ended_by", lambda _cancelled: StoppingCriteriaList([ended]))


FAULTS = {
    "decoupled": forget(decode),
    "sampled": forget(adapters),  # the prompt's ids
    "hooked": stops_on_the_cpu,
    "cached": features_stay_on_the_cpu,
    "batch": forget(batched),
    "drafted": forget(draft_loop),
}


@pytest.mark.parametrize("way", FAULTS)
def test_control_a_tensor_that_stays_on_the_cpu_is_refused(
    way: str, load: Load, samples: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAULTS[way](monkeypatch)
    WAYS[way](load("llava", "cpu"), samples, tmp_path / "cpu")  # where it changes nothing
    adapter = load("llava", NAME)
    with pytest.raises(RuntimeError, match="same device"):
        WAYS[way](adapter, samples, tmp_path / NAME)


def test_control_a_compiled_step_with_memory_on_the_cpu_is_not_used(
    load: Load, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(compiled)(monkeypatch)
    request = ask(load("llava", NAME), samples[0], decode=replace(GREEDY, backend="compiled"))
    found = single_run.run(registry.load(registry.entry(request.model)), request, None)
    assert found.backend == "eager" and "same device" in found.notes[-1]
