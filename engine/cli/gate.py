"""gate: whether a run is worse than an earlier one, as an exit code, text, JSON or Markdown."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from engine import settings
from engine.cli.common import JSON, add_flags, command, flag, percent, say
from engine.errors import BadInput
from engine.quoting import printable, shown
from engine.storage import run_header, run_store, run_values

if TYPE_CHECKING:
    from engine.analysis.gate import Verdict
    from engine.storage.run_values import RunValues

CODES: dict[Verdict, int] = {"no worse": 0, "worse": 1, "changed": 1, "undecided": 3}


RUNS_HELP = (
    "BASE and NEW: a folder or name of a run, a file made by --pin, or a folder of at least five "
    "runs of the same code"
)
METRIC_HELP = (
    "what is compared (default: total,ttft,tpot,tokens,accuracy); also: decode, vision, prefill "
    "and others, and answers: then a changed token id is worse"
)
MARGIN_HELP = "what counts as equal (5%%); of accuracy in percentage points"


def add(commands: Any) -> None:
    flags = {
        "runs": flag(str, RUNS_HELP, form="RUN", nargs="+"),
        "--metric": flag(str, METRIC_HELP, form="NAME,..."),
        "--margin": flag(str, MARGIN_HELP, "5%", "PERCENT"),
        "--undecided": flag(("ok", "fail"), "exit code 0 or 1 instead of 3 if undecided"),
        "--pin": flag(Path, "write the values of RUN to a baseline file", form="FILE"),
    }
    codes = "exit code 0 no worse, 1 worse, 3 undecided"
    more = f"Compares NEW with BASE, two runs of the same samples: {codes}, 2 for a user error."
    gate = command(commands, "gate", _gate, f"compare two runs: {codes}", flags, description=more)
    markdown = {"--md": flag(bool, "print Markdown, for a pull request")}
    add_flags(gate.add_mutually_exclusive_group(), {**JSON, **markdown})


def _gate(options: argparse.Namespace) -> int:
    if options.pin is not None:
        return _pin(options)
    if len(options.runs) != 2:
        raise BadInput(f"gate compares two runs, and {len(options.runs):,} are named: name two.")
    from engine.analysis import gate
    from engine.report import drawers, gate_text

    metrics = None if options.metric is None else gate.metric_names(options.metric)
    share = percent("--margin", options.margin)
    base, new = (_side(name) for name in options.runs)
    report = gate.gate(base, new, metrics, share)
    if options.json:
        print(drawers.as_json(gate_text.as_json(report)))
    elif options.md:
        sys.stdout.write(drawers.markdown(gate_text.blocks(report)))
    else:
        print(printable(drawers.terminal(gate_text.blocks(report)[1:])))
    if report.verdict == "undecided" and options.undecided:
        return 0 if options.undecided == "ok" else 1
    return CODES[report.verdict]


def _pin(options: argparse.Namespace) -> int:
    if len(options.runs) != 1:
        raise BadInput(f"--pin keeps one run, and {len(options.runs):,} are named: name one.")
    values = _values(options.runs[0])
    if not values.finished:
        raise BadInput(
            f"The run {values.id} is not finished: continue it with `bench --resume`, then pin it."
        )
    run_values.write(values, options.pin)
    say(f"Written: {shown(options.pin)}")
    return 0


def _side(name: str) -> RunValues:
    """A run; or the first run of a folder of several, with the others."""
    from engine.analysis.gate import MIN_RUNS

    folder = Path(name)
    # A name that cannot be one of a file is none here; Path would raise.
    several = sorted(folder.glob(f"*/{run_header.HEADER}")) if os.path.isdir(name) else []  # noqa: PTH112
    if not several or (folder / run_header.HEADER).is_file():
        return _values(name)
    if 1 < len(several) < MIN_RUNS:
        raise BadInput(
            f"{shown(folder)} holds {len(several)} runs: name one of them, or a folder of at least "
            f"{MIN_RUNS}."
        )
    first, *others = (_values(str(file.parent)) for file in several)
    return msgspec.structs.replace(first, others=tuple(others))


def _values(name: str) -> RunValues:
    """The values of a run, or those that a baseline file keeps."""
    from engine.analysis.gate import values_of

    if os.path.isfile(name):  # noqa: PTH113
        return run_values.read(Path(name))
    run = run_store.read(run_store.find(name, settings.load().runs_dir))
    for problem in run.problems:
        say(f"{run.folder}: {problem}")
    return values_of(run)
