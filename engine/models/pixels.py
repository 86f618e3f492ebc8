"""Stage 2's pixels: the values of a checkpoint's image processor, computed faster.

The values are equal bit for bit.  Pillow resizes each picture, as in the processor.
Then all pictures are rescaled and normalised at once through a table of 256 values per channel,
computed with the processor's arithmetic (image_transforms.py of transformers: float64 to rescale,
float32 to normalise).

For another class or setting than those listed here, the processor itself is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image as Pillow
from transformers import CLIPImageProcessorPil, VideoLlavaImageProcessor
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

from engine.types import Image

_KNOWN = (CLIPImageProcessorPil, LlavaImageProcessorPil, VideoLlavaImageProcessor)
_DONE = ("do_resize", "do_rescale", "do_normalize")
_READ = {  # supported settings
    *(*_DONE, "do_center_crop", "size", "crop_size", "resample", "rescale_factor"),
    *("image_mean", "image_std"),
}
_INERT = {  # settings that do not change an RGB picture
    *("do_convert_rgb", "image_processor_type", "feature_extractor_type", "processor_class"),
    *("image_seq_length", "_valid_processor_keys", "auto_map"),
}


@dataclass(frozen=True, eq=False)
class ProcessorSettings:
    """A processor's settings: the shortest side or both sides, a filter, a crop, and the output
    [3, 256] for each value of each channel."""

    size: Mapping[str, int]
    resample: Pillow.Resampling
    crop: tuple[int, int] | None
    table: npt.NDArray[np.float32]

    def pixels(self, images: Sequence[Image]) -> torch.Tensor | None:
        """T images [H, W, 3] -> [T, 3, S, S] float32; None if only the processor can do it."""
        resized = [self._resized(image) for image in images]
        parts = [one for one in resized if one is not None]
        if not parts or len(parts) < len(images) or len({one.shape for one in parts}) > 1:
            return None
        small = np.stack(parts)
        channels = [self.table[c].take(small[..., c]) for c in range(3)]
        return torch.from_numpy(np.stack(channels, axis=1))

    def _resized(self, image: Image) -> Image | None:
        """[S, S, 3]: the picture resized and cropped; None if it would have to be padded."""
        height, width = image.shape[:2]
        target = (self.size.get("height", 0), self.size.get("width", 0))
        if shortest := self.size.get("shortest_edge"):
            long = int(shortest * max(height, width) / min(height, width))
            target = (long, shortest) if width <= height else (shortest, long)
        rows, columns = self.crop or target
        top, left = (target[0] - rows) // 2, (target[1] - columns) // 2
        if min(top, left) < 0:
            return None
        resized = np.asarray(Pillow.fromarray(image).resize(target[::-1], self.resample))
        return resized[top : top + rows, left : left + columns]


def known_settings(processor: Any) -> ProcessorSettings | None:
    """The settings of a processor of a known class; None if one is not supported."""
    if type(processor) not in _KNOWN:
        return None
    given: Mapping[str, Any] = processor.to_dict()
    other = [name for name, value in given.items() if value and name not in _READ | _INERT]
    if other or not all(given.get(name) for name in _DONE):  # an option such as do_pad
        return None
    try:
        crop = _sides(given["crop_size"], ("height", "width")) if given["do_center_crop"] else None
        size = _sides(given["size"])
        resample = Pillow.Resampling(given["resample"])
        parts = (np.array(given[name], np.float32) for name in ("image_mean", "image_std"))
        mean, deviation = (part.reshape(3, 1) for part in parts)
        scaled = np.arange(256, dtype=np.uint8).astype(np.float64) * float(given["rescale_factor"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if resample == Pillow.Resampling.NEAREST or not deviation.all():
        return None  # the other filters process rows and columns apart
    # (value x factor - mean) / deviation, rounded as in the processor
    table: npt.NDArray[np.float32] = (scaled.astype(np.float32)[None] - mean) / deviation
    window = (crop["height"], crop["width"]) if crop else None
    return ProcessorSettings(size, resample, window, table)


def _sides(value: Mapping[str, Any], *forms: tuple[str, ...]) -> dict[str, int]:
    """The given sides as positive integers, or ValueError for another form."""
    sides = {str(name): side for name, side in value.items() if side is not None}
    known = [set(form) for form in forms or (("shortest_edge",), ("height", "width"))]
    if set(sides) not in known or not all(type(x) is int and x > 0 for x in sides.values()):
        raise ValueError("not one of the supported forms")
    return sides
