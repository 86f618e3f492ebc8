"""Models of two families through the generic adapter, in stages and with cached features.

Each model has the form of its family, about 50 million random weights and is built now.  It is
shown 8 frames as images and gives 64 new tokens, also by its generate().  A whole
answer is measured, from files to tokens, by turns, in CPU time of one thread.  The run stops if one
token differs.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine import QUESTION, Row, by_turns, main, rows, say

if TYPE_CHECKING:
    from engine.models.adapter import Adapter
    from engine.types import CachePolicy, Sample

TOKENS, FRAMES, WIDE = 64, 8, 240  # frames are squares of WIDE pixels
SIDE, PATCH, WIDTH = 168, 14, 512  # 144 patches of a picture become 36 tokens
TEXT = {
    "vocab_size": 8000,
    "hidden_size": WIDTH,
    "intermediate_size": 1408,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "max_position_embeddings": 2048,
}
TOWER = {"hidden_size": 384, "intermediate_size": 1536, "patch_size": PATCH}
USUAL = TOWER | {"num_hidden_layers": 8, "num_attention_heads": 6, "image_size": SIDE}
MERGING = TOWER | {"depth": 8, "num_heads": 6, "out_hidden_size": WIDTH}
QWEN_PIXELS = {"patch_size": PATCH, "min_pixels": SIDE**2, "max_pixels": SIDE**2}
MROPE = {"rope_parameters": {"mrope_section": [8, 12, 12]}}
SQUARE = {"height": SIDE, "width": SIDE}

# family -> what its small checkpoint's config, image processor and processor have in this size
SIZES: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]] = {
    "qwen2_5_vl": (
        {
            "text_config": TEXT | MROPE,
            "vision_config": MERGING | {"window_size": 112, "fullatt_block_indexes": [3, 7]},
        },
        QWEN_PIXELS,
        {},
    ),
    "internvl": (
        {
            "text_config": TEXT,
            "vision_config": USUAL | {"image_size": [SIDE, SIDE], "patch_size": [PATCH, PATCH]},
            "image_seq_length": 36,
        },
        {"size": SQUARE},
        {"image_seq_length": 36},
    ),
}
PLAIN = "generate()"


def measure(quick: bool) -> list[Row]:
    import torch
    import transformers

    torch.set_num_threads(1)  # or the threads of a busy machine would wait for each other
    transformers.logging.set_verbosity_error()
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        sample = _sample(Path(name) / "frames")
        for family in list(SIZES)[-1 if quick else 0 :]:
            say(f"{family} ...")
            found += _built(family, Path(name) / family, sample, 1 if quick else 9)
    return found


def _sample(folder: Path) -> Sample:
    import numpy as np
    from PIL import Image

    from engine.types import Sample

    folder.mkdir(parents=True)
    noise, frames = np.random.default_rng(0), []
    for number in range(FRAMES):
        frames.append(folder / f"{number}.png")
        pixels = noise.integers(0, 256, (WIDE, WIDE, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(frames[-1])
    return Sample("frames", "noise", frames=tuple(frames))


def _built(family: str, folder: Path, sample: Sample, rounds: int) -> list[Row]:
    from engine.models import registry
    from tests.models import family_checkpoints
    from tests.models.family_rows import ROWS

    family_checkpoints.build(family, folder / "model", row=sized(family, ROWS[family]))
    entry = f'[[model]]\nname = "{family}"\ncheckpoint = "./model"\nshows = "video"\n'
    (folder / "models.toml").write_text(entry, encoding="utf-8")
    os.environ["STAGESCOPE_MODELS"] = str(folder / "models.toml")
    try:
        return model(registry.load(registry.entry(family)), sample, folder / "features", rounds)
    finally:
        registry.unload(registry.entry(family))


def sized(family: str, row: Any) -> Any:
    """The small checkpoint's row with the sizes of this benchmark."""
    parts = zip(("config", "image_processor", "options"), SIZES[family], strict=True)
    return replace(row, **{name: _merged(getattr(row, name), part) for name, part in parts})


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """`one` with the values of `other`, also inside of nested tables."""
    found = copy.deepcopy(dict(one))
    for name, value in other.items():
        inner = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = _merged(found[name], value) if inner else copy.deepcopy(value)
    return found


def model(adapter: Adapter, sample: Sample, folder: Path, rounds: int) -> list[Row]:
    """The rows of one model; each way does everything from the files on."""
    import torch

    from engine import media
    from engine.decoding import decode
    from engine.pipeline import single_run
    from engine.pipeline.feature_cache import FeatureCache
    from engine.types import DecodeConfig, RunOptions, RunRequest

    name, config = adapter.info.name, DecodeConfig(TOKENS, TOKENS)
    cache = FeatureCache(folder, 1024)
    wanted: list[tuple[int, ...]] = []

    def check(way: str, ids: tuple[int, ...]) -> None:
        wanted.append(ids)
        if ids != wanted[0] or len(ids) != TOKENS:
            raise RuntimeError(f"{name}: {way} gives other tokens: {ids}")

    @torch.inference_mode()
    def generate() -> None:
        prepared = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
        settings = decode.generation_config(adapter.rules_for(prepared, config))
        ids = adapter.generate(prepared, generation_config=settings)
        check(PLAIN, tuple(ids[0, -TOKENS:].tolist()))

    def staged(way: str, policy: CachePolicy) -> Callable[[], None]:
        def answer() -> None:
            request = RunRequest(sample, name, QUESTION, RunOptions(decode=config, cache=policy))
            result = single_run.run(adapter, request, cache)
            vision = result.span("vision")
            if vision is None or (vision.source == "cached") is not (policy == "use"):
                raise RuntimeError(f"{name}: its features were not as {policy!r} has them")
            check(way, result.generation.token_ids)

        return answer

    generate()
    ways = {"in stages": staged("in stages", "refresh"),
            "from cached features": staged("from cached features", "use")}  # fmt: skip
    ways["in stages"]()  # fills the cache
    found: list[Row] = []
    for way, answer in ways.items():
        times = by_turns({way: answer, PLAIN: generate}, rounds)
        found += rows(f"{FRAMES} pictures and {TOKENS} tokens, {way}, {name}", times)
    return found


if __name__ == "__main__":
    main("families", measure, __doc__)
