"""Helpers of several commands: output, lists of names, the dataset, common flags."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import settings
from engine.errors import BadInput
from engine.media import dataset
from engine.media.dataset import Dataset
from engine.models import registry, variants
from engine.quoting import printable, quoted
from engine.types import OFFERED, OPTIONS, VARIANT_MARK, RunOptions, value_of

if TYPE_CHECKING:
    from engine.report.blocks import Block

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


def read_progress(done: int, every: int, _name: str) -> None:
    """Says now and then how many of many files are read."""
    if every > 10 and done and done % 10 == 0:
        say(f"{done:,} of {every:,} files read")


def out(value: object, result: str | Iterable[Block], options: argparse.Namespace) -> None:
    """The result: one JSON document with --json, else the text or the blocks."""
    if options.json:
        from engine.report.drawers import as_json  # its templates wait for a document

        print(as_json(value))
    elif isinstance(result, str):
        print(printable(result))
    else:
        from engine.report.drawers import terminal

        print(printable(terminal(result)))


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
    chosen = names(options.models)
    for text in options.show or ():
        model, _, kind = text.rpartition("=")
        if kind not in variants.SHOWS:
            known = ", ".join(variants.SHOWS)
            raise BadInput(f"--show is {quoted(text)}: write one of {known}, or MODEL=events.")
        if "=" in text and model not in chosen:
            raise BadInput(f"--show {quoted(text)} names no model of --models: name one of them.")
        chosen = [_with(name, kind) if model in ("", name) else name for name in chosen]
    return registry.distinct(chosen)


def names(text: str) -> list[str]:
    """The names in a comma-separated list; BadInput if there is none."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise BadInput(f"--models is {quoted(text)}: name at least one model.")
    return found


def _with(name: str, word: str) -> str:
    """The name of a variant with one more word; an unknown name as it is."""
    mark = variants.JOIN if VARIANT_MARK in name else VARIANT_MARK
    return registry.entry(f"{name}{mark}{word}").name if registry.find(name) else name


def add_options(
    sub: argparse.ArgumentParser,
    names: Iterable[str] = tuple(OFFERED),
    kind: type[RunOptions] = RunOptions,
) -> None:
    """Adds a flag for each of these options; their values are None unless given.

    `kind` has the defaults that the help texts name.
    """
    for name in names:
        one, default = OPTIONS[name], value_of(kind, name)
        text = one.flag if default in (None, ()) else f"{one.flag} (default: {default})"
        sub.add_argument(
            flag_of(name),
            type=type(default) if isinstance(default, int | float) else str,
            choices=tuple(one.choices) or None,
            metavar=one.form,
            help=text,
        )


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def given_options(options: argparse.Namespace) -> dict[str, Any]:
    """The values of the options that were given, by name; BadInput for a text of another form."""
    given = {name: getattr(options, name, None) for name in OFFERED}
    return {
        name: read(value) if (read := OPTIONS[name].read) else value
        for name, value in given.items()
        if value is not None
    }


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
