"""Helpers of several commands: output, lists of names, the dataset, common flags.

Boundary: results go to standard output, through `out`; everything else to standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from engine import settings
from engine.errors import BadInput
from engine.media import dataset
from engine.media.dataset import Dataset
from engine.quoting import printable, quoted
from engine.types import BACKENDS, EXTENTS, PIXELS, Extent, Pixels

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


def names(text: str) -> list[str]:
    """The names in --models in order, each once."""
    found = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not found:
        raise BadInput(f"--models is {quoted(text)}: name at least one model.")
    return found


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


def add_extent(sub: argparse.ArgumentParser, default: Extent | None = None) -> None:
    """Adds --extent; default None if a plan has its own default."""
    text = (
        "size of pictures drawn from raw events; slice: each as large as its own slice, as in "
        "EventGPT's published code (default); stream: all as large as the whole stream"
    )
    sub.add_argument("--extent", choices=EXTENTS, default=default, help=text)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
