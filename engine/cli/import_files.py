"""import: published result files, their figures, and what the audit finds in them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.analysis.acceptance import GAMMA, amount
from engine.cli.common import add_json, out, say
from engine.errors import BadInput
from engine.published.audit import AuditFinding, audit
from engine.published.claims.headlines import headlines
from engine.published.read import file_summary, parsing, read_files
from engine.published.read.cells import quoted
from engine.published.read.record_types import ResultFile, milliseconds
from engine.quoting import count, precise_ms

STEP = 10  # files between two lines of progress


def add(commands: Any) -> None:
    parser = commands.add_parser("import", help="published result files, read and audited")
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE|FOLDER")
    add_json(parser)
    parser.add_argument("--save", metavar="NAME", help="keep the set for the Results page")
    parser.add_argument(
        "--gamma", type=int, default=GAMMA, help=f"draft length for acceptance (default {GAMMA})"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    _check(options)
    found = parsing.find(options.paths)
    files, audited = [], []
    for file in read_files.iterate(found, _progress):
        if file.status == "unknown":
            say(file.message)
        files.append(file)
        audited.append((file, audit(file)))
    if options.save is not None:
        _save(options.save, found, files)
    claims = headlines(files, intervals=False)
    table = {
        "files": [file_summary.as_dict(file, rules, options.gamma) for file, rules in audited],
        "claims": [one.as_dict() for one in claims],
    }
    texts = [_text(file, rules) for file, rules in audited if file.status != "unknown"]
    verdicts = ["\n".join(one.line for one in claims)] if texts else []  # without files: no claims
    out(table, "\n\n".join([*verdicts, *texts]), options)
    return _code(options.paths, found, files)


def _check(options: argparse.Namespace) -> None:
    """Checks the options before the work, so that mistakes fail early."""
    if not 1 <= options.gamma <= 64:
        raise BadInput(f"--gamma is {quoted(options.gamma)}: choose a draft length from 1 to 64.")
    if options.save is not None:
        from engine.published.read import imported_sets

        imported_sets.check_name(options.save)


def _code(paths: list[Path], found: list[tuple[str, Path]], files: list[ResultFile]) -> int:
    """Exit code 2 if a given file is not usable, or no file of a given folder is."""
    named = set(paths)
    bad = [file.status == "unknown" for file in files]
    wrong = [unknown for unknown, (_, path) in zip(bad, found, strict=True) if path in named]
    return 2 if all(bad) or any(wrong) else 0


def _progress(done: int, every: int, _name: str) -> None:
    if every > STEP and done % STEP == 0:
        say(f"{done:,} of {every:,} files read")


def _save(name: str, found: list[tuple[str, Path]], files: list[ResultFile]) -> None:
    """Keeps the files that could be read."""
    from engine.published.read import imported_sets

    usable = [pair for pair, file in zip(found, files, strict=True) if file.status != "unknown"]
    if not usable:
        raise BadInput("No file could be read: nothing is kept.")
    imported_sets.save(name, [(shown, parsing.read(path, shown)) for shown, path in usable])
    say(f"Kept {count(len(usable), 'file')} as {name}.")


def _text(file: ResultFile, findings: tuple[AuditFinding, ...]) -> str:
    many = amount(file.samples, file.clips)
    held = many if "records" in many else f"{many} records"
    lines = [f"{file.name}  {file.group}  {held}, {len(file.failures)} errors"]
    if file.message:
        lines.append(f"  {file.message}")
    for model in file_summary.models(file):
        lines.append(f"  {model.model} (n {model.n}): claimed {model.claimed}; {model.evidence}")
        lines += [_stage(key, stage) for key, stage in model.stages.items()]
        recorded, corrected = model.tokens_recorded, model.tokens_corrected
        if recorded.n:
            lines.append(
                f"    tokens  mean {_tokens(recorded.mean)}, median {_tokens(recorded.median)}; "
                f"corrected mean {_tokens(corrected.mean)}, median {_tokens(corrected.median)}"
            )
    lines += [f"  {one.severity}: {one.message}" for one in findings]
    return "\n".join(lines)


def _tokens(value: float | None) -> str:
    """The mean in words; None if no count could be corrected."""
    return "not known" if value is None else f"{value:.1f}"


def _stage(key: str, stage: file_summary.Stage) -> str:
    recorded = [stage.recorded.mean, stage.recorded.median, stage.recorded.mean_without_first]
    shown = [_ms(key, value) for value in recorded]
    after = stage.corrected.mean if stage.corrected else None
    corrected = "not measured" if after is None else _ms(key, after)
    return (
        f"    {key}  mean {shown[0]}, median {shown[1]}, without the first {shown[2]}; "
        f"corrected mean {corrected}"
    )


def _ms(key: str, value: float | None) -> str:
    return precise_ms(None if value is None else milliseconds(key, value))
