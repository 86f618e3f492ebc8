"""The small checkpoints stand for the published ones: complete, readable, and able to see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
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


def generated(model: Any, inputs: dict[str, Any]) -> Any:
    return model.generate(
        **inputs,
        max_new_tokens=12,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
    )


@pytest.mark.parametrize("family", family_checkpoints.each(family_checkpoints.FAMILIES))
def test_a_checkpoint_is_complete(family: str, family_folder: Callable[[str], Path]) -> None:
    folder = family_folder(family)
    checkpoint_files.check_settings(folder, family)
    _, report = AutoModelForImageTextToText.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    assert sum(file.stat().st_size for file in folder.rglob("*")) < 1e6


@pytest.mark.parametrize("family", READABLE)
def test_pictures_change_what_a_model_says(
    family: str, family_folder: Callable[[str], Path]
) -> None:
    folder = family_folder(family)
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    processor = auto_processor.load(info(family), folder)
    for count in counts(family):
        text = prompt(processor, count)
        one, again, other = (
            generated(model, auto_processor.inputs(processor, text, pictures(count, seed)))
            for seed in (0, 0, 1)
        )
        assert torch.equal(one.logits[0], again.logits[0])
        assert (one.logits[0] - other.logits[0]).abs().max() > 0.02
        answer = one.sequences[0, -len(one.logits) :].tolist()
        assert len(answer) == 12 and len(set(answer)) > 2  # not one token again and again


def test_the_same_checkpoint_is_written_each_time(
    tmp_path: Path, family_folder: Callable[[str], Path]
) -> None:
    again = family_checkpoints.build("llava", tmp_path / "again")
    assert (again / "model.safetensors").read_bytes() == (
        family_folder("llava") / "model.safetensors"
    ).read_bytes()


def test_a_checkpoint_can_be_written_in_bfloat16(tmp_path: Path) -> None:
    folder = family_checkpoints.build("gemma3", tmp_path / "gemma3", dtype="bfloat16")
    assert AutoModelForImageTextToText.from_pretrained(folder).dtype == torch.bfloat16
