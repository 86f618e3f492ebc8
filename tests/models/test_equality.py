"""Each family's decoupled, cached and hooked answers are the model's own, token for token.

Runs on tiny random checkpoints and, where they lie in the tree, on the demo checkpoints, in
float32 and bfloat16.  The controls show that the comparison can fail.
"""

from __future__ import annotations

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
from engine.types import DecodeConfig, Mode, Prepared, RunOptions, RunRequest, Sample
from tests.conftest import make_sample

pytestmark = pytest.mark.loads

FAMILIES = ("eventgpt", "video_llava", "llava")
SOURCES = ("tiny", "demo")
DTYPES = ("float32", "bfloat16")
ALL = [
    pytest.param(
        (source, family, dtype),
        marks=pytest.mark.slow if (source, dtype) == ("demo", "bfloat16") else (),
        id=f"{source}-{family}-{dtype}",
    )
    for source in SOURCES
    for dtype in DTYPES
    for family in FAMILIES
]
QUESTION = "What are the key elements in this scene?"
CONFIGS = {
    "greedy": DecodeConfig(max_new_tokens=40),
    "sampled": DecodeConfig(max_new_tokens=24, temperature=0.8, top_p=0.9, seed=7),
    "least length": DecodeConfig(max_new_tokens=12, min_new_tokens=12),
}


def entry_of(source: str, family: str, dtype: str, tiny_folder: Path) -> ModelEntry:
    if source == "demo":
        folder = settings.PROJECT / "engine" / "demo" / "checkpoints" / family
    else:
        folder = tiny_folder / family
    kind = registry.FAMILIES[family].kind
    name = f"{source}-{family}-{dtype}"
    return ModelEntry(name, name, family, kind, str(folder), folder, None, dtype, True)


@pytest.fixture(params=ALL)
def adapter(request: pytest.FixtureRequest, tiny_folder: Path, cache_dir: Path) -> Adapter:
    return registry.load(entry_of(*request.param, tiny_folder))


@pytest.fixture
def prepared(adapter: Adapter, sample: Sample) -> Prepared:
    return adapter.preprocess(media.load(sample, adapter.kind), QUESTION)


def plain(adapter: Adapter, prepared: Prepared, config: DecodeConfig) -> list[int]:
    """New ids of the model's own generate() on pixels."""
    torch.manual_seed(config.seed)
    options = {"generation_config": decode.generation_config(AnswerRules(config, adapter.eos_ids))}
    out = adapter.generate(prepared, **options)[0].tolist()
    prompt = prepared.input_ids[0].tolist()
    returns_prompt = out[: len(prompt)] == prompt
    return out[len(prompt) :] if returns_prompt else out


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_decoupled_cached_and_hooked_equal_generate(
    config: DecodeConfig, adapter: Adapter, prepared: Prepared, sample: Sample, cache_dir: Path
) -> None:
    expected, cache = plain(adapter, prepared, config), FeatureCache(cache_dir, 64)
    calls: list[int] = []
    handles = [
        m.register_forward_hook(lambda *_: calls.append(1)) for m in adapter.vision_modules()
    ]
    modes: list[tuple[Mode, bool]] = [("decoupled", False), ("decoupled", True), ("hooked", False)]
    for mode, cached in modes:
        calls.clear()
        options = RunOptions(decode=config, mode=mode)
        request = RunRequest(sample, adapter.info.name, QUESTION, options)
        result = single_run.run(adapter, request, cache)
        assert list(result.generation.token_ids) == expected, mode
        assert result.cached is cached is not bool(calls)
        assert result.new_tokens >= config.min_new_tokens
    for handle in handles:
        handle.remove()
    for module in adapter.vision_modules():
        assert not module._forward_hooks and not module._forward_pre_hooks


def test_control_features_of_another_sample_change_the_logits(
    adapter: Adapter, prepared: Prepared, tmp_path: Path
) -> None:
    other = make_sample(tmp_path / "other", seed=1000)
    shown = adapter.preprocess(media.load(other, adapter.kind), QUESTION)
    with torch.inference_mode():
        ours, theirs = (
            decode.prefill(adapter.decoder, adapter.embed(prepared, adapter.encode(one)))[0]
            for one in (prepared, shown)
        )
    assert not torch.equal(ours, theirs)


@pytest.mark.parametrize("family", ["llava", "video_llava"])
def test_rows_come_from_the_layer_that_the_configuration_names(
    family: str, sample: Sample, tiny_folder: Path
) -> None:
    """In transformers' own code, so that no way of answering differs if it reads another layer."""
    adapter = registry.load(entry_of("tiny", family, "float32", tiny_folder))
    shown = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    model = adapter.model.model
    assert model.config.vision_feature_layer == -2
    with torch.inference_mode():
        (rows,) = adapter.encode(shown).tensors.values()
        pixels = shown.pixels.reshape(-1, *shown.pixels.shape[-3:])
        layers = adapter.vision_modules()[0](pixels, output_hidden_states=True).hidden_states
        own, other = (
            model.multi_modal_projector(layers[at][:, int(family == "llava") :]) for at in (-2, -1)
        )
    rows = rows.reshape(own.shape)
    assert torch.allclose(rows, own, atol=1e-5) and not torch.allclose(rows, other, atol=1e-2)
