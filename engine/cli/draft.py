"""draft: speculative decoding, with drafts from another model or from prompt lookup.  Exit code 0
if every drafted answer equals the target's own (ties within rounding are reported), 1 if one does
not or a sample failed, 2 for a user error and if all samples failed."""

import argparse
from collections.abc import Iterator
from typing import Any

from engine.analysis import drafting
from engine.analysis.drafting import DraftReport
from engine.cli import common
from engine.cli.common import flag
from engine.errors import StageScopeError
from engine.jobs.model_work import DraftJob
from engine.media import dataset
from engine.pipeline.drafts import LOOKUP, MAX_GAMMA, DraftRequest
from engine.prompts import DEFAULT_QUESTION, OFF_SCRIPT
from engine.public import read_dataset
from engine.quoting import times
from engine.report.blocks import Block, Bullets, Heading, Paragraph
from engine.types import arranged


def add(commands: Any) -> None:
    flags = {
        "sample": flag(str, common.SAMPLE_HELP, nargs="+"),
        **common.DATASET,
        "--target": flag(str, "the model that answers, from models.toml", required=True),
        "--draft": flag(str, f"the model that drafts, or {LOOKUP}", required=True),
        "--gamma": flag(int, f"tokens drafted at once, 1 to {MAX_GAMMA}", DraftRequest.gamma),
        "--runs": flag(int, "timed pairs per sample", DraftRequest.runs),
        "--prompt": flag(str, "the question", DEFAULT_QUESTION),
        "--temperature": flag(float, "must be 0"),
        **common.option_flags(("max_new_tokens", "extent", "window", "split")),
        **common.JSON,
    }
    text = "speculative decoding: does a draft make it faster?"
    common.command(commands, "draft", _draft, text, flags)


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
        **arranged(common.given_options(options)),
    )
    job = DraftJob(request=request, tell=common.say)
    job.work()
    if job.report is None:
        if isinstance(job.failure, StageScopeError):
            raise job.failure
        common.say(job.error)
        return 1
    common.out(drafting.as_row(job.report), blocks(job.report), options)
    return 0 if job.report.equal and not job.report.lost else 1


def blocks(found: DraftReport) -> Iterator[Block]:
    for tried in found.samples:
        # Accepted tokens are in brackets; rejected ones are left out.
        drawn = [f"[{m.text}]" if m.state == "accepted" else m.text for m in tried.marks
                 if m.state != "rejected"]  # fmt: skip
        equality = "the drafted answer equals the target's own, token by token"
        if (other := tried.difference) is not None:
            what = "a tie within rounding" if other.tied else "NOT the target's own answer"
            equality = (
                f"{what}: token {other.position + 1} is {other.drafted!r} instead of "
                f"{other.alone!r} (logits {other.logits[1]:.4g} and {other.logits[0]:.4g}, "
                f"rounding {other.rounding:.2g})"
            )
        yield Heading(3, f"sample {tried.sample}: {len(tried.ids)} new tokens")
        accepted = f"accepted in brackets: {''.join(drawn)}"
        yield Bullets((tried.text, accepted, *tried.notes, equality))
    for lost in found.lost:
        yield Heading(3, f"sample {lost.sample}")
        yield Paragraph(f"no answer: {lost.error}")
    yield Heading(3, drafting.sentence(found))
    yield Bullets((*(f"{name}: {OFF_SCRIPT}" for name in found.off_script), found.request.how,
                   *_figures(found)))  # fmt: skip


def _figures(found: DraftReport) -> Iterator[str]:
    if found.tokens_per_pass is None:
        return
    rates = ", ".join("-" if rate is None else f"{rate:.2f}" for rate in found.rates)
    yield f"{found.tokens_per_pass:.2f} tokens per pass of the target, {found.passes} passes"
    yield (
        f"accepted per draft: {found.mean_accepted:.2f} of up to {found.request.gamma}; by "
        f"position: {rates}"
    )
    yield f"whole run, with the draft's own pictures and prefill: {found.whole.median:.2f}x"
    if found.predicted is not None and (speedup := found.predicted.speedup) is not None:
        told = times(speedup.value, speedup.interval)
        yield f"predicted by the two models' separate answers: {told}"
    if found.own_prediction is not None:
        yield (
            "predicted by what was accepted, if a pass costs as much as one token: "
            f"{found.own_prediction:.2f}x; a pass cost as much as {found.pass_cost:.2f} tokens"
        )
