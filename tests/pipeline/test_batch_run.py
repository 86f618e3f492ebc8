"""Several samples through the four stages at once: answers, times, cache, failures, cancelling."""

import gc
import json
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import media
from engine.errors import Cancelled, OutOfMemory
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import batch_run, single_run
from engine.pipeline.feature_cache import FeatureCache
from engine.storage.result_rows import NOT_OF_ONE, ResultRow
from engine.types import STAGES, DecodeConfig, RunOptions, RunRequest, RunResult, Sample
from tests.conftest import make_sample
from tests.models.test_equality import entry_of
from tests.pipeline.test_single_run import Impatient

QUESTIONS = ("Why?", "What are the key elements in this scene?", "Is it there, or is it not?")


VIDEO = pytest.param("tiny-video_llava", marks=pytest.mark.loads)


@pytest.fixture(params=["tiny-eventgpt", "tiny-llava", VIDEO])
def adapter(request: pytest.FixtureRequest, tiny_models: Path) -> Adapter:
    return registry.load(registry.entry(request.param))


@pytest.fixture
def one_adapter(tiny_models: Path) -> Adapter:
    return registry.load(registry.entry("tiny-llava"))


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return [make_sample(tmp_path / "samples", seed) for seed in range(3)]


@pytest.fixture
def cache(cache_dir: Path) -> FeatureCache:
    return FeatureCache(cache_dir / "features", 64)


def requests(adapter: Adapter, samples: list[Sample], **options: Any) -> list[RunRequest]:
    """A question of another length for each sample."""
    chosen = {"decode": DecodeConfig(max_new_tokens=12), "cache": "off", **options}
    pairs = zip(samples, QUESTIONS, strict=True)
    return [
        RunRequest(one, adapter.info.name, question, RunOptions(**chosen))
        for one, question in pairs
    ]


def together(adapter: Adapter, samples: list[Sample], **options: Any) -> list[RunResult | str]:
    return batch_run.run(adapter, requests(adapter, samples, **options), None)


def results(found: list[RunResult | str]) -> list[RunResult]:
    assert all(isinstance(one, RunResult) for one in found), found
    return found  # type: ignore[return-value]


@pytest.mark.parametrize(
    "decode",
    [
        DecodeConfig(max_new_tokens=24),
        DecodeConfig(max_new_tokens=7, min_new_tokens=7),
        DecodeConfig(max_new_tokens=24, temperature=0.9, top_p=0.95, seed=11),
    ],
    ids=["greedy", "forced", "sampled"],
)
def test_answers_are_those_of_single_runs(
    adapter: Adapter, samples: list[Sample], monkeypatch: pytest.MonkeyPatch, decode: DecodeConfig
) -> None:
    monkeypatch.setattr(adapter, "eos_ids", tuple(range(60, 72)))  # random weights say these
    asked = requests(adapter, samples, decode=decode)
    found = results(batch_run.run(adapter, asked, None))
    single = [single_run.run(adapter, request, None) for request in asked]
    for mine, alone in zip(found, single, strict=True):
        for name in ("token_ids", "text", "stop", "prompt_tokens"):
            assert getattr(mine.generation, name) == getattr(alone.generation, name), name
        assert mine.shown == alone.shown
        own = [spec for spec in mine.tensors if spec.name != "embeddings"]
        assert own == [spec for spec in alone.tensors if spec.name != "embeddings"]
    assert len({one.generation.prompt_tokens for one in single}) == 3
    alone = [spec.shape for one in single for spec in one.tensors if spec.name == "embeddings"]
    given = {spec.shape for one in found for spec in one.tensors if spec.name == "embeddings"}
    assert given == {(3, *max(alone)[1:])}  # padded to the longest prompt


def test_videos_of_other_lengths_are_encoded_one_by_one(
    tiny_models: Path, samples: list[Sample]
) -> None:
    adapter = registry.load(registry.entry("tiny-video_llava"))
    prepared = [adapter.preprocess(media.load(one, adapter.kind), "Why?") for one in samples[:2]]
    prepared[1] = replace(prepared[1], pixels=prepared[1].pixels[:5])
    with torch.inference_mode():
        first, second = adapter.encode_batch(prepared)
    assert len(first.rows) * 5 == len(second.rows) * 8


