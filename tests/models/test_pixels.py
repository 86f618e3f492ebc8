"""Pixels: equal to the image processor's bit for bit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as Pillow
from transformers import CLIPImageProcessorPil, VideoLlavaImageProcessor
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

from engine.models import auto_processor, registry
from engine.models.adapter import Adapter
from engine.types import Image

pytestmark = pytest.mark.loads

KINDS: tuple[Any, ...] = (
    CLIPImageProcessorPil,
    VideoLlavaImageProcessor,
    LlavaImageProcessorPil,
)
SIZES = [(96, 128), (128, 96), (64, 64), (300, 301), (33, 500)]
SQUARE = {"height": 48, "width": 48}
SETTINGS: dict[str, dict[str, Any]] = {
    "published": {"size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336}},
    "small": {"size": {"shortest_edge": 48}, "crop_size": SQUARE},
    "demo": {"size": SQUARE, "crop_size": SQUARE, "do_center_crop": False},
    "oblong crop": {"size": {"shortest_edge": 60}, "crop_size": {"height": 31, "width": 48}},
    "bilinear": {"size": {"shortest_edge": 48}, "crop_size": SQUARE, "resample": 2},
    "other mean": {
        "size": {"shortest_edge": 48},
        "crop_size": SQUARE,
        "image_mean": [0.5, 0.4, 0.3],
        "image_std": [0.5, 0.1, 0.9],
        "rescale_factor": 1 / 127.5,
    },
}


def pictures(count: int, height: int, width: int) -> list[Image]:
    """Soft noise with hard edges: what filters overshoot at."""
    rng = np.random.default_rng(height * width)
    found = []
    for _ in range(count):
        small = rng.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
        soft = np.array(Pillow.fromarray(small).resize((width, height), Pillow.Resampling.BICUBIC))
        soft[: height // 3, : width // 2] = rng.integers(0, 2, 3, dtype=np.uint8) * 255
        found.append(soft)
    return found


def own(processor: Any, images: Sequence[Image]) -> torch.Tensor:
    old = isinstance(processor, VideoLlavaImageProcessor)
    named = {"return_legacy_image_output": False} if old else {}
    given = {"return_tensors": "pt", "input_data_format": "channels_last"}
    out: torch.Tensor = processor(list(images), **given, **named)["pixel_values"]
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SETTINGS)
def test_exact_pixels_are_the_processors_own(name: str, kind: Any) -> None:
    processor = kind(**SETTINGS[name])
    plain = auto_processor.known_settings(processor)
    assert plain is not None
    for size in SIZES:
        images = pictures(2, *size)
        found, wanted = plain.pixels(images), own(processor, images)
        assert found is not None
        assert (found.dtype, found.shape) == (torch.float32, wanted.shape)
        assert torch.equal(found, wanted), size


def test_pictures_of_several_sizes_are_cropped_alike() -> None:
    processor = CLIPImageProcessorPil(**SETTINGS["small"])
    plain = auto_processor.known_settings(processor)
    assert plain is not None
    images = [picture for size in SIZES for picture in pictures(1, *size)]
    found = plain.pixels(images)
    assert found is not None and torch.equal(found, own(processor, images))


@pytest.mark.parametrize(
    "odd",
    [
        {"do_resize": False},
        {"do_rescale": False},
        {"do_normalize": False},
        {"do_pad": True},
        {"new_option": 5},
        {"size": {"shortest_edge": 48, "longest_edge": 90}},
        {"image_mean": 0.5},
        {"image_std": [1.0, 0.0, 1.0]},
        {"rescale_factor": None},
        {"crop_size": None},
        {"crop_size": {"shortest_edge": 48}},
        {"resample": 0},
        {"resample": 99},
        {"size": {"shortest_edge": 0}},
    ],
)
def test_settings_that_are_not_followed_are_left_to_the_processor(
    odd: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = CLIPImageProcessorPil(**SETTINGS["small"])
    settings = processor.to_dict()
    assert auto_processor.known_settings(processor) is not None
    monkeypatch.setattr(CLIPImageProcessorPil, "to_dict", lambda self: settings | odd)
    assert auto_processor.known_settings(processor) is None


def test_pictures_that_would_be_padded_are_left_to_the_processor() -> None:
    plain = auto_processor.known_settings(
        CLIPImageProcessorPil(size={"shortest_edge": 40}, crop_size={"height": 48, "width": 48})
    )
    assert plain is not None
    assert plain.pixels(pictures(1, 64, 64)) is None
    uncropped = auto_processor.known_settings(
        CLIPImageProcessorPil(size={"shortest_edge": 40}, do_center_crop=False)
    )
    assert uncropped is not None
    assert uncropped.pixels(pictures(1, 64, 64) + pictures(1, 64, 90)) is None


@pytest.fixture(params=["eventgpt", "video_llava", "llava"])
def adapter(request: pytest.FixtureRequest, tiny_models: Path) -> Adapter:
    return registry.load(registry.entry(f"tiny-{request.param}"))
