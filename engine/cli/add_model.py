"""models add: write an entry for a folder or a name on the hub into models.toml.

Boundary: reads what is on this machine; uses no network and loads no model.
"""

from __future__ import annotations

import argparse
from typing import get_args

from engine.cli.common import out, say
from engine.errors import BadInput
from engine.models import new_entry
from engine.models.checkpoint import DTYPE_BYTES
from engine.types import MediaKind

WORD = "add"
_FIELDS = ("name", "label", "dtype", "shows")


def add(models: argparse.ArgumentParser) -> None:
    """Adds what follows `models add`."""
    models.add_argument(
        "checkpoint",
        nargs="?",
        help="after the word add: a folder, or a name on the Hugging Face hub, to enter",
    )
    new = models.add_argument_group("models add")
    new.add_argument("--name", help="its name in models.toml (default: the last part of its name)")
    new.add_argument("--label", help="its name on the pages")
    new.add_argument("--dtype", choices=DTYPE_BYTES, help="default: that of its files, or bfloat16")
    new.add_argument("--shows", choices=get_args(MediaKind), help="what the model is shown")
    new.add_argument("--dry-run", action="store_true", help="print the entry, write nothing")


def asked(options: argparse.Namespace) -> bool:
    """Whether this is `models add`; BadInput if its flags are used without it."""
    if options.model == WORD and options.checkpoint is None:
        raise BadInput("models add needs a folder or a name on the hub: name one.")
    if options.model == WORD:
        return True
    if options.checkpoint is not None:
        raise BadInput("models prints one card at a time: name one model, or write models add.")
    used = [flag for flag in _FIELDS if getattr(options, flag) is not None]
    if used or options.dry_run:
        flag = used[0] if used else "dry-run"
        raise BadInput(f"--{flag} belongs to models add: write models add and a checkpoint.")
    return False


def run(options: argparse.Namespace) -> int:
    if options.full:
        raise BadInput("--full hashes a model's files: use it with models NAME.")
    new = new_entry.make(
        options.checkpoint, **{field: getattr(options, field) for field in _FIELDS}
    )
    if not options.dry_run:
        new.write()
        say(f"{new.entry.name} is now in {new.path}.")
    if not new.here:
        say(
            f"{new.entry.name}: its files are not here, so it is checked after "
            f"`python -m engine download {new.entry.name}`."
        )
    row = {"name": new.entry.name, "written": not options.dry_run, "checked": new.here}
    out(row | {"entry": new.lines}, new.lines.rstrip(), options)
    return 0
