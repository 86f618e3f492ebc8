"""report, bundle and gate: runs, or published result files, in every format of reports; runs as a
folder that opens anywhere; whether a run is worse than an earlier one."""

import argparse
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine import settings
from engine.cli.common import JSON, add_flags, command, flag, out, percent, read_progress, say
from engine.errors import BadInput
from engine.media_options import check_range
from engine.published.read import RecordsError, ResultFile, imported_sets, read_files
from engine.quoting import count, printable
from engine.storage import new_file, run_store
from engine.storage.run_store import Run

FORMATS = ("md", "html", "csv", "json", "parquet", "every-eval-ever")
DOCUMENTS = ("md", "html")
LARGEST, MOST_LARGEST = 1200, 10_000  # pixels of a bundle's pictures
CODES = {"no worse": 0, "worse": 1, "changed": 1, "undecided": 3}
METRIC_HELP = (
    "what is compared (default: total,ttft,tpot,tokens,accuracy); also: decode, vision, prefill "
    "and others, and answers: then a changed token id is worse"
)


def add(commands: Any) -> None:
    imported = "published result files, or a set saved by `import --save` (md or html)"
    flags = {
        "runs": flag(str, "folder or name of a run", form="RUN", nargs="*"),
        "--imported": flag(str, imported, form="FILE|FOLDER|NAME", nargs="+"),
        "--bundle": flag(Path, "what `bundle` wrote, or its ZIP: it is checked, then read"),
        "--format": flag(FORMATS, default="md"),
        "--out": flag(Path, "a file to write (default: standard output)"),
    }
    command(commands, "report", _report, "write a report of one or more runs", flags)
    folder = {
        "runs": flag(str, "folder or name of a run", form="RUN", nargs="+"),
        "--out": flag(Path, "the new folder", required=True),
        "--largest": flag(int, "longer side of pictures in pixels; 0: no media", default=LARGEST),
    }
    command(commands, "bundle", _bundle, "write runs as a folder that opens anywhere", folder)

    _add_gate(commands)


def _add_gate(commands: Any) -> None:
    flags = {
        "runs": flag(str, "BASE and NEW: a folder or name of a run", form="RUN", nargs="+"),
        "--metric": flag(str, METRIC_HELP, form="NAME,..."),
        "--margin": flag(
            str, "what counts as equal (5%%); of accuracy in percentage points", "5%", "PERCENT"
        ),
        "--undecided": flag(("ok", "fail"), "exit code 0 or 1 instead of 3 if undecided"),
    }
    codes = "exit code 0 no worse, 1 worse, 3 undecided"
    more = f"Compares NEW with BASE, two runs of the same samples: {codes}, 2 for a user error."
    gate = command(commands, "gate", _gate, f"compare two runs: {codes}", flags, description=more)
    markdown = {"--md": flag(bool, "print Markdown, for a pull request")}
    add_flags(gate.add_mutually_exclusive_group(), {**JSON, **markdown})


def _report(options: argparse.Namespace) -> int:
    _check(options)
    if options.imported:
        return _imported(options)
    if options.bundle:
        from engine.report import bundle

        with bundle.opened(options.bundle) as runs:
            say(f"{options.bundle} is as it was written.")
            return _runs(options, runs)
    return _runs(options, _read(options.runs))


def _read(names: Iterable[str]) -> list[Run]:
    base = settings.load().runs_dir
    folders = dict.fromkeys(run_store.find(name, base).resolve() for name in names)
    return [run_store.read(folder) for folder in folders]  # a run named twice counts once


def _runs(options: argparse.Namespace, runs: list[Run]) -> int:
    from engine.report import export

    if options.format == "parquet":
        new_file.write(options.out, export.data(runs, "parquet"))
        say(f"Written: {options.out}")
    elif options.format == "every-eval-ever":
        _records(options.out, runs)
    else:
        _give(options, export.write(runs, options.format))
    for run in runs:
        for problem in run.problems:
            say(f"Run {run.id}: {problem}")
    return 0


