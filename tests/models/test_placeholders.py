"""LLaVA and Video-LLaVA: prompts, placeholder counts and pixels against transformers' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import LlavaProcessor

from engine.errors import BadInput
from engine.models import registry
from engine.types import Media
from tests import tiny


def pictures(count: int) -> Media:
    rng = np.random.default_rng(count)
    images = tuple(rng.integers(0, 255, (60, 80, 3), dtype=np.uint8) for _ in range(count))
    return Media("image", images, f"digest {count}", "test")


def test_llava_inputs_equal_its_processors(tiny_models: Path) -> None:
    adapter = registry.load(registry.entry("tiny-llava"))
    processor = LlavaProcessor(
        image_processor=adapter.image_processor,
        tokenizer=adapter.tokenizer,
        patch_size=tiny.PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    shown = pictures(1)
    theirs = processor(
        images=[Image.fromarray(shown.images[0])],
        text="USER: <image>\nWhat is it? ASSISTANT:",
        return_tensors="pt",
    )
    ours = adapter.preprocess(shown, "What is it?")
    assert ours.input_ids.tolist() == theirs["input_ids"].tolist()
    torch.testing.assert_close(ours.pixels, theirs["pixel_values"])
    assert ours.context_tokens == ours.input_ids.shape[1]


@pytest.mark.parametrize("frames", [1, 8])
def test_video_prompt_has_one_placeholder_per_row(tiny_models: Path, frames: int) -> None:
    adapter = registry.load(registry.entry("tiny-video_llava"))
    prepared = adapter.preprocess(pictures(frames), "What is it?")
    rows = adapter.encode(prepared).rows
    per_frame = (tiny.SIZE // tiny.PATCH) ** 2 + 1
    ids = prepared.input_ids[0].tolist()
    assert len(rows) == frames * per_frame == ids.count(adapter.visual_id)
    bos = adapter.tokenizer.bos_token_id
    assert ids.count(bos) == 1 and ids[0] == bos


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (2000, 3)])
def test_pictures_of_odd_shapes_keep_their_channels(
    tiny_models: Path, shape: tuple[int, int]
) -> None:
    red = np.zeros((*shape, 3), dtype=np.uint8)
    red[..., 0] = 255
    for name in ("tiny-llava", "tiny-video_llava"):
        pixels = registry.load(registry.entry(name)).pixels([red])
        assert pixels.shape == (1, 3, tiny.SIZE, tiny.SIZE)
        assert pixels[0, 0].min() > pixels[0, 1].max()


def test_rows_that_do_not_fit_the_placeholders_are_refused(tiny_models: Path) -> None:
    adapter = registry.load(registry.entry("tiny-llava"))
    prepared = adapter.preprocess(pictures(1), "What is it?")
    with pytest.raises(ValueError, match="3 visual rows for 4 placeholders"):
        adapter.embed(prepared, adapter.encode(prepared).changed(lambda rows: rows[:3]))


def test_a_special_token_in_the_question_is_refused(tiny_models: Path) -> None:
    adapter = registry.load(registry.entry("tiny-llava"))
    with pytest.raises(BadInput, match="contains <image>"):
        adapter.preprocess(pictures(1), "What is <image>?")
