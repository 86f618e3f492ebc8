"""draft: speculative decoding, with drafts from another model or from prompt lookup.

Exit code 0 if every drafted answer equals the target's own (ties within rounding are reported), 1
if one does not or a sample failed, 2 for a user error and if all samples failed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.analysis import drafting
from engine.analysis.acceptance import Range
from engine.analysis.drafting import (
    LOOKUP,
    MAX_GAMMA,
    Difference,
    DraftReport,
    DraftRequest,
    SampleTrial,
)
from engine.cli.common import (
    DATASET_HELP,
    add_json,
    add_options,
    given_options,
    out,
    read_dataset,
    say,
)
from engine.errors import StageScopeError
from engine.jobs.draft_job import DraftJob
from engine.media import dataset
from engine.prompts import DEFAULT_QUESTION, OFF_SCRIPT
from engine.types import arranged


def add(commands: Any) -> None:
    sub = commands.add_parser("draft", help="speculative decoding: does a draft make it faster?")
    sub.add_argument("sample", nargs="+", help="an id, the start of an id, or sequence/clip")
    sub.add_argument("--dataset", type=Path, help=DATASET_HELP)
    sub.add_argument("--target", required=True, help="the model that answers, from models.toml")
    sub.add_argument("--draft", required=True, help=f"the model that drafts, or {LOOKUP}")
    sub.add_argument(
        "--gamma",
        type=int,
        default=DraftRequest.gamma,
        help=f"tokens drafted at once, 1 to {MAX_GAMMA}",
    )
    sub.add_argument("--runs", type=int, default=DraftRequest.runs, help="timed pairs per sample")
    sub.add_argument("--prompt", default=DEFAULT_QUESTION, help="the question")
    sub.add_argument("--temperature", type=float, help="must be 0")
    add_options(sub, ("max_new_tokens", "pixels", "extent", "window", "split"))
    add_json(sub)
    sub.set_defaults(run=_draft)


@dataclass(eq=False, kw_only=True)
class _PrintingDraftJob(DraftJob):
    """A drafting that prints its progress on standard error."""

    def round(self, done: int, of: int) -> None:
        super().round(done, of)
        if done == 0:
            sample = self.request.samples[self.finished]
            pairs = "1 pair" if of == 2 else f"{of - 1} pairs"  # the first round warms up
            say(f"{self.request.target}: sample {sample.id}, {pairs} ...")


def _draft(options: argparse.Namespace) -> int:
    found = read_dataset(options.dataset)
    samples = tuple(dataset.find(found, name) for name in options.sample)
    request = DraftRequest(
        samples,
        options.target,
        options.draft,
        options.gamma,
        options.prompt,
        runs=options.runs,
        **arranged(given_options(options)),
    )
    job = _PrintingDraftJob(request=request)
    job.work()
    if job.report is None:
        if isinstance(job.failure, StageScopeError):
            raise job.failure
        say(job.error)
        return 1
    out(drafting.as_row(job.report), _text(job.report), options)
    return 0 if job.report.equal and not job.report.lost else 1


def _text(found: DraftReport) -> str:
    parts = [_sample(tried) for tried in found.samples]
    lost = [f"sample {tried.sample}\n  no answer: {tried.error}" for tried in found.lost]
    warnings = [f"  {name}: {OFF_SCRIPT}" for name in found.off_script]
    outcome = "\n".join(
        [drafting.sentence(found), *warnings, f"  {found.request.how}", *_figures(found)]
    )
    return "\n\n".join([*parts, *lost, outcome])


def _sample(tried: SampleTrial) -> str:
    # Accepted tokens are in brackets; rejected ones are left out.
    drawn = [f"[{m.text}]" if m.state == "accepted" else m.text for m in tried.marks
             if m.state != "rejected"]  # fmt: skip
    lines = [
        f"sample {tried.sample}: {len(tried.ids)} new tokens",
        f"  {tried.text}",
        f"  accepted in brackets: {''.join(drawn)}",
        *(f"  {note}" for note in tried.notes),
    ]
    return "\n".join([*lines, f"  {_equality(tried.difference)}"])


def _equality(found: Difference | None) -> str:
    if found is None:
        return "the drafted answer equals the target's own, token by token"
    what = "a tie within rounding" if found.tied else "NOT the target's own answer"
    return (
        f"{what}: token {found.position + 1} is {found.drafted!r} instead of {found.alone!r} "
        f"(logits {found.logits[1]:.4g} and {found.logits[0]:.4g}, rounding {found.rounding:.2g})"
    )


def _interval(found: Range) -> str:
    """The interval as text; "" if there are too few samples."""
    if found.low is None or found.high is None:
        return ""
    return f" ({found.low:.2f} to {found.high:.2f})"


def _figures(found: DraftReport) -> list[str]:
    if found.tokens_per_pass is None:
        return []
    rates = ", ".join("-" if rate is None else f"{rate:.2f}" for rate in found.rates)
    lines = [
        f"  {found.tokens_per_pass:.2f} tokens per pass of the target, {found.passes} passes",
        f"  accepted per draft: {found.mean_accepted:.2f} of up to {found.request.gamma}; by "
        f"position: {rates}",
        f"  whole run, with the draft's own pictures and prefill: {found.whole.median:.2f}x",
    ]
    if found.predicted is not None and found.predicted.speedup is not None:
        speedup = found.predicted.speedup
        figure = f"{speedup.value:.2f}x{_interval(speedup)}"
        lines.append(f"  predicted by the two models' separate answers: {figure}")
    if found.own_prediction is not None:
        lines.append(
            f"  predicted by what was accepted, if a pass costs as much as one token: "
            f"{found.own_prediction:.2f}x; a pass cost as much as {found.pass_cost:.2f} tokens"
        )
    return lines
