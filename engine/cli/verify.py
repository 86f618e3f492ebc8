"""verify: prove that decoupled inference equals the model's own, on this machine.

Exit code 0 if all checks were done and none failed, 1 otherwise, 2 for a user error.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.cli import common
from engine.cli.common import flag
from engine.errors import BadInput, StageScopeError
from engine.jobs.verify_job import VerifyJob
from engine.models import registry
from engine.prompts import DEFAULT_QUESTION
from engine.report.blocks import Block, Bullets, Heading, Paragraph
from engine.verify import certificates
from engine.verify.verdict import Verdict, VerifyRequest, choose

SAMPLES = 3
WRONG = ("failed", "skipped")  # outcomes that are not a proof
MARKS = {
    **{"passed": "ok  ", "tie": "tie ", "failed": "FAIL", "unresolved": "open"},
    **{"skipped": "----", "refused": "none"},
}


def add(commands: Any) -> None:
    batch = "size of the compared batch; larger batches are not covered"
    flags = {
        **common.MODELS,
        **common.DATASET,
        "--samples": flag(int, f"how many, evenly spread (default: {SAMPLES})"),
        "--runs": flag(int, "timed warm runs", VerifyRequest.runs),
        "--prompt": flag(str, f"the question (default: {DEFAULT_QUESTION!r})", DEFAULT_QUESTION),
        "--batch": flag(int, batch, VerifyRequest.batch),
        **common.option_flags(("max_new_tokens", "backend", "extent")),
        **common.JSON,
    }
    text = "check decoupled against the model's own inference"
    common.command(commands, "verify", _verify, text, flags)


@dataclass(eq=False, kw_only=True)
class _PrintingVerifyJob(VerifyJob):
    """A verification that prints its steps and failures on standard error."""

    def doing(self, model: str, sample: str, what: str) -> None:
        if sample != self._doing[1] or model != self._doing[0]:
            common.say(f"{model}: {f'sample {sample}' if sample else what} ...")
        super().doing(model, sample, what)

    def found(self, verdict: Verdict) -> None:
        super().found(verdict)
        if verdict.outcome in WRONG:
            common.say(f"{verdict.model}: {verdict.title}: {verdict.sentence}")


def _verify(options: argparse.Namespace) -> int:
    chosen = common.model_names(options)
    for entry in map(registry.find, chosen):
        if entry is not None and entry.server:
            raise BadInput(
                f"{entry.name} is a server, and verify proves checkpoints on this machine: leave "
                "it out."
            )
    found = common.read_dataset(options.dataset)
    number = min(SAMPLES, len(found.samples)) if options.samples is None else options.samples
    request = VerifyRequest(
        tuple(chosen),
        choose(found.samples, number),
        options.prompt,
        runs=options.runs,
        batch=options.batch,
        **common.given_options(options),
    )
    job = _PrintingVerifyJob(request=request, dataset=str(found.root))
    job.work()
    if job.certificate is None:
        raise StageScopeError(job.error)
    if job.unkept:
        common.say(job.unkept)
    path = None if job.unkept else certificates.folder() / f"{job.certificate['hash']}.json"
    good = all(model["verified"] for model in job.certificate["models"])
    report = job.certificate | {"verified": good, "path": path and str(path)}
    common.out(report, _blocks(report), options)
    if job.misuse:
        return 2
    return 1 if any(verdict.outcome in WRONG for verdict in job.verdicts) else 0


def _blocks(report: dict[str, Any]) -> Iterator[Block]:
    for model in report["models"]:
        rows = [row for row in report["verdicts"] if row["model"] == model["name"]]
        rows.sort(key=lambda row: not row["sample"])  # grouped by sample, then all samples
        yield Heading(3, f"{model['name']}: {'verified' if model['verified'] else 'NOT verified'}")
        for sample, group in itertools.groupby(rows, key=lambda row: row["sample"]):
            lines = (f"{MARKS[row['outcome']]} {row['title']}: {row['sentence']}" for row in group)
            yield Bullets(tuple(lines), f"sample {sample}" if sample else "all samples")
        yield Paragraph(certificates.covers(model))
        yield Bullets(tuple(f"- {sentence}" for sentence in model["unproved"]), "Not proved:")
    kept = report["path"] or "not saved"
    yield Heading(3, f"Certificate {report['hash'][: certificates.SHOWN]}: {kept}")
