"""The Qwen2.5-VL demo network is transformers' own class, and is taught as that class runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText, AutoTokenizer

from tools.demo_training.corpus import WIDE
from tools.demo_training.lessons import encode
from tools.demo_training.qwen_network import (
    PICTURE,
    PROMPT,
    build_qwen_tokenizer,
    new_qwen,
    save_qwen,
)
from tools.demo_training.qwen_tower import TOKENS, grid_of, patchify
from tools.demo_training.qwen_tower import encode as see

QUESTION = "What are the key elements in this scene?"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_qwen_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    torch.manual_seed(1)
    return new_qwen(tokenizer).eval()


@pytest.fixture(scope="module")
def folder(model: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("qwen")
    torch.manual_seed(1)
    save_qwen(new_qwen(tokenizer), tokenizer, place)
    return place


def random_pixels(count: int) -> Any:
    shape = count, 3, WIDE.height, WIDE.width
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def picture(height: int, width: int) -> Any:
    return np.random.default_rng(8).integers(0, 255, (height, width, 3), dtype=np.uint8)


@torch.inference_mode()
def test_taught_tokens_are_those_at_run_time(model: Any) -> None:
    """Three pictures at once, with windows and rotary places, as the class computes them."""
    patches, tower = patchify(random_pixels(3)), model.model.visual
    theirs = tower(patches.flatten(0, 1), grid_thw=grid_of(3))
    states, tokens = see(tower, patches)
    torch.testing.assert_close(states.flatten(0, 1), theirs.last_hidden_state)
    torch.testing.assert_close(tokens.flatten(0, 1), theirs.pooler_output, atol=1e-5, rtol=1e-4)
    assert tokens.shape == (3, TOKENS, 192)
    swapped = see(tower, patches.flip(0))[1]
    assert not torch.allclose(swapped.flatten(0, 1), theirs.pooler_output, atol=1e-3)


def _after() -> str:
    return PROMPT[1].format(q=QUESTION)


def _prompt(tokenizer: Any, images: int) -> Any:
    start, end = PROMPT[0], _after()
    between = "<|vision_end|><|vision_start|>"
    text = start + between.join([PICTURE * TOKENS] * images) + end
    return torch.tensor(encode(tokenizer, text))


def test_a_saved_folder_is_whole(folder: Path, model: Any, tokenizer: Any) -> None:
    again, report = AutoModelForImageTextToText.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert type(again).__name__ == "Qwen2_5_VLForConditionalGeneration"
    assert not report["missing_keys"] and not report["unexpected_keys"]
    kept = dict(model.half().float().state_dict())
    for name, value in again.state_dict().items():
        assert torch.equal(value, kept[name]), name
    assert again.generation_config.eos_token_id == [tokenizer.eos_token_id, tokenizer.pad_token_id]
    reader = json.loads((folder / "preprocessor_config.json").read_text(encoding="utf-8"))
    assert reader["image_processor_type"] == "Qwen2VLImageProcessor"
    assert reader["processor_class"] == "Qwen2_5_VLProcessor"


def _rendered(folder: Path, images: int) -> str:
    """The chat template's text for this many pictures and the question."""
    content = [*[{"type": "image"}] * images, {"type": "text", "text": QUESTION}]
    talk = [{"role": "user", "content": content}]
    words = AutoTokenizer.from_pretrained(folder)
    return str(words.apply_chat_template(talk, tokenize=False, add_generation_prompt=True))
