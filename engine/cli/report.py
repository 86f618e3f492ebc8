"""report: runs as Markdown, HTML, CSV, JSON or a trace.

Boundary: finds the runs and says where the text goes; a file is whole or not there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine import settings, store
from engine.cli.common import plain, say
from engine.errors import StoreError

FORMATS = ("md", "html", "csv", "json", "trace")


def add(commands: Any) -> None:
    sub = commands.add_parser("report", help="what runs found, as a document or as data")
    sub.add_argument("runs", nargs="+", metavar="RUN", help="folder or name of a run")
    sub.add_argument("--format", default="md", choices=FORMATS)
    sub.add_argument("--out", type=Path, help="a file to write (default: standard output)")
    sub.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> int:
    from engine import report

    base = settings.load().runs_dir
    runs = [store.read(store.find(name, base)) for name in options.runs]
    pieces = report.write(runs, options.format)
    if options.out is None:
        for piece in pieces:
            sys.stdout.write(plain(piece))
    else:
        _write(options.out, pieces)
    for run in runs:
        for problem in run.problems:
            say(f"{run.folder}: {problem}")
    return 0


def _write(path: Path, pieces: Iterable[str]) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(pieces)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(
            f"{path} cannot be written ({error.strerror}): make room or name another file."
        ) from error
    say(f"Written: {path}")
