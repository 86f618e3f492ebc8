"""Weights are ordinary tensors, whoever loaded them: the next may use them in any mode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import media
from engine.decoding import decode
from engine.models import registry
from engine.models.adapter import Adapter
from engine.types import Sample
from tests.models.conftest import entry_for, loaded

pytestmark = pytest.mark.usefixtures("cache_dir")


def of_inference_mode(adapter: Adapter) -> list[str]:
    held = [*adapter.model.named_parameters(), *adapter.model.named_buffers()]
    assert held
    return [name for name, tensor in held if tensor.is_inference()]


def scores(adapter: Adapter, sample: Sample) -> torch.Tensor:
    """Of the first token, [1, vocabulary], in whatever mode the caller is."""
    prepared = adapter.preprocess(media.load(sample, adapter.kind), "What is it?")
    embeds = adapter.embed(prepared, adapter.encode(prepared))
    return decode.prefill(adapter.decoder, embeds)[0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])  # float16 on disk: both are cast
@pytest.mark.parametrize("family", ["eventgpt", "video_llava", "llava"])
def test_loaded_in_inference_mode_it_runs_outside_too(
    family: str, dtype: str, tiny_folder: Path, sample: Sample
) -> None:
    entry = replace(entry_for(tiny_folder / family, family), name=f"{family} {dtype}", dtype=dtype)
    with torch.inference_mode():
        adapter = registry.load(entry)
        inside = scores(adapter, sample)
    assert of_inference_mode(adapter) == []
    outside = scores(adapter, sample)
    assert inside.is_inference() and not outside.is_inference()
    assert torch.equal(inside, outside)
    registry.unload(entry)


@torch.inference_mode()
def test_rows_that_a_checkpoint_lacks_are_ordinary_too(release: Path) -> None:
    adapter = loaded(release, "eventgpt")
    assert adapter.model.config.mm_use_im_patch_token  # so <ev_patch> was added
    assert of_inference_mode(adapter) == []


@torch.inference_mode()
def test_loading_leaves_the_mode_as_it_was(tiny_folder: Path, tmp_path: Path) -> None:
    loaded(tiny_folder / "llava", "llava")
    assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
