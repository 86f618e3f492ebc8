"""gate: whether a run is worse than an earlier one, as an exit code, text, JSON or Markdown."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from engine import settings
from engine.cli.common import JSON, add_flags, command, flag, percent, say
from engine.errors import BadInput
from engine.quoting import printable
from engine.storage import run_store

if TYPE_CHECKING:
    from engine.analysis.gate import Verdict

CODES: dict[Verdict, int] = {"no worse": 0, "worse": 1, "changed": 1, "undecided": 3}

METRIC_HELP = (
    "what is compared (default: total,ttft,tpot,tokens,accuracy); also: decode, vision, prefill "
    "and others, and answers: then a changed token id is worse"
)


def add(commands: Any) -> None:
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
    if options.json:
        print(drawers.as_json(gate_text.as_json(report)))
    elif options.md:
        sys.stdout.write(drawers.markdown(gate_text.blocks(report)))
    else:
        print(printable(drawers.terminal(gate_text.blocks(report)[1:])))
    if report.verdict == "undecided" and options.undecided:
        return 0 if options.undecided == "ok" else 1
    return CODES[report.verdict]
