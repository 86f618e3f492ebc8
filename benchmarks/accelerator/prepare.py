"""What the parts work on: three checkpoints of random weights in files, and a demo dataset.

`python -m benchmarks.accelerator.prepare FOLDER`: checkpoints in the sizes and the form of the
published ones (14 GB each, unless --layers or --hidden make them small), their models.toml, and
scenes in the form of a real dataset.  What is there already is not made again.

Boundary: writes one folder; measures nothing.
"""

import argparse
import json
import shutil
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from benchmarks import random_models
from engine.demo.demo_dataset import INDEX
from engine.machine import device

# family -> name in models.toml, label
NAMES = {
    "eventgpt": ("eventgpt-7b", "EventGPT-7b"),
    "video_llava": ("video-llava-7b", "Video-LLaVA-7B"),
    "llava": ("llava-1.5-7b", "LLaVA-1.5-7b"),
}
MODELS, SCENES = "models.toml", "scenes"
FIRST_SEED = 300_000  # scenes that no demo checkpoint was trained on
SHARD = "5GB"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--layers", type=int, help="so many layers instead of the real number")
    parser.add_argument("--hidden", type=int, help="this width instead of the real one")
    options = parser.parse_args(arguments)
    if options.scenes < 1:
        parser.error("--scenes must be at least 1")
    scenes(options.folder / SCENES, range(FIRST_SEED, FIRST_SEED + options.scenes))
    checkpoints(options.folder, device.choose(), options.layers, options.hidden)


def checkpoints(folder: Path, on: torch.device, layers: int | None, hidden: int | None) -> Path:
    """The checkpoints and the models.toml that names them."""
    rows = []
    for family, (name, label) in NAMES.items():
        if not (folder / name / "config.json").is_file():
            _checkpoint(folder / name, family, on, layers, hidden)
            device.release()
        rows.append(
            f'[[model]]\nname = "{name}"\nlabel = "{label}"\nfamily = "{family}"\n'
            f'checkpoint = "./{name}"\ndtype = "{random_models.DTYPES[family]}"\n'
        )
    (folder / MODELS).write_text("\n".join(rows), encoding="utf-8")
    return folder / MODELS


def _checkpoint(
    folder: Path, family: str, on: torch.device, layers: int | None, hidden: int | None
) -> None:
    """The weights are drawn on the device, which is quick there, and saved by transformers."""
    fresh = folder.with_name(f".{folder.name}")
    shutil.rmtree(fresh, ignore_errors=True)
    adapter = random_models.build(family, None, on, layers, hidden)
    adapter.model.save_pretrained(fresh, max_shard_size=SHARD)
    _tokenizer(family).save_pretrained(fresh)
    adapter.image_processor.save_pretrained(fresh)
    fresh.rename(folder)


def _tokenizer(family: str) -> PreTrainedTokenizerFast:
    """EventGPT's has no picture placeholders: its embedding has no rows for them."""
    return random_models.tokenizer(pictures=family != "eventgpt")


def scenes(root: Path, seeds: Iterable[int]) -> Path:
    """A dataset of demo scenes, rendered by all cores."""
    if (root / INDEX).is_file():
        return root
    root.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        records = list(pool.map(partial(_scene, root), seeds))
    (root / INDEX).write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return root


def _scene(root: Path, seed: int) -> dict[str, Any]:
    from engine.demo.scenes import render
    from engine.demo.writing import write_scene

    return write_scene(root, render(seed))


if __name__ == "__main__":
    main()
