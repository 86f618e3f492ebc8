"""samples and models: what a dataset holds, what models.toml holds, and what can run here.

Boundary: lists; loads nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.cli.common import DATASET_HELP, add_json, out, read_dataset, say
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.types import Sample


def add(commands: Any) -> None:
    samples = commands.add_parser("samples", help="what a dataset holds and what can run on it")
    samples.add_argument("--dataset", type=Path, help=DATASET_HELP)
    models = commands.add_parser("models", help="the entries of models.toml")
    for sub, run in ((samples, _samples), (models, _models)):
        add_json(sub)
        sub.set_defaults(run=run)


def _samples(options: argparse.Namespace) -> int:
    found = read_dataset(options.dataset)
    entries = registry.entries()
    reasons = {entry.name: registry.unavailable(entry) for entry in entries}
    table = [_sample_row(sample, entries, reasons) for sample in found.samples]
    for problem in found.problems:
        say(problem)
    out(table, "\n".join(map(_sample_line, table)), options)
    return 0


def _sample_row(
    sample: Sample, entries: tuple[ModelEntry, ...], reasons: dict[str, str | None]
) -> dict[str, Any]:
    return {
        "id": sample.id,
        "sequence": sample.sequence,
        "question": sample.question,
        "reference": sample.reference,
        "truth": dict(sample.truth),
        "problems": list(sample.problems),
        "models": {e.name: sample.missing.get(e.kind) or reasons[e.name] for e in entries},
    }


def _sample_line(row: dict[str, Any]) -> str:
    able = [name for name, reason in row["models"].items() if reason is None]
    text = f"{row['id']}  {row['sequence']}  runs on: {', '.join(able) or 'no model'}"
    return "\n    ".join([text, *row["problems"]])


def _models(options: argparse.Namespace) -> int:
    table = [_model_row(entry) for entry in registry.entries()]
    lines = [f"{r['name']}  {r['family']}  {r['dtype']}  {r['reason'] or 'ready'}" for r in table]
    out(table, "\n".join(lines), options)
    return 0


def _model_row(entry: ModelEntry) -> dict[str, Any]:
    reason = registry.unavailable(entry)
    return {
        "name": entry.name,
        "family": entry.family,
        "checkpoint": entry.checkpoint,
        "revision": entry.revision,
        "dtype": entry.dtype,
        "demo": entry.demo,
        "available": reason is None,
        "reason": reason,
    }
