"""Pictures to pixels: the engine's two settings against the Hugging Face image processors.

`python -m benchmarks.preprocessing`: 8 pictures of 1440 x 1088 to 224 and 5 of 640 x 480 to 336,
for each family's processor, by turns with one thread; ratios of CPU time and the largest
difference in grey levels.  Then stages 1 and 2 together: a clip to pixels, decoded whole and
processed by the processor, against the engine.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import clips
from benchmarks.machine import keep, spread
from engine.types import PIXELS, Pixels

ROUNDS = 11
CASES = ((8, 1440, 1088, 224), (5, 640, 480, 336))
CLIPS = ((1, 250), (5, 250), (16, 12))
OWN = "image processor"


def main() -> None:
    import torch

    torch.set_num_threads(1)
    figures: dict[str, Any] = {}
    for count, width, height, side in CASES:
        images = pictures(count, width, height)
        name = f"{count} x {width}x{height} -> {side}"
        figures[name] = {kind: _case(kind, side, images) for kind in ("CLIP", "Video-LLaVA")}
    with tempfile.TemporaryDirectory() as folder:
        for seconds, gop in CLIPS:
            path = Path(folder) / f"{seconds}_{gop}.mp4"
            clips.write(path, seconds, gop)
            figures[f"stages 1 and 2, {seconds} s, GOP {gop}"] = _both(path, seconds * clips.FPS)
    keep("preprocessing", figures)


def pictures(count: int, width: int, height: int) -> list[Any]:
    """Soft noise, a quarter of it with hard edges."""
    from PIL import Image

    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        small = rng.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
        bicubic = Image.Resampling.BICUBIC
        picture = np.array(Image.fromarray(small).resize((width, height), bicubic))
        picture[: height // 2, : width // 2] = picture[: height // 2, : width // 2] // 128 * 255
        found.append(picture)
    return found


def _processor(kind: str, side: int) -> tuple[Any, Callable[[Sequence[Any]], Any]]:
    """The processor, and a call of it as its family makes it: T pictures to [T, 3, S, S]."""
    from transformers import CLIPImageProcessorPil, VideoLlavaImageProcessor

    made: Any = CLIPImageProcessorPil if kind == "CLIP" else VideoLlavaImageProcessor
    processor = made(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    named = {} if kind == "CLIP" else {"return_legacy_image_output": False}

    def call(images: Sequence[Any]) -> Any:
        given = {"return_tensors": "pt", "input_data_format": "channels_last"}
        return processor(list(images), **given, **named)["pixel_values"]

    return processor, call


def _case(kind: str, side: int, images: Sequence[Any]) -> dict[str, Any]:
    from engine.models import pixels

    processor, call = _processor(kind, side)
    plain = pixels.known_settings(processor)
    assert plain is not None
    ways: dict[str, Callable[[], Any]] = {OWN: partial(call, images)}
    for setting in PIXELS:
        ways[setting] = partial(plain.pixels, images, setting)
    wanted = call(images)
    figures = _rounds(ways)
    for setting in PIXELS:
        levels = (ways[setting]() - wanted).abs() / plain.steps
        share = float((levels > 0.5).float().mean())
        figures[setting] |= {
            "largest_difference_grey_levels": round(float(levels.max()), 3),
            "share_of_values_that_differ": round(share, 6),
            "share_beyond_one_level": round(float((levels > 1.5).float().mean()), 9),
        }
    return figures


def _both(path: Path, count: int) -> dict[str, Any]:
    """A clip to eight pictures to pixels at 224, one thread everywhere."""
    from benchmarks.rivals import whole
    from engine.media import decoding, video
    from engine.models import pixels

    decoding.THREADS = 1
    processor, call = _processor("Video-LLaVA", 224)
    plain, indices = pixels.known_settings(processor), video.choose(count, "arange")
    assert plain is not None
    ways: dict[str, Callable[[], Any]] = {OWN: lambda: call(whole(path, indices))}
    for setting in PIXELS:
        ways[setting] = partial(_engine, plain, path, setting)
    return _rounds(ways)


def _engine(plain: Any, path: Path, setting: Pixels) -> Any:
    from engine.media import video

    return plain.pixels(video.read(path, "arange").images, setting)


def _rounds(ways: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """All ways by turns; ratios within a round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.process_time()
            way()
            times[name].append(1000 * (time.process_time() - start))
    return {
        name: {
            "cpu_ms": spread(found),
            "times_less": spread([a / b for a, b in zip(times[OWN], found, strict=True)]),
        }
        for name, found in times.items()
    }


if __name__ == "__main__":
    main()
