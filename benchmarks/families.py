"""Models of four families through the generic adapter: cached features against plain generate().

`python -m benchmarks.families`: each model has the form of its family, 43 to 56 million random
weights and is built now.  It is shown 8 frames as images and gives 64 new tokens: by the model's
own generate() on pixels, by the project's stages with features computed, and with features read
from the cache.  A whole answer is measured, from files to tokens, by turns, in CPU time of one
thread.  The run stops if one token differs.
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine import keep, spread

if TYPE_CHECKING:
    from engine.models.adapter import Adapter
    from engine.pipeline.feature_cache import FeatureCache
    from engine.types import Sample

QUESTION = "What are the key elements in this scene?"
PAIRS, TOKENS, FRAMES, WIDE = 9, 64, 8, 240  # frames are squares of WIDE pixels
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
    "qwen3_vl": (
        {
            "text_config": TEXT | MROPE,
            "vision_config": MERGING
            | {"num_position_embeddings": 144, "deepstack_visual_indexes": [2, 4]},
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
    "smolvlm": (
        {"text_config": TEXT, "vision_config": USUAL, "scale_factor": 2},
        {"size": {"longest_edge": SIDE}, "max_image_size": {"longest_edge": SIDE}},
        {"image_seq_len": 36},
    ),
}
Way = Callable[[], tuple[int, ...]]  # one whole answer: its new tokens


def main() -> None:
    import torch
    import transformers

    torch.set_num_threads(1)  # or the threads of a busy machine would wait for each other
    transformers.logging.set_verbosity_error()
    os.environ["STAGESCOPE_DEVICE"] = "cpu"
    models = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STAGESCOPE_CACHE_DIR"] = folder
        sample = _sample(Path(folder) / "frames")
        for family in SIZES:
            print(f"{family} ...", file=sys.stderr, flush=True)
            models[family] = _built_and_measured(family, Path(folder) / family, sample)
    figures = {"threads": 1, "pictures": FRAMES, "new_tokens": TOKENS, "models": models}
    keep("families", figures)


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


def _built_and_measured(family: str, folder: Path, sample: Sample) -> dict[str, Any]:
    from engine.models import registry
    from tests.models import family_checkpoints
    from tests.models.family_rows import ROWS

    family_checkpoints.build(family, folder / "model", row=_sized(family, ROWS[family]))
    file = folder / "models.toml"
    file.write_text(
        f'[[model]]\nname = "{family}"\nlabel = "{family}"\ncheckpoint = "./model"\n'
        'shows = "video"\n',
        encoding="utf-8",
    )
    os.environ["STAGESCOPE_MODELS"] = str(file)
    entry = registry.entry(family)
    try:
        return measure(registry.load(entry), sample, folder / "features")
    finally:
        registry.unload(entry)


def _sized(family: str, row: Any) -> Any:
    """The small checkpoint's row with the sizes of this benchmark."""
    config, pixels, options = SIZES[family]
    return replace(
        row,
        config=_merged(row.config, config),
        image_processor=_merged(row.image_processor, pixels),
        options=_merged(row.options, options),
    )


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """`one` with the values of `other`, also inside of nested tables."""
    found = copy.deepcopy(dict(one))
    for name, value in other.items():
        inner = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = _merged(found[name], value) if inner else copy.deepcopy(value)
    return found


def measure(adapter: Adapter, sample: Sample, folder: Path) -> dict[str, Any]:
    """One model: each way by turns, with its ratio to generate() of the same turn."""
    from engine.pipeline.feature_cache import FeatureCache

    cache = FeatureCache(folder, 1024)
    ways = _ways(adapter, sample, cache)
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    wanted = ways["generate"]()  # warms up; the first "computed" fills the cache
    for turn in range(PAIRS + 1):
        for name in list(ways) if turn % 2 == 0 else reversed(list(ways)):
            start = time.process_time()
            ids = ways[name]()
            if ids != wanted or len(ids) != TOKENS:
                raise RuntimeError(f"{adapter.info.name}: {name} gives other tokens: {ids}")
            if turn:
                cpu[name].append(1000 * (time.process_time() - start))
    cache.close()
    ratios = {
        name: spread([a / b for a, b in zip(cpu["generate"], values, strict=True)])
        for name, values in cpu.items()
    }
    return {
        "parameters": sum(one.numel() for one in adapter.model.parameters()),
        **_prompt(adapter, sample),
        "equal_tokens": True,
        "cpu_ms": {name: spread(values) for name, values in cpu.items()},
        "generate_over_cpu": ratios,
    }


def _ways(adapter: Adapter, sample: Sample, cache: FeatureCache) -> dict[str, Way]:
    """The ways to answer; each does everything from the files on."""
    import torch

    from engine import media
    from engine.decoding import decode
    from engine.pipeline import single_run
    from engine.types import CachePolicy, DecodeConfig, RunRequest

    config = DecodeConfig(TOKENS, TOKENS)

    @torch.inference_mode()
    def generate() -> tuple[int, ...]:
        prepared = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
        settings = decode.generation_config(adapter.rules_for(prepared, config))
        return tuple(adapter.generate(prepared, generation_config=settings)[0, -TOKENS:].tolist())

    def staged(policy: CachePolicy) -> Way:
        def answer() -> tuple[int, ...]:
            name = adapter.info.name
            request = RunRequest(sample, name, QUESTION, decode=config, cache=policy)
            found = single_run.run(adapter, request, cache)
            vision = next(span for span in found.spans if span.name == "vision")
            if (vision.source == "cached") is not (policy == "use"):
                raise RuntimeError(f"{name}: its features were {vision.source}, not as {policy}")
            return found.generation.token_ids

        return answer

    return {"generate": generate, "computed": staged("refresh"), "cached": staged("use")}


def _prompt(adapter: Adapter, sample: Sample) -> dict[str, int]:
    from engine import media

    prepared = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    visual = int(adapter.visual_places(prepared.input_ids).sum())
    return {"context_tokens": prepared.context_tokens, "visual_tokens": visual}


if __name__ == "__main__":
    main()
