"""verify: prove that decoupled inference equals the model's own, on this machine.

Exit code 0 if all checks were done and none failed, 1 otherwise, 2 for a user error.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.cli.common import (
    DATASET_HELP,
    add_json,
    add_models,
    add_options,
    given_options,
    model_names,
    out,
    read_dataset,
    say,
)
from engine.errors import StageScopeError
from engine.jobs.verify_job import VerifyJob
from engine.prompts import DEFAULT_QUESTION
from engine.verify import certificates
from engine.verify.verdict import Verdict, VerifyRequest, choose

SAMPLES = 3
WRONG = ("failed", "skipped")  # outcomes that are not a proof
MARKS = {
    **{"passed": "ok  ", "tie": "tie ", "failed": "FAIL", "unresolved": "open"},
    **{"skipped": "----", "refused": "none"},
}


def add(commands: Any) -> None:
    sub = commands.add_parser("verify", help="check decoupled against the model's own inference")
    add_models(sub)
    sub.add_argument("--dataset", type=Path, help=DATASET_HELP)
    sub.add_argument("--samples", type=int, help=f"how many, evenly spread (default: {SAMPLES})")
    sub.add_argument("--runs", type=int, default=VerifyRequest.runs, help="timed warm runs")
    sub.add_argument("--prompt", help=f"the question (default: {DEFAULT_QUESTION!r})")
    sub.add_argument(
        "--batch",
        type=int,
        default=VerifyRequest.batch,
        help="size of the compared batch; larger batches are not covered",
    )
    add_options(sub, ("max_new_tokens", "backend", "pixels", "extent"))
    add_json(sub)
    sub.set_defaults(run=_verify)


@dataclass(eq=False, kw_only=True)
class _PrintingVerifyJob(VerifyJob):
    """A verification that prints its steps and failures on standard error."""

    def doing(self, model: str, sample: str, what: str) -> None:
        if sample != self._doing[1] or model != self._doing[0]:
            say(f"{model}: {f'sample {sample}' if sample else what} ...")
        super().doing(model, sample, what)

    def found(self, verdict: Verdict) -> None:
        super().found(verdict)
        if verdict.outcome in WRONG:
            say(f"{verdict.model}: {verdict.title}: {verdict.sentence}")


def _verify(options: argparse.Namespace) -> int:
    chosen = model_names(options)
    found = read_dataset(options.dataset)
    number = min(SAMPLES, len(found.samples)) if options.samples is None else options.samples
    request = VerifyRequest(
        tuple(chosen),
        choose(found.samples, number),
        options.prompt if options.prompt is not None else DEFAULT_QUESTION,
        runs=options.runs,
        batch=options.batch,
        **given_options(options),
    )
    job = _PrintingVerifyJob(request=request, dataset=str(found.root))
    job.work()
    if job.certificate is None:
        raise StageScopeError(job.error)
    if job.unkept:
        say(job.unkept)
    report = _report(job.certificate, bool(job.unkept))
    out(report, _text(report), options)
    if job.misuse:
        return 2
    return 1 if any(verdict.outcome in WRONG for verdict in job.verdicts) else 0


def _report(certificate: dict[str, Any], unkept: bool) -> dict[str, Any]:
    """The certificate, its path, and whether all models are verified."""
    path = None if unkept else str(certificates.folder() / f"{certificate['hash']}.json")
    good = all(model["verified"] for model in certificate["models"])
    return certificate | {"verified": good, "path": path}


def _text(report: dict[str, Any]) -> str:
    parts = []
    for model in report["models"]:
        rows = [row for row in report["verdicts"] if row["model"] == model["name"]]
        rows.sort(key=lambda row: not row["sample"])  # grouped by sample, then all samples
        state = "verified" if model["verified"] else "NOT verified"
        lines = [f"{model['name']}: {state}"]
        for sample, group in itertools.groupby(rows, key=lambda row: row["sample"]):
            lines += [f" {f'sample {sample}' if sample else 'all samples'}", *map(_line, group)]
        lines.append(f" {certificates.covers(model)}")
        lines += [" Not proved:", *(f"  - {sentence}" for sentence in model["unproved"])]
        parts.append("\n".join(lines))
    kept = report["path"] or "not saved"
    return "\n\n".join([*parts, f"Certificate {report['hash'][: certificates.SHOWN]}: {kept}"])


def _line(row: dict[str, Any]) -> str:
    return f"  {MARKS[row['outcome']]} {row['title']}: {row['sentence']}"