def test_times_are_the_batchs_and_a_row_has_none_of_its_own(
    one_adapter: Adapter, samples: list[Sample]
) -> None:
    asked = requests(one_adapter, samples)
    batch_run.run(one_adapter, asked, None)
    found = results(batch_run.run(one_adapter, asked, None))
    batch = found[0].batch
    assert batch is not None and all(one.batch is batch for one in found) and batch.size == 3
    assert batch.tokens == sum(one.new_tokens for one in found)
    stages = [batch.span(name) for name in STAGES]
    assert all(stages) and sum(span.ms for span in stages if span) <= batch.total_ms
    parts = [batch.span(f"decode.{part}") for part in ("prefill", "steps")]
    assert 0 < sum(span.ms for span in parts if span) <= stages[3].ms
    assert batch.tokens_per_s == pytest.approx(1000 * batch.tokens / batch.total_ms)
    row = json.loads(json.dumps(ResultRow.from_result(found[1]).as_dict(), allow_nan=False))
    assert [row[name] for name in NOT_OF_ONE] == [None] * len(NOT_OF_ONE)
    assert set(row["stages"].values()) == {None} and row["batch"] == 3
    assert row["batch_ms"] == batch.total_ms and row["batch_stages"]["decode"]["ms"] > 0
    assert row["new_tokens"] == len(row["token_ids"]) and not row["cold"]
    assert ResultRow.from_result(single_run.run(one_adapter, asked[0], None)).batch == 1


def test_a_broken_sample_leaves_and_its_time_with_it(
    one_adapter: Adapter, samples: list[Sample]
) -> None:
    for path in samples[1].frames:
        path.write_bytes(b"odd")
    found = together(one_adapter, samples)
    assert isinstance(found[1], str) and "f1_" in found[1]
    first, last = found[0], found[2]
    assert isinstance(first, RunResult) and isinstance(last, RunResult)
    assert first.batch is last.batch and first.batch is not None and first.batch.size == 2
    spans = sum(span.ms for span in first.batch.spans if span.name in STAGES)
    assert spans <= first.batch.total_ms


def test_one_that_is_left_over_runs_alone(one_adapter: Adapter, samples: list[Sample]) -> None:
    for sample in samples[:2]:
        for path in sample.frames:
            path.write_bytes(b"odd")
    *broken, last = together(one_adapter, samples)
    assert all(isinstance(one, str) for one in broken)
    assert isinstance(last, RunResult) and last.batch is None and last.ttft_ms


def test_a_fault_of_a_reader_fails_its_own_sample(
    one_adapter: Adapter, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    preprocess = one_adapter.preprocess

    def odd(media: Any, question: str, *more: Any) -> Any:
        if question == QUESTIONS[0]:
            raise ZeroDivisionError("odd picture")
        return preprocess(media, question, *more)

    monkeypatch.setattr(one_adapter, "preprocess", odd)
    found = together(one_adapter, samples)
    assert found[0] == "tiny-llava: ZeroDivisionError: odd picture"
    assert len(results(found[1:])) == 2


def test_without_anything_to_compute_there_is_no_vision_time(
    one_adapter: Adapter, samples: list[Sample], cache: FeatureCache
) -> None:
    asked = requests(one_adapter, samples, cache="use")
    for request in asked:
        single_run.run(one_adapter, request, cache)
    (first, *_) = results(batch_run.run(one_adapter, asked, cache))
    assert first.batch is not None and first.batch.span("vision") is None
    assert ResultRow.from_result(first).batch_spans["vision"] is None
    assert first.batch.cached == 3 and batch_run.NOT_KEPT not in first.notes


def test_a_dtype_that_rounds_gives_a_note(
    tiny_folder: Path, cache_dir: Path, samples: list[Sample]
) -> None:
    adapter = registry.load(entry_of("tiny", "llava", "bfloat16", tiny_folder))
    (first, *_) = results(together(adapter, samples))
    assert any(note.startswith("In bfloat16 an answer of a batch may") for note in first.notes)
    exact = registry.load(entry_of("tiny", "llava", "float32", tiny_folder))
    (first, *_) = results(together(exact, samples))
    assert not first.notes


@pytest.mark.parametrize("cut", [{"tokens": 7}, {"stage": "load"}, {"stage": "vision"}])
def test_a_batch_that_is_cut_is_no_result(
    one_adapter: Adapter, samples: list[Sample], cut: dict[str, Any]
) -> None:
    with pytest.raises(Cancelled):
        batch_run.run(one_adapter, requests(one_adapter, samples), None, Impatient(**cut))


@pytest.mark.loads
def test_out_of_memory_frees_what_the_batch_held(
    one_adapter: Adapter, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[weakref.ref[torch.Tensor]] = []

    def full(prepared: Any) -> Any:
        held.extend(weakref.ref(one.pixels) for one in prepared)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(one_adapter, "encode_batch", full)
    with pytest.raises(OutOfMemory, match="tiny-llava ran out of memory"):
        together(one_adapter, samples)
    gc.collect()
    assert held and not any(one() is not None for one in held)


def test_torchs_generator_is_left_alone(one_adapter: Adapter, samples: list[Sample]) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    config = DecodeConfig(max_new_tokens=4, temperature=1.0)
    together(one_adapter, samples, decode=config)
    assert torch.equal(torch.rand(1), expected)
