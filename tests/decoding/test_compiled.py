"""The compiled step: equal to the eager one, in buckets, falling back with one note.

Most of it holds whatever is made of the step, and is tried with the step as it is written.  What
torch.compile traces is counted by a compiler that generates nothing; one test runs a real one.
"""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import torch
from msgspec import structs

from engine import media, settings
from engine.decoding import compiled, llama
from engine.decoding.compiled import CompiledStep
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.types import Backend, DecodeConfig, RunOptions, RunRequest, RunResult, Sample
from engine.verify import certificates
from engine.verify import runner as verification
from engine.verify.verdict import ModelVerdicts, VerifyRequest
from tests.conftest import slow_unless
from tests.models.test_equality import FAMILIES
from tests.ui.verify import made
from tests.verify.conftest import Notes

QUESTION = "What is on the road?"
COMPILED = DecodeConfig(24, 24, backend="compiled")
EAGER = replace(COMPILED, backend="eager")
SAMPLED = {"temperature": 0.8, "top_p": 0.9, "seed": 3}
COMPILE = compiled._compile


@pytest.fixture(autouse=True)
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step runs as it is written, and no setting outlives the test."""
    monkeypatch.setattr(compiled, "_compile", lambda step, device: step)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")


@pytest.fixture
def adapter(tiny_models: Path) -> Adapter:
    return load("tiny-llava")


def load(name: str) -> Adapter:
    entry = registry.entry(name)
    registry.unload(entry)
    return registry.load(entry)


def go(adapter: Adapter, sample: Sample, config: DecodeConfig, **more: Any) -> RunResult:
    prompt = more.pop("prompt", QUESTION)
    request = RunRequest(
        sample, adapter.info.name, prompt, RunOptions(decode=config, cache="off", **more)
    )
    return single_run.run(adapter, request, None)


class Compilations:
    """Counts graphs, and runs them as they are."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.number += 1
        return graph.forward


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Compilations:
    found = Compilations()
    monkeypatch.setattr(compiled, "_compile", COMPILE)
    monkeypatch.setattr(compiled, "COMPILER", found)
    return found


@pytest.mark.loads
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "more",
    [pytest.param({}, id="greedy"), pytest.param(SAMPLED, id="sampled", marks=pytest.mark.loads)],
)
def test_tokens_are_the_eager_ones(
    tiny_models: Path, sample: Sample, family: str, more: dict[str, Any]
) -> None:
    adapter = load(f"tiny-{family}")
    fast = go(adapter, sample, replace(COMPILED, **more))
    eager = go(adapter, sample, replace(EAGER, **more))
    plain = go(adapter, sample, replace(COMPILED, **more), mode="hooked")
    assert (fast.backend, eager.backend, plain.backend) == ("compiled", "eager", "generate")
    assert fast.generation.token_ids == eager.generation.token_ids == plain.generation.token_ids


@torch.inference_mode()
def test_scores_are_the_eager_ones_up_to_rounding_and_a_wrong_position_is_not(
    adapter: Adapter, sample: Sample
) -> None:
    shown = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    embeds = adapter.embed(shown, adapter.encode(shown))
    step = CompiledStep(adapter.decoder)
    assert step.ready(embeds.shape[1] + 24) > 0

    def apart(off: int) -> float:
        _, kept = adapter.decoder.prefill(embeds)
        step.start(kept, adapter.rules_for(shown, replace(COMPILED, min_new_tokens=0)))
        assert step._room is not None
        step._room.position.add_(off)
        worst = 0.0
        for token in (7, 9, 11, 13):
            mine, best = step(token)
            theirs = adapter.decoder.step(torch.tensor([[token]]), kept)
            worst = max(worst, float((mine - theirs).abs().max()))
            assert off or int(best) == int(theirs.argmax())
        return worst

    assert apart(0) < 1e-4 < 1e-2 < apart(1)


@pytest.mark.loads
def test_on_the_cpu_one_graph_serves_every_bucket(
    adapter: Adapter, sample: Sample, compilations: Compilations
) -> None:
    for tokens in (24, 100, 200, 24, 300):
        config = DecodeConfig(tokens, tokens, backend="compiled")
        assert go(adapter, sample, config).generation.token_ids == (
            go(adapter, sample, replace(config, backend="eager")).generation.token_ids
        )
    assert compilations.number == 1
    assert adapter.use.compiled is not None and len(adapter.use.compiled._rooms) == compiled.BUCKETS


