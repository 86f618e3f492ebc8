"""The pixels of the image processor that a checkpoint names, loaded independently of the adapter.

From engine/models it only uses the folder's path, so a wrong class or setting there shows up as a
difference here.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Pictures
from transformers import AutoImageProcessor, CLIPImageProcessorPil
from transformers.video_utils import VideoMetadata

from engine.models import auto_processor, checkpoint, registry
from engine.models.adapter import Adapter
from engine.types import Image, Media, ModelInfo

_NAMING = ('"image_processor_type"', '"feature_extractor_type"')
_SHAPES = ((60, 180), (180, 60))  # height and width: padding and cropping differ between them


def pixels(adapter: Adapter, shown: Media) -> torch.Tensor:
    """T images [H, W, 3] -> the named processor's own pixels, usually [T, 3, S, S] float32."""
    made = inputs(adapter, shown, "What?")
    return next(value for name, value in made.items() if name.startswith("pixel_values"))


def inputs(adapter: Adapter, shown: Media, question: str) -> dict[str, torch.Tensor]:
    """What the named processor makes of the pictures: pixels, and grids, sizes or masks of them."""
    info, images = adapter.info, shown.images
    if info.family == "transformers":
        return _of_a_prompt(adapter, shown, question)
    return dict(
        _processor(info)(list(images), return_tensors="pt", input_data_format="channels_last")
    )


def _of_a_prompt(adapter: Any, media: Media, question: str) -> dict[str, torch.Tensor]:
    """Those that the processor makes with a prompt of the checkpoint's own chat template."""
    info, images = adapter.info, media.images
    processor = auto_processor.load(info, checkpoint.locate(registry.entry(info.name)))
    given: dict[str, Any]
    if rate := adapter.clip_rate(media):
        text = adapter.prompt_text(question, 1, "video")
        clip = VideoMetadata(len(images), fps=rate, frames_indices=list(range(len(images))))
        given = {"videos": [np.stack(images)], "video_metadata": [clip], "do_sample_frames": False}
    else:
        text = adapter.prompt_text(question, len(images))
        given = {"images": [[Pictures.fromarray(image) for image in images]]}
    with warnings.catch_warnings():
        # PaliGemma's class converts a tensor in a way that numpy has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        made = processor(text=[text], return_tensors="pt", **given)
    each_token = made["input_ids"].shape  # what has one value per token belongs to the prompt
    return {name: value for name, value in made.items() if value.shape[:2] != each_token}


def pictures() -> list[Image]:
    """A wide and a tall picture of noise, which processors treat differently."""
    random = np.random.default_rng(0)
    return [random.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in _SHAPES]


def _processor(info: ModelInfo) -> Any:
    folder = checkpoint.locate(registry.entry(info.name))
    if info.family == "eventgpt" and (made := _published(info, folder)) is not None:
        return made
    return AutoImageProcessor.from_pretrained(
        folder, backend="pil", local_files_only=True, trust_remote_code=False
    )


def _published(info: ModelInfo, folder: Path) -> Any:
    """CLIP's processor at the tower's size if an EventGPT folder names none; otherwise None.

    transformers knows no processor for EventGPT's model_type.
    """
    files = [folder / name for name in ("preprocessor_config.json", "processor_config.json")]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    if any(key in text for text in texts for key in _NAMING):
        return None
    if texts:
        return CLIPImageProcessorPil.from_pretrained(folder, local_files_only=True)
    assert info.tower is not None  # read from config.json
    side = info.tower.image_size
    return CLIPImageProcessorPil(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}
    )
