"""Loads the image processor that a checkpoint names, as transformers resolves the name.

It has its Pillow backend, and no code from the checkpoint is run.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoImageProcessor, CLIPImageProcessorPil, VideoLlavaImageProcessor

from engine.errors import ModelUnavailable
from engine.models import checkpoint_files
from engine.quoting import first_line
from engine.types import Image, ModelInfo

# transformers 5.21 and later need this argument to return the usual name.
_ASK = "return_legacy_image_output"
_CAN_ASK = _ASK in inspect.signature(VideoLlavaImageProcessor.preprocess).parameters
_PLAIN_NAME = {_ASK: False} if _CAN_ASK else {}
FILES = ("processor_config.json", "preprocessor_config.json")
_TRIED = ((60, 80), (80, 60))  # height and width of the test pictures


def fields(folder: Path, name: str) -> Mapping[str, Any] | None:
    """The image processor's settings, the nested form first as in transformers; None if absent."""
    nested = checkpoint_files.read_if_there(folder / FILES[0], name).get("image_processor")
    if nested is not None:
        return dict(nested)
    return checkpoint_files.read_if_there(folder / FILES[1], name) or None


def load(info: ModelInfo, folder: Path, unnamed: Any = None) -> Any:
    """The processor that the folder names, or ModelUnavailable.

    `unnamed` is the class for settings without a class name; with None transformers chooses it by
    the model_type in config.json.
    """
    found = fields(folder, info.name)
    if found is None:
        raise ModelUnavailable(
            f"{info.name} has no {' and no '.join(FILES)} in {folder}: copy one there."
        )
    named = found.get("image_processor_type") or found.get("feature_extractor_type")
    try:
        if named is None and unnamed is not None:
            return unnamed.from_pretrained(folder, local_files_only=True)
        return AutoImageProcessor.from_pretrained(
            folder, backend="pil", local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        raise ModelUnavailable(
            f"{info.name}: its image processor {named or ''} in {folder} cannot be used "
            f"({first_line(error)}): name a class that transformers has, or copy the file again."
        ) from error


def values(processor: Any, images: Sequence[Image]) -> torch.Tensor:
    """T images [H, W, 3] -> the processor's own pixels, [T, 3, S, S] float32."""
    plain = _PLAIN_NAME if type(processor) is VideoLlavaImageProcessor else {}
    out = processor(
        images=list(images), return_tensors="pt", input_data_format="channels_last", **plain
    )
    pixels: torch.Tensor = out["pixel_values" if "pixel_values" in out else "pixel_values_images"]
    return pixels


def published_clip(size: int) -> Any:
    """The processor of clip-vit-large-patch14-336, at another tower's size."""
    crop = {"height": size, "width": size}
    return CLIPImageProcessorPil(size={"shortest_edge": size}, crop_size=crop)


def refuse_other_sizes(info: ModelInfo, processor: Any, pixels: Any, size: int) -> None:
    """ModelUnavailable unless `pixels` returns [T, 3, size, size] for pictures of any shape."""
    wanted = (1, 3, size, size)
    for height, width in _TRIED:
        picture = np.full((height, width, 3), 127, np.uint8)
        try:
            with np.errstate(all="raise"):
                found = tuple(pixels([picture]).shape)
        except Exception as error:
            raise ModelUnavailable(
                f"{info.name}: its image processor {type(processor).__name__} fails on a picture "
                f"({first_line(error)}): correct its settings in preprocessor_config.json."
            ) from error
        if found != wanted:
            raise ModelUnavailable(
                f"{info.name}: its image processor {type(processor).__name__} makes pixels of "
                f"{found}, but its vision tower takes {wanted}: copy both from one checkpoint."
            )
