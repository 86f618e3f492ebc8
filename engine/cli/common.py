"""What several commands share: where text goes, how lists are written, which dataset is meant.

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
from engine.quoting import quoted
from engine.types import BACKENDS, EXTENTS, PIXELS, Extent, Pixels

DATASET_HELP = "dataset root (default: the demo dataset)"


def say(text: str) -> None:
    """Progress and errors, on standard error."""
    print(plain(text), file=sys.stderr, flush=True)


def out(value: object, text: str, options: argparse.Namespace) -> None:
    """The result: one JSON document with --json, else the text."""
    print(as_json(value) if options.json else plain(text))


def plain(text: str) -> str:
    """Text without control characters, so that an answer cannot steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def as_json(value: object) -> str:
    return json.dumps(value, indent=1, allow_nan=False)


def read_dataset(root: Path | None) -> Dataset:
    """The dataset below this root, or the demo dataset, made on its first use."""
    if root is not None:
        return dataset.read(root)
    from engine.demo.demo_dataset import ensure_dataset

    return dataset.read(ensure_dataset(settings.load().demo_dir))


def names(text: str) -> list[str]:
    """The names of --models in their order, each once."""
    found = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not found:
        raise BadInput(f"--models is {quoted(text)}: name at least one model.")
    return found


def add_backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        help="of the token steps; auto (the default) is compiled on CUDA and eager elsewhere",
    )


def add_pixels(sub: argparse.ArgumentParser, default: Pixels | None = None) -> None:
    """The flag that says how pictures are resized; None by default where a plan knows it."""
    told = "exact: the image processor's values (default); fast: at times a grey level or two off"
    sub.add_argument("--pixels", choices=PIXELS, default=default, help=told)


def add_extent(sub: argparse.ArgumentParser, default: Extent | None = None) -> None:
    """The flag that says how large event pictures are; None by default where a plan knows it."""
    told = (
        "size of pictures drawn from raw events; slice: each as its own slice, as in EventGPT's "
        "published code (default); stream: all as the whole stream"
    )
    sub.add_argument("--extent", choices=EXTENTS, default=default, help=told)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document and nothing else")
