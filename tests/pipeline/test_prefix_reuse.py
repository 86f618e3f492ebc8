"""A second question from a kept prefix: the model's own answer, and never a measured time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import media
from engine.errors import BadInput, OutOfMemory
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import prefix_cache, single_run
from engine.pipeline.feature_cache import FeatureCache
from engine.pipeline.prefix_cache import Prefix, Prefixes
from engine.pipeline.watcher import Watcher
from engine.storage.result_rows import ResultRow
from engine.types import STAGES, DecodeConfig, PrefixUse, RunRequest, RunResult, Sample
from tests.conftest import make_sample
from tests.models.test_equality import entry_of

pytestmark = pytest.mark.slow

FAMILIES = ("eventgpt", "video_llava", "llava")
GREEDY = DecodeConfig(max_new_tokens=24)
SAMPLED = replace(GREEDY, temperature=0.8, top_p=0.9, seed=3)
FIRST, SECOND = "What is in the scene?", "Why does the car ahead of the camera slow down?"


@pytest.fixture
def store() -> Prefixes:
    return Prefixes(64)


@pytest.fixture
def adapter(tiny_models: Path) -> Adapter:
    return registry.load(registry.entry("tiny-video_llava"))


def ask(
    adapter: Adapter, sample: Sample, question: str, kept: Prefixes | None, **options: object
) -> RunResult:
    chosen = {"decode": GREEDY, "prefix": kept is not None, **options}
    request = RunRequest(sample, adapter.info.name, question, **chosen)
    cache = FeatureCache(Path(str(sample.frames[0].parent)) / "features", 64)
    return single_run.run(adapter, request, cache, None, kept)


def ids(result: RunResult) -> tuple[int, ...]:
    return result.generation.token_ids


@pytest.mark.parametrize("source", ["tiny", "demo"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_second_question_has_the_plain_paths_answer(
    source: str, family: str, tiny_folder: Path, sample: Sample, store: Prefixes, cache_dir: Path
) -> None:
    adapter = registry.load(entry_of(source, family, "float32", tiny_folder))
    expected = {
        (question, config): ids(ask(adapter, sample, question, None, decode=config))
        for question in (FIRST, SECOND)
        for config in (GREEDY, SAMPLED)
    }
    assert len(set(expected.values())) > 1
    kept = ask(adapter, sample, FIRST, store)
    assert kept.prefix == PrefixUse("kept", kept.prefix.tokens if kept.prefix else 0)
    assert ids(kept) == expected[FIRST, GREEDY]
    for (question, config), answer in expected.items():
        again = ask(adapter, sample, question, store, decode=config)
        assert again.prefix == PrefixUse("reused", kept.prefix.tokens)
        assert ids(again) == answer, (question, config)
    assert len(store) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_prefix_ends_with_the_last_visual_row(
    family: str, tiny_models: Path, sample: Sample, store: Prefixes
) -> None:
    adapter = registry.load(registry.entry(f"tiny-{family}"))
    prepared = adapter.preprocess(media.load(sample, adapter.kind), FIRST)
    rest = adapter.question_ids(prepared)[0].tolist()
    assert adapter.visual_id not in rest and FIRST in adapter.tokenizer.decode(rest)
    visual = prepared.context_tokens - len(rest)
    features = adapter.encode(prepared)
    whole = adapter.embed(prepared, features)[0]
    assert torch.equal(whole[visual - 1], features.rows[-1].to(whole.dtype))
    assert torch.equal(whole[visual:], adapter.embed_question(prepared)[0])
    kept = ask(adapter, sample, FIRST, store)
    assert kept.prefix == PrefixUse("kept", visual)


def planted(prefix: Prefix) -> Prefix:
    """Values at other places than their keys: turning both alike would change nothing."""
    turned = tuple((keys, values.flip(-2)) for keys, values in prefix.layers)
    return replace(prefix, layers=turned)


@pytest.mark.parametrize("family", FAMILIES)
def test_control_a_wrong_prefix_changes_the_answer(
    family: str,
    tiny_models: Path,
    sample: Sample,
    store: Prefixes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    adapter = registry.load(registry.entry(f"tiny-{family}"))
    expected = ids(ask(adapter, sample, SECOND, None))
    ask(adapter, sample, FIRST, store)
    find = store.find
    monkeypatch.setattr(store, "find", lambda name: planted(find(name)))
    assert ids(ask(adapter, sample, SECOND, store)) != expected


def test_nothing_is_encoded_and_no_pixel_prepared_again(
    adapter: Adapter, sample: Sample, store: Prefixes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(adapter, sample, FIRST, store)
    for name in ("encode", "pixels", "embed"):
        monkeypatch.setattr(adapter, name, lambda *_: pytest.fail("computed again"))
    assert ask(adapter, sample, SECOND, store).new_tokens


def test_what_was_reused_is_never_measured(
    adapter: Adapter, sample: Sample, store: Prefixes
) -> None:
    first = ask(adapter, sample, FIRST, store)
    again = ask(adapter, sample, SECOND, store)
    assert not first.cached and again.cached
    for name in ("preprocess", "vision", "decode", "decode.prefill"):
        span = again.span(name)
        assert span is not None and span.source == "cached"
    for name in ("preprocess", "vision"):
        assert again.span(name).original_ms == first.span(name).ms
    assert again.span("load").source == again.span("decode.steps").source == "measured"


def test_what_another_question_would_have_taken_is_not_invented(
    adapter: Adapter, sample: Sample, store: Prefixes
) -> None:
    first = ask(adapter, sample, "Hi?", store)
    again = ask(adapter, sample, SECOND * 6, store)
    assert again.span("decode").original_ms is None is again.span("decode.prefill").original_ms
    assert again.uncached_total_ms is None is ResultRow.from_result(again).uncached_total_ms
    took = first.span("decode.prefill").ms
    assert any(f"first question's prefill took {took:.1f} ms" in note for note in again.notes)
    assert sum(again.span(name).ms for name in STAGES) <= again.total_ms


def test_control_features_alone_from_the_disk_have_a_cold_total(
    adapter: Adapter, sample: Sample
) -> None:
    computed = ask(adapter, sample, FIRST, None).span("vision")
    read = ask(adapter, sample, SECOND, None)
    saved = computed.ms - read.span("vision").ms
    assert read.cached and read.uncached_total_ms == pytest.approx(read.total_ms + saved)


def test_features_from_the_disk_keep_the_time_they_took(
    adapter: Adapter, sample: Sample, store: Prefixes
) -> None:
    computed = ask(adapter, sample, FIRST, None).span("vision").ms
    read = ask(adapter, sample, FIRST, store)
    assert read.prefix.state == "kept" and read.span("vision").source == "cached"
    assert ask(adapter, sample, SECOND, store).span("vision").original_ms == computed


def test_a_row_says_what_became_of_the_prefix(
    adapter: Adapter, sample: Sample, store: Prefixes
) -> None:
    plain = ResultRow.from_result(ask(adapter, sample, FIRST, None))
    kept, again = (ResultRow.from_result(ask(adapter, sample, FIRST, store)) for _ in range(2))
    assert plain.prefix is None
    assert kept.prefix == PrefixUse("kept", again.prefix.tokens)
    assert again.prefix.state == "reused"
    assert again.context_tokens == plain.context_tokens
    assert again.prefill.source == "cached"


def test_a_cold_runs_prefix_says_so(adapter: Adapter, sample: Sample, store: Prefixes) -> None:
    adapter.runs = 0
    assert ask(adapter, sample, FIRST, store).cold
    assert any("cold" in note for note in ask(adapter, sample, SECOND, store).notes)


CHANGES = ("sample", "dtype", "frames", "code", "processor", "prompt", "pixels")


@pytest.mark.parametrize("change", CHANGES)
def test_another_prefix_is_never_met(
    change: str, adapter: Adapter, store: Prefixes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample, other = make_sample(tmp_path / "a", 0), make_sample(tmp_path / "b", 500)
    ask(adapter, sample, FIRST, store)
    if change == "dtype":
        monkeypatch.setattr(adapter, "info", replace(adapter.info, dtype="bfloat16"))
    elif change == "code":
        monkeypatch.setattr(adapter, "code", "other")
    elif change == "processor":
        monkeypatch.setattr(adapter, "_processor", "other")
    elif change == "prompt":
        monkeypatch.setattr(type(adapter), "prompt", "Look! USER: <video>\n{question} ASSISTANT:")
    options = {"frames": {"frames": "spread"}, "pixels": {"pixels": "fast"}}.get(change, {})
    again = ask(adapter, other if change == "sample" else sample, SECOND, store, **options)
    assert again.prefix.state == "kept" and len(store) == 2


def test_control_the_same_asked_again_is_met(
    adapter: Adapter, store: Prefixes, tmp_path: Path
) -> None:
    """Equal files under other names are the same."""
    ask(adapter, make_sample(tmp_path / "a"), FIRST, store)
    assert ask(adapter, make_sample(tmp_path / "b"), SECOND, store).prefix.state == "reused"


def test_a_run_that_does_not_ask_for_it_neither_keeps_nor_reuses(
    adapter: Adapter, sample: Sample, store: Prefixes
) -> None:
    assert ask(adapter, sample, FIRST, store, prefix=False).prefix is None
    assert len(store) == 0
    ask(adapter, sample, FIRST, store)
    plain = ask(adapter, sample, FIRST, store, prefix=False)
    assert plain.prefix is None and plain.span("decode").source == "measured"


@pytest.mark.parametrize("bad", [{"cache": "off"}, {"cache": "refresh"}, {"mode": "hooked"}])
def test_it_goes_with_a_used_cache_alone(sample: Sample, bad: dict[str, str]) -> None:
    (name,) = bad
    with pytest.raises(BadInput, match=f"prefix needs {name}"):
        RunRequest(sample, "m", "Why?", prefix=True, **bad)


def test_a_prefix_too_large_is_a_note(adapter: Adapter, sample: Sample) -> None:
    small = Prefixes(64)
    small.limit_bytes = 10
    found = ask(adapter, sample, FIRST, small)
    assert found.prefix is None and found.new_tokens
    assert any("STAGESCOPE_PREFIX_LIMIT_MB" in note for note in found.notes)


def test_no_memory_for_a_prefix_costs_no_answer(
    adapter: Adapter, sample: Sample, store: Prefixes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(prefix_cache, "cut", full)
    found = ask(adapter, sample, FIRST, store)
    assert found.prefix is None and found.new_tokens and "No memory" in found.notes[-1]


def test_a_run_without_memory_gives_the_prefixes_up(
    adapter: Adapter, sample: Sample, store: Prefixes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(adapter, sample, FIRST, store)

    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(adapter, "embed_question", full)
    with pytest.raises(OutOfMemory):
        ask(adapter, sample, SECOND, store)
    assert len(store) == 0


def test_a_cancelled_run_leaves_a_whole_prefix(
    adapter: Adapter, sample: Sample, store: Prefixes
) -> None:
    class Impatient(Watcher):
        seen = 0

        def token(self, token: int, ms: float) -> None:
            self.seen += 1

        def cancelled(self) -> bool:
            return self.seen > 0

    expected = ids(ask(adapter, sample, SECOND, None))
    request = RunRequest(sample, adapter.info.name, FIRST, decode=GREEDY, prefix=True)
    stopped = single_run.run(adapter, request, None, Impatient(), store)
    assert stopped.generation.stop == "cancelled" and stopped.new_tokens == 1
    again = ask(adapter, sample, SECOND, store)
    assert again.prefix.state == "reused" and ids(again) == expected
