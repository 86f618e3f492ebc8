"""The small checkpoints stand for the published ones: complete, readable, and able to see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoModelForImageTextToText

from engine.models import auto_processor, checkpoint_files
from engine.types import Image, ModelInfo
from tests.models import family_checkpoints

pytestmark = pytest.mark.loads
READABLE = tuple(
    family
    for family in family_checkpoints.FAMILIES
    if auto_processor.can_video() or family not in family_checkpoints.NEED_TORCHVISION
)


def info(family: str) -> ModelInfo:
    return ModelInfo(family, "transformers", "", None, "float32", demo=False)


def pictures(count: int, seed: int = 0) -> list[Image]:
    noise = np.random.default_rng(seed)
    return [noise.integers(0, 256, (60, 80, 3), dtype=np.uint8) for _ in range(count)]


def prompt(processor: Any, count: int) -> str:
    content = [{"type": "image"}] * count + [{"type": "text", "text": "What is on the road?"}]
    text = processor.tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
    )
    assert isinstance(text, str)
    return text


def counts(family: str) -> tuple[int, ...]:
    return (1,) if family_checkpoints.most_images(family) == 1 else (1, 2)


@pytest.mark.parametrize("family", family_checkpoints.each(family_checkpoints.FAMILIES))
def test_a_checkpoint_is_complete(family: str, family_folder: Callable[[str], Path]) -> None:
    folder = family_folder(family)
    checkpoint_files.check_settings(folder, family)
    _, report = AutoModelForImageTextToText.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    assert sum(file.stat().st_size for file in folder.rglob("*")) < 1e6
