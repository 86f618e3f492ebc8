"""download: fetch a model of models.toml from the Hugging Face hub, into its cache or a folder.

The only command that uses the network.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine import settings
from engine.cli.common import command, flag, say
from engine.models import registry
from engine.quoting import printable


def add(commands: Any) -> None:
    flags = {
        "model": flag(str, "a name from models.toml"),
        "--to": flag(str, "a folder (default: the hub's own cache)"),
    }
    text = "fetch a checkpoint from the Hugging Face hub"
    command(commands, "download", _download, text, flags)


def _download(options: argparse.Namespace) -> int:
    from engine.models import hub

    entry = registry.entry(options.model)
    to = settings.expand(options.to) if options.to else None
    if entry.folder is None:
        say(f"{entry.name}: downloading {entry.checkpoint} ...")
    folder = hub.fetch(entry, to)
    print(printable(str(folder)))
    if to is not None:
        say(f"{entry.name}: set checkpoint = {Path(to).as_posix()!r} in models.toml to use it.")
    return 0
