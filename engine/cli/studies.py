"""explain, draft and verify: what words of an answer rest on; whether a draft makes it faster; if
decoupled inference equals the model's own.  Exit code of the last two: 0 if each drafted answer is
the target's (ties within rounding are reported), or each model verified with all checks done; 1 if
one is not, or a sample failed; 2 for a user error, and if all samples failed."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine import public, settings
from engine.analysis import drafting
from engine.attribution.explained import FILLS, ExplainOptions, ExplainRequest, as_json
from engine.cli import common
from engine.cli.common import flag
from engine.errors import BadInput, StageScopeError
from engine.jobs.model_work import WRONG, DraftJob, ExplainJob
from engine.media import dataset
from engine.models import registry
from engine.pipeline.drafts import LOOKUP, MAX_GAMMA, DraftRequest
from engine.prompts import DEFAULT_QUESTION, OFF_SCRIPT
from engine.quoting import cut, quoted, shown, times
from engine.report.blocks import Block, Bullets, Heading, Paragraph
from engine.storage import explanations, new_file, run_store
from engine.storage.result_rows import ResultRow
from engine.types import RunOptions, RunRequest, arranged
from engine.verify.verdict import VerifyRequest

NUMBERS = {  # fields of ExplainOptions
    "grid": "cells per side of the fine map",
    "coarse": "cells per side of the first map; 0 computes the whole fine map",
    "refined": "coarse cells whose fine cells are computed",
    "batch": "changed inputs that are encoded together",
}
RUN_HELP = "a run that holds the answer: its settings are used, and the explanation is kept with it"


def add(commands: Any) -> None:
    _add_explain(commands)
    _add_draft(commands)
    _add_verify(commands)


def _add_explain(commands: Any) -> None:
    default = ExplainOptions()
    side = f"cells per side that are removed together (default: {default.side}, or the grid if that"
    fill = f"what a removed box of a picture shows (default: {default.fill}); of event pictures the"
    numbers = {
        f"--{name}": flag(int, f"{text} (default: {getattr(default, name)})",
                          getattr(default, name))
        for name, text in NUMBERS.items()
    }  # fmt: skip
    flags = {
        "--sample": flag(str, common.SAMPLE_HELP, required=True),
        "--model": flag(str, "a name of models.toml, also with a variant", required=True),
        "--words": flag(str, "a sentence, phrase or word of the answer", required=True),
        **common.DATASET,
        "--prompt": flag(str, f"the question (default: {DEFAULT_QUESTION!r})"),
        **common.option_flags(public.EXPLAINED),
        **numbers,
        "--side": flag(int, f"{side} is smaller)"),
        "--fill": flag(FILLS, f"{fill} events are dropped", default.fill),
        "--no-time": flag(bool, "leaves out frames and event images"),
        "--out": flag(Path, "writes the map over the pictures", form="PNG"),
        "--run": flag(str, RUN_HELP, form="RUN", dest="kept_in"),
        "--dry-run": flag(bool, "prints the cost only"),
        **common.JSON,
    }
    text = "find which part of the input words rest on"
    common.command(commands, "explain", _explain, text, flags)


def _explain(options: argparse.Namespace) -> int:
    own = {name: getattr(options, name) for name in (*NUMBERS, "side", "fill")}
    how = public.explain_options(own | {"time": not options.no_time})
    kept = None if options.kept_in is None else _kept_answer(options)
    run = kept[1] if kept else _asked(options)
    request = ExplainRequest(run, options.words, (), how)
    if options.out is not None:
        if options.out.suffix.lower() != ".png":
            raise BadInput(f"--out is {shown(options.out)}: give a name that ends in .png.")
        new_file.refuse(options.out)
    entry = registry.entry(run.model)
    if why := registry.cannot_run(entry, run.sample):
        raise BadInput(why)
    if options.dry_run:
        from engine.attribution import explain

        common.say(f"{cut(run.model)}: loading the model ...")
        adapter = registry.load(entry, run.how.decode.max_new_tokens)
        cost = explain.measured_cost(adapter, request)
        value = {name: getattr(cost, name) for name in ("encodings", "prefills", "seconds")}
        common.out(value, f"{run.model}: {cost.sentence}", options)
        return 0
    job = ExplainJob(request=request, kept=kept and (kept[0], kept[2]))
    explained = public.explained(job, common.say)
    if options.out is not None:
        new_file.write(options.out, explained.picture)
    common.out(as_json(explained.found), explained.blocks(False), options)
    return 0


def _asked(options: argparse.Namespace) -> RunRequest:
    sample = dataset.find(public.read_dataset(options.dataset), options.sample)
    how = RunOptions(**arranged({"cache": "off"} | common.given_options(options)))
    prompt = DEFAULT_QUESTION if options.prompt is None else options.prompt
    return how.ask(sample, options.model, prompt)


def _kept_answer(options: argparse.Namespace) -> tuple[Path, RunRequest, ResultRow]:
    """A run's folder, the request of its answer, and the row of this answer."""
    of_the_run = ("dataset", "prompt", *public.EXPLAINED)
    common.refuse(options, of_the_run, "is that of the run with --run: leave one of them out.")
    run = run_store.read(run_store.find(options.kept_in, settings.load().runs_dir))
    sample = dataset.find(public.read_dataset(Path(run.header.dataset.root)), options.sample)
    rows = [
        row
        for _, row in run.results()
        if (row.model, row.sample, row.phase) == (options.model, sample.id, "measured")
        and row.token_ids
    ]
    if not rows:
        raise BadInput(
            f"The run {shown(run.id)} has no answer of {quoted(options.model)} to sample "
            f"{quoted(sample.id)}: name a model and a sample of this run."
        )
    explanations.read(run.folder)  # refuses a file that is no regular one before the work
    row = min(rows, key=lambda row: row.repeat)
    return run.folder, run.header.plan.ask(sample, row.model, row.prompt or DEFAULT_QUESTION), row


def _add_draft(commands: Any) -> None:
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
    found = public.read_dataset(options.dataset)
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
    common.out(drafting.as_row(job.report), draft_blocks(job.report), options)
    return 0 if job.report.equal and not job.report.lost else 1


def draft_blocks(found: drafting.DraftReport) -> Iterator[Block]:
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
                   *_draft_figures(found)))  # fmt: skip


def _draft_figures(found: drafting.DraftReport) -> Iterator[str]:
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


def _add_verify(commands: Any) -> None:
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
