"""Helpers of several commands: output, lists of names, the dataset, common flags.

Boundary: results go to standard output, through `out`; everything else to standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine import settings
from engine.errors import BadInput
from engine.media import dataset
from engine.media.dataset import Dataset
from engine.media_options import perturbations, split, window
from engine.models import registry, variants
from engine.models.variants import JOIN
from engine.quoting import printable, quoted
from engine.types import BACKENDS, EXTENTS, PIXELS, VARIANT_MARK, Extent, Pixels

MODELS_HELP = (
    "comma-separated names from models.toml; @ and words joined by + choose a variant, as in "
    "llava-demo@events+float16 (input: events, video, image; dtype: float32, float16, bfloat16; "
    "quantization: 8bit, 4bit; pixels: exact, fast)"
)
SHOW_HELP = (
    "what a model is shown: events, video or image, for all models or for one (MODEL=events); may "
    "be repeated; the result is named MODEL@events"
)
DATASET_HELP = "dataset root (default: the demo dataset)"


def say(text: str) -> None:
    """Progress and errors, on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def out(value: object, text: str, options: argparse.Namespace) -> None:
    """The result: one JSON document with --json, else the text."""
    print(as_json(value) if options.json else printable(text))


def as_json(value: object) -> str:
    return json.dumps(value, indent=1, allow_nan=False)


def read_dataset(root: Path | None) -> Dataset:
    """The dataset in this folder, or the demo dataset, which is made at first use."""
    if root is not None:
        return dataset.read(root)
    from engine.demo.demo_dataset import ensure_dataset

    return dataset.read(ensure_dataset(settings.load().demo_dir))


def add_models(sub: argparse.ArgumentParser, required: bool = True) -> None:
    """Adds --models and --show; model_names() reads both."""
    sub.add_argument("--models", required=required, help=MODELS_HELP)
    sub.add_argument("--show", action="append", metavar="[MODEL=]INPUT", help=SHOW_HELP)


def model_names(options: argparse.Namespace) -> list[str]:
    """The names of --models in order, as variants where --show says so; BadInput for a repeat."""
    found = names(options.models)
    for text in options.show or ():
        found = _shown(found, text)
    return registry.distinct(found)


def names(text: str) -> list[str]:
    """The names in a comma-separated list; BadInput if there is none."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise BadInput(f"--models is {quoted(text)}: name at least one model.")
    return found


def _shown(names: Sequence[str], text: str) -> list[str]:
    """The names after one --show: of the named model, or of all."""
    model, _, kind = text.rpartition("=")
    if kind not in variants.SHOWS:
        known = ", ".join(variants.SHOWS)
        raise BadInput(f"--show is {quoted(text)}: write one of {known}, or MODEL=events.")
    if "=" in text and model not in names:
        raise BadInput(f"--show {quoted(text)} names no model of --models: name one of them.")
    return [_with(name, kind) if model in ("", name) else name for name in names]


def _with(name: str, word: str) -> str:
    """The name of a variant with one more word; an unknown name as it is."""
    item = registry.find(name)
    joined = f"{name}{JOIN if VARIANT_MARK in name else VARIANT_MARK}{word}"
    return registry.entry(joined).name if item else name


def add_backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        help="backend of token steps; auto (default): compiled on CUDA, eager elsewhere",
    )


def add_pixels(sub: argparse.ArgumentParser, default: Pixels | None = None) -> None:
    """Adds --pixels; default None if a plan has its own default."""
    text = "exact: the image processor's values (default); fast: some differ by a grey level or two"
    sub.add_argument("--pixels", choices=PIXELS, default=default, help=text)


def add_media(sub: argparse.ArgumentParser, default: Extent | None = None) -> None:
    """Adds --extent, --window, --split; default None if a plan has its own default."""
    add_extent(sub, default)
    sub.add_argument(
        "--window",
        metavar="START+LENGTH",
        help="the part of each recording that is shown, as in 1.25s+50ms (default: all of it)",
    )
    sub.add_argument(
        "--split",
        metavar="RULE[:PARTS]",
        help="how a recording becomes event pictures; count (default): equal numbers of events; "
        "time: equal durations; densest: the densest 25 ms of each; as in time:8 (default: 5)",
    )


def add_perturb(sub: argparse.ArgumentParser) -> None:
    """Adds --perturb and --perturb-seed."""
    sub.add_argument(
        "--perturb",
        metavar="CHANGE:STRENGTH,...",
        help="changes the events or frames before the model sees them: drop, jitter, hot, window, "
        "rate; as in drop:0.3,jitter:500us; bench runs several strengths one after another, as in "
        "drop:0/0.1/0.3",
    )
    sub.add_argument("--perturb-seed", type=int, help="of the changes (default: 0)")


def media_options(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of MediaOptions that were given; BadInput for an invalid one."""
    read = {"window": window, "split": split, "perturb": perturbations}
    given = {name: getattr(options, name, None) for name in (*read, "extent", "perturb_seed")}
    known = {name: value for name, value in given.items() if value is not None}
    return {name: read[name](value) if name in read else value for name, value in known.items()}


def add_extent(sub: argparse.ArgumentParser, default: Extent | None = None) -> None:
    """Adds --extent; default None if a plan has its own default."""
    text = (
        "size of pictures drawn from raw events; slice: each as large as its own slice, as in "
        "EventGPT's published code (default); stream: all as large as the whole stream"
    )
    sub.add_argument("--extent", choices=EXTENTS, default=default, help=text)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
