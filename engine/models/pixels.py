"""Stage 2's pixels: the values of a checkpoint's image processor, computed faster.

"exact" gives the processor's values bit for bit.  Pillow resizes each picture, as in the processor.
Then all pictures are rescaled and normalised at once through a table of 256 values per channel,
computed with the processor's arithmetic (image_transforms.py of transformers: float64 to rescale,
float32 to normalise).

Pillow 12 resizes rows, then columns; Pillow 13 starts with the direction that leaves less to do.

"fast" resizes with torch's antialiased 8-bit filters, which imitate Pillow's [1] with fewer bits
per weight: a few values per thousand differ by one grey level, a few per hundred thousand by two.

[1] https://pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html, antialias

For another class or setting than those listed here, the processor itself is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image as Pillow
from transformers import CLIPImageProcessorPil, VideoLlavaImageProcessor
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

from engine.types import Image, Pixels

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
# The filters that process rows and columns apart.
_SMOOTH = {*Pillow.Resampling} - {Pillow.Resampling.NEAREST}
_TORCH = {Pillow.Resampling.BICUBIC: "bicubic", Pillow.Resampling.BILINEAR: "bilinear"}
_SIDES = {frozenset({"shortest_edge"}), frozenset({"height", "width"})}


@dataclass(frozen=True, eq=False)
class ProcessorSettings:
    """A processor's settings: the shortest side or both sides, a filter, a crop."""

    shortest: int | None
    sides: tuple[int, int]  # height, width
    resample: Pillow.Resampling
    crop: tuple[int, int] | None
    table: npt.NDArray[np.float32]  # [3, 256]: the output for each value of each channel

    @property
    def has_fast(self) -> bool:
        """torch resizes rows first, as Pillow 12 does."""
        return self.resample in _TORCH and rows_first()

    @property
    def steps(self) -> torch.Tensor:
        """[3, 1, 1]: the size of one grey level in each channel."""
        return torch.from_numpy(self.table[:, 255] - self.table[:, 0]).abs()[:, None, None] / 255

    def pixels(self, images: Sequence[Image], setting: Pixels) -> torch.Tensor | None:
        """T images [H, W, 3] -> [T, 3, S, S] float32; None if only the processor can do it."""
        if not images or any(self._corner(image.shape) is None for image in images):
            return None
        if len({self._target(image.shape) for image in images}) > 1 and self.crop is None:
            return None
        fast = setting == "fast" and self.has_fast
        small = np.stack([self._resized(image, fast) for image in images])
        if not fast:
            channels = [self.table[c].take(small[..., c]) for c in range(3)]
            return torch.from_numpy(np.stack(channels, axis=1))
        # the table as a linear function: faster, and equal up to rounding
        values = torch.from_numpy(small).permute(0, 3, 1, 2)
        values = values.to(torch.float32, memory_format=torch.contiguous_format)
        lowest = torch.from_numpy(self.table[:, :1, None])
        steps = torch.from_numpy(self.table[:, 255:] - self.table[:, :1])[..., None] / 255
        return values.mul_(steps).add_(lowest)

    def _target(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """The height and width a picture is resized to, before the crop."""
        if self.shortest is None:
            return self.sides
        height, width = shape[:2]
        long = int(self.shortest * max(height, width) / min(height, width))
        return (long, self.shortest) if width <= height else (self.shortest, long)

    def _corner(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """The corner of the crop; None if the picture would have to be padded."""
        height, width = self._target(shape)
        if self.crop is None:
            return 0, 0
        top, left = (height - self.crop[0]) // 2, (width - self.crop[1]) // 2
        return (top, left) if min(top, left) >= 0 else None

    def _resized(self, image: Image, fast: bool) -> Image:
        """[S, S, 3]: the picture resized to its target and cropped."""
        target = self._target(image.shape)
        top, left = self._corner(image.shape) or (0, 0)
        height, width = self.crop or target
        bottom, right = top + height, left + width
        if fast:
            given = torch.from_numpy(image).permute(2, 0, 1)[None]
            mode = _TORCH[self.resample]
            out = torch.nn.functional.interpolate(given, target, mode=mode, antialias=True)
            large: Image = out[0].permute(1, 2, 0).numpy()
            return large[top:bottom, left:right]
        whole = Pillow.fromarray(image)
        if not rows_first():
            resized = np.asarray(whole.resize(target[::-1], self.resample))
            return resized[top:bottom, left:right]
        # with rows first, columns that the crop removes are skipped
        rows = whole.resize((target[1], len(image)), self.resample)
        columns = rows.crop((left, 0, right, len(image)))
        return np.asarray(columns.resize((width, target[0]), self.resample))[top:bottom]


@cache
def rows_first() -> bool:
    """Whether this Pillow resizes rows before columns, also where the other order is cheaper."""
    noise = np.random.default_rng(0).integers(0, 256, (40, 16, 3), dtype=np.uint8)
    tall, filter_ = Pillow.fromarray(noise), Pillow.Resampling.BICUBIC
    by_rows = tall.resize((12, 40), filter_).resize((12, 12), filter_)
    return by_rows.tobytes() == tall.resize((12, 12), filter_).tobytes()


def known_settings(processor: Any) -> ProcessorSettings | None:
    """The settings of a processor of a known class; None if one is not supported."""
    if type(processor) not in _KNOWN:
        return None
    given: Mapping[str, Any] = processor.to_dict()
    if not all(given.get(name) for name in _DONE):
        return None
    if any(value for name, value in given.items() if name not in _READ | _INERT):
        return None  # an unsupported option, such as do_pad
    size, crop = _sides(given.get("size")), _sides(given.get("crop_size"))
    cropped = bool(given.get("do_center_crop"))
    table = _table(given)
    if size is None or table is None or (cropped and (crop is None or "height" not in crop)):
        return None
    try:
        resample = Pillow.Resampling(given["resample"])
    except (KeyError, ValueError):
        return None
    if resample not in _SMOOTH:
        return None
    sides = (size.get("height", 0), size.get("width", 0))
    window = (crop["height"], crop["width"]) if cropped and crop else None
    return ProcessorSettings(size.get("shortest_edge"), sides, resample, window, table)


def _sides(value: Any) -> dict[str, int] | None:
    """The given sides as positive integers, if they have one of the two supported forms."""
    if not isinstance(value, Mapping):
        return None
    sides = {str(name): side for name, side in value.items() if side is not None}
    whole = all(type(side) is int and side > 0 for side in sides.values())
    return sides if whole and frozenset(sides) in _SIDES else None


def _table(given: Mapping[str, Any]) -> npt.NDArray[np.float32] | None:
    """[3, 256]: (value x factor - mean) / deviation, rounded as in the processor."""
    parts = [given.get(name) for name in ("image_mean", "image_std")]
    if not all(isinstance(part, Sequence) and len(part) == 3 for part in parts):
        return None
    mean, deviation = (np.array(part, np.float32)[:, None] for part in parts)
    factor = given.get("rescale_factor")
    if not isinstance(factor, float | int) or not deviation.all():
        return None
    scaled = (np.arange(256, dtype=np.uint8).astype(np.float64) * factor).astype(np.float32)
    table: npt.NDArray[np.float32] = (scaled[None] - mean) / deviation
    return table
