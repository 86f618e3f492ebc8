"""Pictures to pixels: the engine against the Hugging Face image processors.

8 pictures of 1440 x 1088 to 224 and 5 of 640 x 480 to 336, for the processor of each family; then
stages 1 and 2 together: a clip to pixels, decoded whole and processed by the processor, against the
engine.  By turns with one thread, CPU time.
"""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import clips, rivals
from benchmarks.machine import Row, by_turns, main, rows

CASES = ((8, 1440, 1088, 224), (5, 640, 480, 336))
CLIPS = ((1, 250), (5, 250), (16, 12))
OURS, OTHER, WHOLE = "exact", "the image processor", "decoding everything, processor"


def measure(quick: bool) -> list[Row]:
    import torch

    from engine.media import decoding, video

    torch.set_num_threads(1)
    decoding.THREADS = 1
    rounds, found = 1 if quick else 11, list[Row]()
    for count, width, height, side in CASES[: 1 if quick else None]:
        images = pictures(count, width, height)
        for kind in ("CLIP", "Video-LLaVA"):
            plain, call = _processor(kind, side)
            ways: dict[str, Callable[[], Any]] = {
                OURS: partial(plain.pixels, images),
                OTHER: partial(call, images),
            }
            what = f"pixels, {count} x {width}x{height} -> {side}, {kind}"
            found += rows(what, by_turns(ways, rounds), {OTHER: 1.15})
    plain, call = _processor("Video-LLaVA", 224)
    with tempfile.TemporaryDirectory() as folder:
        for seconds, gop in CLIPS[: 1 if quick else None]:
            path = Path(folder) / f"{seconds}_{gop}.mp4"
            clips.write(path, seconds, gop)
            indices = video.choose(seconds * clips.FPS, "arange")
            ways = {OURS: partial(_both, plain, path), WHOLE: partial(_whole, call, path, indices)}
            found += rows(f"stages 1 and 2, {seconds} s, GOP {gop}", by_turns(ways, rounds))
    return found


def pictures(count: int, width: int, height: int) -> list[Any]:
    """Soft noise, a quarter of it with hard edges."""
    from PIL import Image

    rng, made = np.random.default_rng(0), []
    for _ in range(count):
        small = rng.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
        bicubic = Image.Resampling.BICUBIC
        picture = np.array(Image.fromarray(small).resize((width, height), bicubic))
        picture[: height // 2, : width // 2] = picture[: height // 2, : width // 2] // 128 * 255
        made.append(picture)
    return made


def _processor(kind: str, side: int) -> tuple[Any, Callable[[Sequence[Any]], Any]]:
    """The engine's settings of a processor, and a call of it as its family makes it."""
    from transformers import CLIPImageProcessorPil, VideoLlavaImageProcessor

    from engine.models import auto_processor

    made: Any = CLIPImageProcessorPil if kind == "CLIP" else VideoLlavaImageProcessor
    processor = made(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    named = {} if kind == "CLIP" else {"return_legacy_image_output": False}

    def call(images: Sequence[Any]) -> Any:
        given = {"return_tensors": "pt", "input_data_format": "channels_last"}
        return processor(list(images), **given, **named)["pixel_values"]

    return auto_processor.known_settings(processor), call


def _whole(call: Callable[[Sequence[Any]], Any], path: Path, indices: Sequence[int]) -> Any:
    return call(rivals.whole(path, indices))


def _both(plain: Any, path: Path) -> Any:
    from engine.media import video
    from engine.media.media_files import large

    chosen = partial(video.choose, rule="arange")
    return plain.pixels(video.decode(large(path), path.name, chosen).images)


if __name__ == "__main__":
    main("preprocessing", measure, __doc__)
