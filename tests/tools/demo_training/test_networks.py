"""The demo networks are the engine's own classes, and are taught as the engine runs them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tools.demo_training.networks import FAMILIES, Family, new_network, save_network
from tools.demo_training.tokenizer import build_tokenizer
from tools.demo_training.towers import normalise, tokens_of

pytestmark = pytest.mark.loads


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer()


def random_pixels(count: int) -> Any:
    return torch.randn(count, 3, 96, 96, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_taught_rows_are_the_rows_at_run_time(family: Family, tokenizer: Any) -> None:
    network = new_network(family, tokenizer)
    network.model.eval()
    count = {"llava": 1, "video_llava": 8, "eventgpt": 5}[family]
    pixels = random_pixels(count)
    sight = "events" if family == "eventgpt" else "frames"
    ours = network.rows(tokens_of(network.tower, pixels, sight)[None])[0]
    inner = network.model.model
    theirs = {
        "llava": lambda: inner.get_image_features(pixels).pooler_output[0],
        "video_llava": lambda: inner.get_video_features(pixels[None]).pooler_output.flatten(0, 1),
        "eventgpt": lambda: network.model.encode_batch([pixels])[0],
    }[family]()
    assert ours.shape[0] == {"llava": 36, "video_llava": 8 * 37, "eventgpt": 42}[family]
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_folder_is_whole(family: Family, tokenizer: Any, tmp_path: Path) -> None:
    network = new_network(family, tokenizer)
    save_network(network, tokenizer, tmp_path)
    again, report = type(network.model).from_pretrained(
        tmp_path, dtype=torch.float32, output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
    kept = dict(network.model.state_dict())
    for name, value in again.state_dict().items():
        assert torch.equal(value, kept[name]), name
    assert again.generation_config.eos_token_id == tokenizer.eos_token_id


def test_normalised_pixels_are_the_processors(tmp_path: Path, tokenizer: Any) -> None:
    from transformers import CLIPImageProcessorPil

    from tools.demo_training.corpus import SQUARE, _resize

    image = np.random.default_rng(8).integers(0, 255, (120, 160, 3), dtype=np.uint8)
    save_network(new_network("llava", tokenizer), tokenizer, tmp_path)
    processor = CLIPImageProcessorPil.from_pretrained(tmp_path)
    theirs = processor(image, return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(normalise(_resize(image[None], SQUARE)), theirs, atol=1e-5, rtol=0)
