"""Weights are ordinary tensors, whoever loaded them: the next may use them in any mode."""

from pathlib import Path

import pytest
import torch

from engine import media
from engine.models.adapter import Adapter
from engine.types import Sample
from tests.models.conftest import loaded

pytestmark = pytest.mark.usefixtures("cache_dir")


def of_inference_mode(adapter: Adapter) -> list[str]:
    held = [*adapter.model.named_parameters(), *adapter.model.named_buffers()]
    assert held
    return [name for name, tensor in held if tensor.is_inference()]


def scores(adapter: Adapter, sample: Sample) -> torch.Tensor:
    """Of the first token, [1, vocabulary], in whatever mode the caller is."""
    prepared = adapter.preprocess(media.load(sample, adapter.kind), "What is it?")
    embeds = adapter.embed(prepared, adapter.encode(prepared))
    return adapter.decoder.prefill(embeds)[0]


@pytest.mark.parametrize("family", ["eventgpt", "video_llava", "llava"])
def test_loaded_in_inference_mode_it_runs_outside_too(
    family: str, tiny_folder: Path, sample: Sample
) -> None:
    with torch.inference_mode():
        adapter = loaded(tiny_folder / family, family)
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        inside = scores(adapter, sample)
    assert of_inference_mode(adapter) == []
    outside = scores(adapter, sample)
    assert inside.is_inference() and not outside.is_inference()
    assert torch.equal(inside, outside)


@torch.inference_mode()
@pytest.mark.loads
def test_rows_that_a_checkpoint_lacks_are_ordinary_too(release: Path) -> None:
    adapter = loaded(release, "eventgpt")
    assert adapter.model.config.mm_use_im_patch_token  # so <ev_patch> was added
    assert of_inference_mode(adapter) == []
