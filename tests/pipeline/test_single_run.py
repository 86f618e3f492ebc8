"""run(): stages, cache policies, cancelling, failures that cost only a note."""

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import media
from engine.errors import ContextTooLong, MediaError
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import Watcher, single_run
from engine.pipeline.feature_cache import FeatureCache
from engine.types import STAGES, DecodeConfig, RunOptions, RunRequest, RunResult, Sample

SHORT = DecodeConfig(max_new_tokens=6)
Go = Callable[..., RunResult]


@pytest.fixture
def adapter(tiny_models: Path) -> Adapter:
    return registry.load(registry.entry("tiny-eventgpt"))


@pytest.fixture
def cache(cache_dir: Path) -> FeatureCache:
    return FeatureCache(cache_dir / "features", 64)


def ask(
    adapter: Adapter,
    sample: Sample,
    kept: FeatureCache,
    question: str = "Why?",
    watcher: Watcher | None = None,
    **options: Any,
) -> RunResult:
    how = RunOptions(**{"decode": SHORT, **options})
    request = RunRequest(sample, adapter.info.name, question, how)
    return single_run.run(adapter, request, kept, watcher)


@pytest.fixture
def go(adapter: Adapter, sample: Sample, cache: FeatureCache) -> Go:
    return partial(ask, adapter, sample, cache)


def test_stages_follow_one_another_and_cover_the_run(go: Go) -> None:
    result = go()
    stages = [result.span(name) for name in STAGES]
    for before, after in pairwise(stages):
        assert before.start_ms + before.ms <= after.start_ms
    assert stages[-1].start_ms + stages[-1].ms <= result.total_ms
    rest = result.total_ms - sum(stage.ms for stage in stages)
    assert 0 <= result.unaccounted_ms == pytest.approx(rest)
    times = result.generation.token_ms
    assert len(times) == result.new_tokens == 6
    assert all(before < after for before, after in pairwise(times))
    assert stages[3].start_ms < times[0] and times[-1] <= result.total_ms


def test_files_are_read_within_the_load_stage(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    load, moments = media.load, list[float]()

    def recorded(*given: object) -> object:
        moments.append(time.perf_counter())
        loaded = load(*given)
        moments.append(time.perf_counter())
        return loaded

    monkeypatch.setattr(media, "load", recorded)
    result = go()
    stage = result.span("load")
    begun, read = ((moment - result.clocks[0].first_s) * 1000 for moment in moments)
    assert stage.start_ms <= begun < read <= stage.start_ms + stage.ms


def test_prefill_and_steps_make_up_the_decode_stage(go: Go) -> None:
    for mode in ("decoupled", "hooked"):
        result = go(mode=mode)
        parts = [result.span(f"decode.{part}") for part in ("prefill", "steps")]
        assert sum(part.ms for part in parts) <= result.span("decode").ms
        assert parts[0].start_ms + parts[0].ms == pytest.approx(result.ttft_ms)


def test_the_context_counts_visual_rows(go: Go) -> None:
    result = go()
    embeddings = next(spec for spec in result.tensors if spec.name == "embeddings")
    assert result.generation.prompt_tokens == embeddings.shape[1]


def test_a_prompt_beyond_the_context_is_refused_with_figures(go: Go) -> None:
    with pytest.raises(ContextTooLong, match=r"context of 1,024 tokens; .*: shorten the question"):
        go("why " * 900)


def test_a_cache_that_cannot_be_used_costs_a_note(
    adapter: Adapter, sample: Sample, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = ask(adapter, sample, FeatureCache(tmp_path / "file", 64))
    assert result.new_tokens == 6 and not result.cached
    assert any("were computed" in note for note in result.notes)
    assert any("were not kept" in note for note in result.notes)


def test_damaged_features_are_computed_again_and_kept(
    go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = go()
    monkeypatch.setattr("engine.pipeline.feature_cache._unpack", lambda *_: None)
    again = go()
    monkeypatch.undo()
    assert again.span("vision").source == "measured"
    assert any("damaged" in note for note in again.notes)
    third = go()
    assert third.cached
    assert first.generation.token_ids == again.generation.token_ids == third.generation.token_ids


class Impatient(Watcher):
    """Cancels once it has seen this many tokens, or when a stage begins."""

    def __init__(self, tokens: int = 10**6, stage: str = "") -> None:
        self.seen, self.tokens, self.at, self.now = list[float](), tokens, stage, False

    def stage(self, name: str) -> None:
        self.now = name == self.at

    def token(self, token: int, ms: float) -> None:
        self.seen.append(ms)

    def cancelled(self) -> bool:
        return self.now or len(self.seen) >= self.tokens


@pytest.mark.parametrize("mode", ["decoupled", "hooked"])
def test_cancelled_between_two_tokens_keeps_the_tokens_and_their_times(go: Go, mode: str) -> None:
    result = go(watcher=(watcher := Impatient(tokens=3)), mode=mode)
    assert result.generation.stop == "cancelled"
    assert result.generation.token_ms == tuple(watcher.seen)
    assert result.new_tokens in (3, 4)  # generate() asks before it hands the token on


def test_files_that_vanished_are_an_error_with_a_name(go: Go, sample: Sample) -> None:
    for path in sample.event_images:
        path.unlink()
    with pytest.raises(MediaError, match=r"e0_0\.png|event"):
        go()


def test_the_same_seed_leaves_torchs_generator_alone(go: Go) -> None:
    torch.manual_seed(123)
    expected = torch.rand(1)
    torch.manual_seed(123)
    go(decode=DecodeConfig(max_new_tokens=4, temperature=1.0))
    assert torch.equal(torch.rand(1), expected)
