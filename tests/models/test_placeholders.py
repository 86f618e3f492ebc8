"""LLaVA and Video-LLaVA: prompts, placeholder counts and pixels against transformers' own."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import LlavaProcessor

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


def test_rows_that_do_not_fit_the_placeholders_are_refused(tiny_models: Path) -> None:
    adapter = registry.load(registry.entry("tiny-llava"))
    prepared = adapter.preprocess(pictures(1), "What is it?")
    with pytest.raises(ValueError, match="3 visual rows for 4 placeholders"):
        adapter.embed(prepared, adapter.encode(prepared).changed(lambda rows: rows[:3]))
