"""import: published result files, their figures, and what the audit finds in them."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.analysis.acceptance import GAMMA
from engine.cli.common import JSON, command, flag, out, read_progress, say
from engine.errors import BadInput
from engine.published.audit import audit
from engine.published.claims import published_report
from engine.published.claims.headlines import headlines
from engine.published.read import file_summary, imported_sets, read_files
from engine.published.read.cells import quoted
from engine.quoting import count
from engine.report.blocks import Bullets


def add(commands: Any) -> None:
    flags = {
        "paths": flag(Path, form="FILE|FOLDER", nargs="+"),
        **JSON,
        "--save": flag(str, "keep the set for the page Published files", form="NAME"),
        "--gamma": flag(int, f"draft length for acceptance (default {GAMMA})", GAMMA),
    }
    command(commands, "import", _run, "published result files, read and audited", flags)


def _run(options: argparse.Namespace) -> int:
    if not 1 <= options.gamma <= 64:
        raise BadInput(f"--gamma is {quoted(options.gamma)}: choose a draft length from 1 to 64.")
    if options.save is not None:
        imported_sets.path_of(options.save)
    found = read_files.find(options.paths)
    files = []
    for file in read_files.read(found, read_progress):
        if file.status == "unknown":
            say(file.message)
        files.append(file)
    unknown = [file.status == "unknown" for file in files]
    if options.save is not None:
        usable = [pair for pair, bad in zip(found, unknown, strict=True) if not bad]
        if not usable:
            raise BadInput("No file could be read: nothing is kept.")
        kept = [(shown, read_files.data_of(path, shown)) for shown, path in usable]
        imported_sets.save(options.save, kept)
        say(f"Kept {count(len(usable), 'file')} as {options.save}.")
    claims = headlines(files)
    table = {
        "files": [file_summary.as_dict(file, audit(file), options.gamma) for file in files],
        "claims": [asdict(one) for one in claims],
    }
    known = [file for file in files if file.status != "unknown"]
    shown_claims = [Bullets(tuple(one.line for one in claims))] if known else []
    blocks = [block for file in known for block in published_report.file_blocks(file)]
    if blocks or options.json:
        out(table, [*shown_claims, *blocks], options)
    # Exit code 2 if a given file is not usable, or no file of a given folder is.
    wrong = [bad for bad, (_, path) in zip(unknown, found, strict=True) if path in options.paths]
    return 2 if all(unknown) or any(wrong) else 0