def _records(folder: Path, runs: list[Run]) -> None:
    """A file per model: their validator reads one record from each."""
    from engine.report import drawers, export

    every = list(export.every_eval_ever(runs))
    found = [one for one in every if one[1]["evaluation_results"]]
    if without := ", ".join(label for label, record in every if not record["evaluation_results"]):
        say(f"No figure, so no file: {without}.")
    if not found:
        raise BadInput("No model of these runs has a figure, so there is nothing to write.")
    new_file.make_folder(folder)
    for number, (label, record) in enumerate(found, 1):
        name = re.sub(r"[^\w.-]+", "-", label)[:80].strip("-.")
        new_file.write(folder / f"{number}-{name}.json", drawers.as_json(record).encode())
    say(f"Written: {count(len(found), 'file')} in {folder}. {export.UNTOLD}")


def _bundle(options: argparse.Namespace) -> int:
    from engine.report import bundle

    check_range("largest", options.largest, 0, MOST_LARGEST)
    bundle.write(_read(options.runs), options.out, options.largest)
    say(f"Written: {options.out / bundle.INDEX}")
    return 0


def _check(options: argparse.Namespace) -> None:
    if sum(map(bool, (options.runs, options.imported, options.bundle))) != 1:
        raise BadInput(
            "Name either runs, or published files after --imported, or a folder after --bundle."
        )
    if options.imported and options.format not in DOCUMENTS:
        raise BadInput(f"--format {options.format} is for runs: published files become md or html.")
    if options.format in ("parquet", "every-eval-ever") and options.out is None:
        kind = "file" if options.format == "parquet" else "new folder"
        raise BadInput(f"--format {options.format} is no text: name a {kind} with --out.")
    if options.out is not None and options.format != "every-eval-ever":
        new_file.refuse(options.out)


def _imported(options: argparse.Namespace) -> int:
    """Exit code 2 if a given file is not usable, or no file of a given folder is."""
    from engine.published.claims import published_report as imported_report

    files: list[ResultFile] = []
    wrong = False
    for name in options.imported:
        found = _files(name)
        unread = [file for file in found if file.status == "unknown"]
        for file in unread:
            say(file.message)
        wrong = wrong or len(unread) == len(found)
        files += found
    if not files:
        raise BadInput("The named sets contain no files: import files again.")
    if all(file.status == "unknown" for file in files):
        return 2  # nothing to report
    _give(options, imported_report.document(files, options.format))
    return 2 if wrong else 0


def _files(name: str) -> tuple[ResultFile, ...]:
    """The files of a path, or else of a kept set."""
    path = Path(name)
    there = os.path.lexists(path)
    if name in imported_sets.names() and not there:
        return imported_sets.load(name)
    if not there:
        known = ", ".join(imported_sets.names()) or "none"
        raise RecordsError(
            f"{read_files.shown(name)} is not a file, a folder or a kept set (kept sets: {known})."
        )
    return tuple(read_files.read(read_files.find([path]), read_progress))


def _give(options: argparse.Namespace, text: str) -> None:
    if options.out is not None:
        new_file.write(options.out, text.encode(errors="replace"))
        say(f"Written: {options.out}")
        return
    sys.stdout.write(printable(text))


def _gate(options: argparse.Namespace) -> int:
    if len(options.runs) != 2:
        raise BadInput(f"gate compares two runs; {len(options.runs):,} named here: name two.")
    from engine.analysis import gate
    from engine.report import drawers, gate_text

    metrics = None if options.metric is None else gate.metric_names(options.metric)
    share = percent("--margin", options.margin)
    values = []
    for name in options.runs:
        run = run_store.read(run_store.find(name, settings.load().runs_dir))
        for problem in run.problems:
            say(f"{run.folder}: {problem}")
        values.append(gate.values_of(run))
    report = gate.gate(values[0], values[1], metrics, share)
    blocks = gate_text.blocks(report)
    if options.md:
        sys.stdout.write(drawers.markdown(blocks))
    else:
        out(gate_text.as_json(report), blocks[1:], options)
    if report.verdict == "undecided" and options.undecided:
        return 0 if options.undecided == "ok" else 1
    return CODES[report.verdict]
