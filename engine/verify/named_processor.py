"""The pixels of the image processor that a checkpoint names, loaded independently of the adapter.

Boundary: a checkpoint's folder and pictures in, pixels out.  From engine/models it only uses the
folder's path, so a wrong class or setting there shows up as a difference here.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Pictures
from transformers import AutoImageProcessor, CLIPImageProcessorPil

from engine.models import auto_processor, checkpoint, registry
from engine.models.adapter import Adapter
from engine.types import Image, Media, ModelInfo

_NAMING = ('"image_processor_type"', '"feature_extractor_type"')
_SHAPES = ((90, 160), (160, 90))  # height and width: padding and cropping differ between them


def pixels(adapter: Adapter, shown: Media) -> torch.Tensor:
    """T images [H, W, 3] -> the named processor's own pixels, usually [T, 3, S, S] float32."""
    info, images = adapter.info, shown.images
    if info.family == "transformers":
        clip = adapter.shown(shown).split(":")[0].endswith(" as one clip")
        return _of_a_prompt(info, images, clip)
    processor = _processor(info)
    out = processor(list(images), return_tensors="pt", input_data_format="channels_last")
    found: torch.Tensor = out["pixel_values" if "pixel_values" in out else "pixel_values_images"]
    return found


def _of_a_prompt(info: ModelInfo, images: Sequence[Image], clip: bool) -> torch.Tensor:
    """The pixels of a prompt that the processor renders from the checkpoint's own chat template."""
    processor = auto_processor.load(info, checkpoint.locate(registry.entry(info.name)))
    shown = [Pictures.fromarray(image) for image in images]
    parts = [{"type": "video"}] if clip else [{"type": "image"} for _ in shown]
    parts.append({"type": "text", "text": "What?"})
    text = processor.apply_chat_template([{"role": "user", "content": parts}], tokenize=False)
    given: dict[str, Any] = {"images": [shown]}
    if clip:
        given = {"videos": [np.stack(images)], "do_sample_frames": False}
    with warnings.catch_warnings():
        # PaliGemma's class converts a tensor in a way that numpy has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        made = processor(text=[text], return_tensors="pt", **given)
    found: torch.Tensor = next(v for k, v in made.items() if k.startswith("pixel_values"))
    return found


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
