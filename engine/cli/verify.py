"""verify: prove that decoupled inference equals the model's own, on this machine.  Exit code 0 if
each model is verified and all checks were done, 1 otherwise, 2 for a user error."""

import argparse
from typing import Any

from engine import public
from engine.cli import common
from engine.cli.common import flag
from engine.jobs.model_work import WRONG
from engine.prompts import DEFAULT_QUESTION
from engine.verify.verdict import VerifyRequest


def add(commands: Any) -> None:
    batch = "size of the compared batch; larger batches are not covered"
    flags = {
        **common.MODELS,
        **common.DATASET,
        "--samples": flag(int, f"how many, evenly spread (default: {public.SAMPLES})"),
        "--runs": flag(int, "timed warm runs", VerifyRequest.runs),
        "--prompt": flag(str, f"the question (default: {DEFAULT_QUESTION!r})", DEFAULT_QUESTION),
        "--batch": flag(int, batch, VerifyRequest.batch),
        **common.option_flags(public.VERIFIED),
        **common.JSON,
    }
    text = "check decoupled against the model's own inference"
    common.command(commands, "verify", _verify, text, flags)


def _verify(options: argparse.Namespace) -> int:
    found = public.verify(
        common.model_names(options),
        dataset=options.dataset,
        samples=options.samples,
        prompt=options.prompt,
        runs=options.runs,
        batch=options.batch,
        progress=common.say,
        **{name: getattr(options, name) for name in public.VERIFIED},
    )
    good = all(found.verified.values())
    report = {**found.certificate, "verified": good, "path": found.path and str(found.path)}
    common.out(report, found.blocks(False), options)
    outcomes = {verdict["outcome"] for verdict in found.certificate["verdicts"]}
    return 0 if good and found.path and not outcomes & {*WRONG} else 1
