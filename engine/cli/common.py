"""Helpers of several commands: output, lists of names, the dataset, common flags."""

from __future__ import annotations

import argparse
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BadInput
from engine.models import registry, variants
from engine.public import read_options
from engine.quoting import printable, quoted
from engine.types import OFFERED, OPTIONS, VARIANT_MARK, RunOptions, value_of

if TYPE_CHECKING:
    from engine.report.blocks import Block

MODELS_HELP = (
    "comma-separated names from models.toml; @ and words joined by + choose a variant, as in "
    "llava-demo@events+float16 (input: events, video, image; dtype: float32, float16, bfloat16; "
    "quantization: 8bit, 4bit)"
)
SHOW_HELP = (
    "what a model is shown: events, video or image, for all models or for one (MODEL=events); may "
    "be repeated; the result is named MODEL@events"
)


def say(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


def read_progress(done: int, every: int, _name: str) -> None:
    if every > 10 and done and done % 10 == 0:
        say(f"{done:,} of {every:,} files read")


def out(value: object, result: str | Iterable[Block], options: Namespace) -> None:
    """The result: one JSON document with --json, else the text or the blocks."""
    if options.json:
        from engine.report.drawers import as_json  # its templates wait for a document

        print(as_json(value))
    elif isinstance(result, str):
        print(printable(result))
    else:
        from engine.report.drawers import terminal

        print(printable(terminal(result)))


Flags = dict[str, dict[str, Any]]  # "--name", or "name" of a positional -> add_argument's options


def flag(
    kind: Any, text: str | None = None, default: Any = None, form: str | None = None, **more: Any
) -> dict[str, Any]:
    """kind: the type of its value; bool: it has none; list: it may be repeated; else its choices.
    form: how the help shows the value."""
    if kind is bool:
        return {"action": "store_true", "help": text}
    how: dict[str, Any] = {"type": kind} if isinstance(kind, type) else {"choices": tuple(kind)}
    how = {"type": _path} if kind is Path else how
    how = {"action": "append"} if kind is list else how
    return {"help": text, "default": default, "metavar": form, **how, **more}


def _path(text: str) -> Path:
    if not text.strip():  # Path("") would be the current folder
        raise argparse.ArgumentTypeError("it is empty, name a file or folder")
    return Path(text)


DATASET: Flags = {"--dataset": flag(Path, "dataset root (default: the demo dataset)")}
MODELS: Flags = {
    "--models": flag(str, MODELS_HELP, required=True),
    "--show": flag(list, SHOW_HELP, form="[MODEL=]INPUT"),
}
JSON: Flags = {"--json": flag(bool, "print one JSON document only")}
SAMPLE_HELP = "an id, the start of an id, or sequence/clip"


def command(
    commands: Any, name: str, run: Callable[[Namespace], int], text: str, flags: Flags, **more: Any
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, **more)
    parser.set_defaults(run=run)
    add_flags(parser, flags)
    return parser


def add_flags(parser: argparse._ActionsContainer, flags: Flags) -> None:
    for name, how in flags.items():
        parser.add_argument(name, **how)


def option_flags(
    names: Iterable[str] = tuple(OFFERED), kind: type[RunOptions] = RunOptions
) -> Flags:
    """A flag for each of these options; their values are None unless given.  `kind` has the
    defaults that the help texts name."""
    flags: Flags = {}
    for name in names:
        row, default = OPTIONS[name], value_of(kind, name)
        text = row.help if default in (None, ()) else f"{row.help} Default: {default}."
        values = type(default) if isinstance(default, int | float) else str
        flags[flag_of(name)] = flag(tuple(row.choices) or values, text, form=row.form)
    return flags


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def refuse(options: Namespace, names: Iterable[str], why: str) -> None:
    """BadInput if one of these options is given; `why` follows its flag."""
    for name in names:
        if getattr(options, name) not in (None, False):
            raise BadInput(f"{flag_of(name)} {why}")


def model_names(options: Namespace) -> list[str]:
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


def percent(name: str, text: str) -> float:
    """A percentage such as 5% or 0.05 as a share; BadInput for anything else."""
    given = re.fullmatch(r"\s*(?:(\d{1,3}(?:\.\d{1,6})?) ?%|(0?\.\d{1,6}|0))\s*", text)
    if given is None:
        raise BadInput(f"{name} is {quoted(text)}: write a percentage, as in 5%.")
    return float(given[1]) / 100 if given[1] else float(given[2])


def given_options(options: Namespace) -> dict[str, Any]:
    """The values of the options that were given, by name; BadInput for a text of another form."""
    return read_options({name: getattr(options, name, None) for name in OFFERED})
