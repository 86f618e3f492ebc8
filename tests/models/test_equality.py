"""Each family's decoupled, cached and hooked answers are the model's own, token for token.

Runs on tiny random checkpoints and, where they lie in the tree, on the demo checkpoints, in
float32 and bfloat16.  The controls show that the comparison can fail.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import media, settings
from engine.decoding import decode
from engine.decoding.generation_rules import AnswerRules
from engine.models import registry
from engine.models.adapter import Adapter
from engine.models.checkpoint import ModelEntry
from engine.pipeline import single_run
from engine.pipeline.feature_cache import FeatureCache
from engine.types import DecodeConfig, Features, Prepared, RunOptions, RunRequest, Sample
from tests.conftest import make_sample

pytestmark = pytest.mark.loads

FAMILIES = ("eventgpt", "video_llava", "llava")
SOURCES = ("tiny", "demo")
DTYPES = ("float32", "bfloat16")
ALL = [(source, family, dtype) for source in SOURCES for dtype in DTYPES for family in FAMILIES]
QUESTION = "What are the key elements in this scene?"
GREEDY = DecodeConfig(max_new_tokens=40)


def entry_of(source: str, family: str, dtype: str, tiny_folder: Path) -> ModelEntry:
    if source == "demo":
        folder = settings.PROJECT / "engine" / "demo" / "checkpoints" / family
    else:
        folder = tiny_folder / family
    kind = registry.FAMILIES[family].kind
    name = f"{source}-{family}-{dtype}"
    return ModelEntry(name, name, family, kind, str(folder), folder, None, dtype, True)


@pytest.fixture(params=ALL, ids="-".join)
def adapter(request: pytest.FixtureRequest, tiny_folder: Path, cache_dir: Path) -> Adapter:
    return registry.load(entry_of(*request.param, tiny_folder))


@pytest.fixture
def prepared(adapter: Adapter, sample: Sample) -> Prepared:
    return adapter.preprocess(media.load(sample, adapter.kind), QUESTION)


def plain(adapter: Adapter, prepared: Prepared, config: DecodeConfig = GREEDY) -> list[int]:
    """New ids of the model's own generate() on pixels."""
    torch.manual_seed(config.seed)
    options = {"generation_config": decode.generation_config(AnswerRules(config, adapter.eos_ids))}
    out = adapter.generate(prepared, **options)[0].tolist()
    prompt = prepared.input_ids[0].tolist()
    returns_prompt = out[: len(prompt)] == prompt
    return out[len(prompt) :] if returns_prompt else out


def own(adapter: Adapter, prepared: Prepared, features: Features) -> list[int]:
    embeds = adapter.embed(prepared, features)
    with torch.inference_mode():
        rules = AnswerRules(GREEDY, adapter.eos_ids)
        ids, _ = decode.generate(adapter.decoder, embeds, rules, lambda _: None, lambda: False)
    return ids


def run(adapter: Adapter, sample: Sample, folder: Path, **options: object) -> single_run.RunResult:
    request = RunRequest(
        sample, adapter.info.name, QUESTION, RunOptions(**{"decode": GREEDY, **options})
    )
    return single_run.run(adapter, request, FeatureCache(folder, 64))


def test_decoupled_cached_and_hooked_equal_generate(
    adapter: Adapter, prepared: Prepared, sample: Sample, cache_dir: Path
) -> None:
    expected = plain(adapter, prepared)
    first = run(adapter, sample, cache_dir)
    second = run(adapter, sample, cache_dir)
    hooked = run(adapter, sample, cache_dir, mode="hooked")
    assert not first.cached and second.cached
    assert list(first.generation.token_ids) == expected
    assert list(second.generation.token_ids) == expected
    assert list(hooked.generation.token_ids) == expected


def test_sampling_with_one_seed_equals_generate(
    adapter: Adapter, prepared: Prepared, sample: Sample, cache_dir: Path
) -> None:
    config = DecodeConfig(max_new_tokens=24, temperature=0.8, top_p=0.9, seed=7)
    expected = plain(adapter, prepared, config)
    assert list(run(adapter, sample, cache_dir, decode=config).generation.token_ids) == expected
    hooked = run(adapter, sample, cache_dir, decode=config, mode="hooked")
    assert list(hooked.generation.token_ids) == expected


def test_control_another_samples_features_change_the_answer(
    adapter: Adapter, prepared: Prepared, tmp_path: Path
) -> None:
    other = make_sample(tmp_path / "other", seed=1000)
    shown = adapter.preprocess(media.load(other, adapter.kind), QUESTION)
    assert shown.digest != prepared.digest
    with torch.inference_mode():
        rows, others = adapter.encode(prepared), adapter.encode(shown)
        ours, theirs = (
            decode.prefill(adapter.decoder, adapter.embed(prepared, r))[0] for r in (rows, others)
        )
    assert not torch.equal(ours, theirs)


def test_control_another_samples_features_change_the_tokens(
    tiny_models: Path, tmp_path: Path
) -> None:
    """Tiny weights are loud, so that here even the tokens differ."""
    for entry in registry.entries():
        adapter = registry.load(entry)
        one, two = (
            adapter.preprocess(media.load(make_sample(tmp_path, s), adapter.kind), QUESTION)
            for s in (0, 1000)
        )
        with torch.inference_mode():
            assert own(adapter, one, adapter.encode(one)) != own(adapter, one, adapter.encode(two))


def test_cached_run_encodes_nothing(
    adapter: Adapter, sample: Sample, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(adapter, sample, cache_dir)
    monkeypatch.setattr(adapter, "encode", lambda _: pytest.fail("encoded again"))
    calls = []
    handles = [
        m.register_forward_hook(lambda *_: calls.append(1)) for m in adapter.vision_modules()
    ]
    again = run(adapter, sample, cache_dir)
    for handle in handles:
        handle.remove()
    assert again.cached and not calls


def test_hooked_mode_leaves_no_hook(adapter: Adapter, sample: Sample, cache_dir: Path) -> None:
    run(adapter, sample, cache_dir, mode="hooked")
    for module in adapter.vision_modules():
        assert not module._forward_hooks and not module._forward_pre_hooks


def test_min_new_tokens_holds_the_end_back(
    adapter: Adapter, prepared: Prepared, sample: Sample, cache_dir: Path
) -> None:
    config = replace(GREEDY, max_new_tokens=12, min_new_tokens=12)
    result = run(adapter, sample, cache_dir, decode=config)
    assert list(result.generation.token_ids) == plain(adapter, prepared, config)
    assert result.new_tokens == 12