def test_auto_is_eager_on_the_cpu_and_compiled_on_cuda() -> None:
    def wanted(device: str) -> list[bool]:
        return [
            compiled.wanted(DecodeConfig(backend=b), torch.device(device))
            for b in get_args(Backend)
        ]

    assert get_args(Backend) == ("auto", "eager", "compiled")
    assert wanted("cpu") == [False, False, True] and wanted("cuda") == [True, False, True]


def test_compiling_is_no_part_of_the_run(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the notes: what was compiled ahead is said to be so, and no span holds it."""
    found = go(adapter, sample, COMPILED)
    assert "before this run's clock started" in found.notes[-1]
    assert found.span("compile") is None
    adapter.use.compiled = None
    monkeypatch.setattr(adapter, "compile_ahead", lambda request: 0.0)  # nothing was foreseen
    found = go(adapter, sample, COMPILED)
    late, stage = found.span("compile"), found.span("decode")
    assert late is not None and stage is not None and "between stages 3 and 4" in found.notes[-1]
    assert late.start_ms + late.ms <= stage.start_ms + 0.001


def broken(*_: Any) -> Any:
    raise OSError("no C++ compiler is here\nand more of it")


@pytest.mark.loads
def test_a_model_that_is_no_plain_llama_decodes_eagerly(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama, "read", lambda model: None)
    found = go(adapter, sample, COMPILED)
    assert found.backend == "eager" and "not a plain LLaMA" in found.notes[0]


@pytest.mark.loads
def test_a_folder_that_others_may_write_is_not_used(adapter: Adapter, sample: Sample) -> None:
    folder = settings.load().cache_dir / "compiled"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    found = go(adapter, sample, COMPILED)
    assert found.backend == "eager" and "other users may write" in found.notes[0]
    folder.chmod(0o700)
    adapter.use.compiled = None
    assert go(adapter, sample, COMPILED).backend == "compiled"


@pytest.mark.loads
def test_the_graph_goes_with_the_model(adapter: Adapter, sample: Sample) -> None:
    go(adapter, sample, COMPILED)
    assert adapter.use.compiled is not None
    again = load("tiny-llava")
    assert again.use.compiled is None and go(again, sample, COMPILED).backend == "compiled"


@pytest.mark.loads
@pytest.mark.parametrize("family", slow_unless(FAMILIES[:1], FAMILIES))
def test_the_verifier_sees_the_compiled_steps_and_their_certificate_is_their_own(
    tiny_models: Path, sample: Sample, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "PAIRS", 5)
    name = f"tiny-{family}"
    adapter = load(name)
    request = VerifyRequest((name,), (sample,), max_new_tokens=8, runs=1, backend="compiled")
    (examined,) = verification.verify(request, Notes())
    found = {verdict.check: verdict for verdict in examined.verdicts}
    assert examined.backend == found["answer"].evidence["backend"] == "compiled"
    assert not [verdict.sentence for verdict in examined.verdicts if verdict.outcome == "failed"]
    equal = ("equal_decoupled", "sampled", "long")
    for check in (*equal, "greedy", "counted", "left_as_found"):
        assert found[check].passed, found[check].sentence
    fast, eager = go(adapter, sample, COMPILED), go(adapter, sample, EAGER)
    certify(fast, "compiled")
    assert made.covering_hash(fast) and made.covering_hash(eager) is None
    assert made.covering_hash(go(adapter, sample, EAGER, mode="hooked"))


def certify(result: RunResult, backend: Any) -> None:
    """A certificate that covers the result as `backend` ran it."""
    model, tokens = result.model, result.new_tokens
    found = made.verdicts(model.name)
    reached = {"new_tokens": tokens, "positions": 4096, "pictures": _pictures(result)}
    found = [structs.replace(one, evidence=reached | {"rules": ["arange"]}) for one in found]
    known = (model.name, model, result.environment, tuple(found))
    request = VerifyRequest((model.name,), (result.request.sample,), backend=backend)
    certificates.store(
        certificates.make(request, [ModelVerdicts(*known, backend=backend)], "/data")
    )
    assert certificates.stored_certificates()


def _pictures(result: RunResult) -> int:
    return next(one.shape[0] for one in result.tensors if one.name == "images")


@pytest.mark.loads
def test_a_compiled_step_that_errs_fails_the_verification(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: rotations of the next position; a short answer's tokens may be equal."""
    monkeypatch.setattr(verification, "PAIRS", 5)
    rotate = compiled.rotate
    monkeypatch.setattr(compiled, "rotate", lambda heads, cos, sin: rotate(heads, cos, sin * 1.01))
    request = VerifyRequest(
        ("tiny-llava",), (sample,), max_new_tokens=8, runs=1, backend="compiled"
    )
    (examined,) = verification.verify(request, Notes())
    outcomes = {verdict.check: verdict.outcome for verdict in examined.verdicts}
    assert outcomes["equal_decoupled"] == "failed" and outcomes["equal_hooked"] == "passed"


def test_lengths_on_cuda_come_in_larger_buckets(adapter: Adapter) -> None:
    step = CompiledStep(adapter.decoder)
    assert [step._bucket(n) for n in (1, 64, 65, 300)] == [64, 64, 128, 320]
    vars(step._decoder)["device"] = torch.device("cuda")
    assert [step._bucket(n) for n in (1, 256, 257, 2100)] == [256, 256, 512, 2304]


class Cuda:
    """Stands in for torch.cuda: which device and stream are current, and what is captured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.current: list[Any] = [torch.device("cuda:0")]
        self.streams: list[Any] = []
        self.capturing: list[Any] = []
        for name in ("device", "stream", "current_stream", "graph"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        monkeypatch.setattr(torch.cuda, "Stream", self.current_stream)
        graph = SimpleNamespace(replay=lambda: None)
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: graph)

    @contextmanager
    def device(self, device: torch.device) -> Iterator[None]:
        self.current.append(device)
        yield
        self.current.pop()

    def current_stream(self, device: torch.device) -> Any:
        return SimpleNamespace(device=device, wait_stream=lambda other: None)

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        self.streams.append(stream)
        yield
        self.streams.pop()

    @contextmanager
    def graph(self, graph: Any, stream: Any = None, capture_error_mode: str = "") -> Iterator[None]:
        """The default stream belongs to the first device, as torch's does."""
        self.capturing.append(stream or self.current_stream(torch.device("cuda:0")))
        yield
        self.capturing.pop()


def test_a_step_is_captured_on_its_own_device_and_within_its_bucket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kernels that are launched on another stream would not be part of the graph."""
    cuda, device = Cuda(monkeypatch), torch.device("cuda:1")
    seen = []

    def call() -> tuple[torch.Tensor, torch.Tensor]:
        (stream,) = cuda.capturing or cuda.streams
        seen.append((cuda.current[-1], stream.device, bool(cuda.capturing)))
        return torch.zeros(1, len(seen)), torch.zeros(1)

    replay = compiled._captured(call, device)
    warm = compiled._WARM
    assert seen == [(device, device, False)] * warm + [(device, device, True)]
    assert replay()[0].shape == (1, warm + 1)  # the captured call's memory
    assert warm + 1 < compiled.BUCKET  # the step before them was the first
    assert cuda.current == [torch.device("cuda:0")]


def test_a_bucket_keeps_the_step_whose_tensors_its_graph_reads(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CUDA graph has addresses only: if another bucket's step replaced this one, it would read
    what is written there next."""
    zeros = torch.zeros

    def step(*_: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return zeros(1, 1), zeros(1)

    graph = lambda: (zeros(1, 1), zeros(1))  # noqa: E731 - it holds nothing
    monkeypatch.setattr(compiled, "_captured", lambda call, device: graph)
    monkeypatch.setattr(torch, "zeros", lambda *shape, device, **more: zeros(*shape, **more))
    llama = adapter.decoder.llama
    assert llama is not None
    bucket, alive = compiled._furnish(step, llama, 64, torch.device("cuda")), weakref.ref(step)
    del step
    gc.collect()
    assert alive() is not None
    del bucket
    gc.collect()
    assert alive() is None


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, as it imports its compiler
def test_a_real_compiler_agrees_and_leaves_its_work_on_disk(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_compile", COMPILE)
    found = go(adapter, sample, COMPILED)
    if found.backend == "eager" and "compiler" in " ".join(found.notes).lower():
        pytest.skip(f"this machine has no C++ compiler ({found.notes[-1]})")
    assert found.backend == "compiled", found.notes
    assert found.generation.token_ids == go(adapter, sample, EAGER).generation.token_ids
    folder = settings.load().cache_dir / "compiled"
    assert folder.stat().st_mode & 0o777 == 0o700 and any(folder.rglob("*.so"))
