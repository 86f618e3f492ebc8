"""compare: ask one or more models one or more questions about one sample, once or several times.
Exit code 0 if every model answered, 2 for a user error, 1 otherwise."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from engine import public
from engine.analysis.compared import ComparedModel
from engine.cli import common
from engine.cli.common import flag
from engine.errors import BadInput, StageScopeError
from engine.jobs.run_job import RunJob
from engine.media import dataset
from engine.models import registry
from engine.prompts import DEFAULT_QUESTION, OFF_SCRIPT
from engine.quoting import ms
from engine.report import answer_part
from engine.report.blocks import Block, Bullets, Heading, Paragraph
from engine.storage.result_rows import ResultRow
from engine.types import RunOptions, arranged
from engine.verify import certificates


def add(commands: Any) -> None:
    repeat = "runs of each model, in turn; more than one gives the median run and ranges"
    flags = {
        "--sample": flag(str, common.SAMPLE_HELP, required=True),
        **common.DATASET,
        **common.MODELS,
        "--prompt": flag(list, f"a question; may be repeated ({DEFAULT_QUESTION!r})"),
        "--repeat": flag(int, repeat, 1),
        **common.option_flags(),
        **common.JSON,
    }
    common.command(commands, "compare", _compare, "ask models about one sample", flags)


def _compare(options: argparse.Namespace) -> int:
    if not 1 <= options.repeat <= public.MAX_REPEATS:
        most = public.MAX_REPEATS
        raise BadInput(f"--repeat is {options.repeat}: choose a number from 1 to {most}.")
    chosen = common.model_names(options)
    sample = dataset.find(public.read_dataset(options.dataset), options.sample)
    how = RunOptions(**arranged(common.given_options(options)))
    requests = [
        how.ask(sample, name, prompt)
        for prompt in options.prompt or [DEFAULT_QUESTION]
        for name in chosen
    ]
    answered = public.answered(requests, options.repeat, common.say)
    rows = [_row(job).printed() for jobs in zip(*answered, strict=True) for job in jobs]
    several = len(options.prompt or ()) > 1
    repeats = [(jobs, _compared(jobs)) for jobs in answered]
    medians = [_medians(jobs, model) for jobs, model in repeats]
    blocks = [block for jobs, model in repeats for block in _card(jobs, model, several)]
    value = rows if options.repeat == 1 else {"runs": rows, "medians": medians}
    common.out(value, blocks, options)
    failures = [job.failure for jobs in answered for job in jobs if job.result is None]
    if any(isinstance(failure, StageScopeError) for failure in failures):
        return 2
    return 1 if failures else 0


def _row(job: RunJob) -> ResultRow:
    if job.result is None:
        return ResultRow.failed(job.request, registry.find(job.request.model), job.error)
    return certificates.row_of(job.result)


def _compared(jobs: Sequence[RunJob]) -> ComparedModel | None:
    """All runs of one request, oldest first; None if all failed."""
    results = tuple(job.result for job in jobs if job.result is not None)
    failures = tuple(job.error for job in jobs if job.result is None)
    return ComparedModel(jobs[0].request.model, "", results, failures) if results else None


def _medians(jobs: Sequence[RunJob], model: ComparedModel | None) -> dict[str, Any]:
    """For the JSON document; times in milliseconds."""
    return {
        "model": jobs[0].request.model,
        "prompt": jobs[0].request.prompt,
        "runs": len(jobs),
        "counted": len(model.counted) if model else 0,
        "left_out": [
            {"reason": reason, "runs": runs}
            for reason, runs in (model.left_out.items() if model else ())
        ],
        "times_ms": {n: asdict(one) for n, one in model.times().items()} if model else {},
    }


def _card(jobs: Sequence[RunJob], model: ComparedModel | None, asked: bool) -> Iterator[Block]:
    """The newest answer that counts, with its question if there are several."""
    last = model.last if model else None
    row = _row(next(job for job in reversed(jobs) if job.result is last))
    marks = [
        f"at {row.served.host}" if row.served else row.mode,
        "compiled" if row.backend.ran == "compiled" else "",
        "first (cold) run" if row.cold else "",
    ]
    yield Heading(3, f"{row.model} ({', '.join(filter(None, marks))})" if model else row.model)
    if asked:
        yield Paragraph(row.prompt or "")
    if model is None:
        yield Paragraph(f"no answer: {row.error}")
        return
    yield Paragraph(row.text or "")
    figures = " | ".join(f"{one.name} {one.words}" for one in answer_part.figures(model))
    spans = (
        {**row.spans, **{one.name: one for one in row.served.spans}} if row.served else row.spans
    )
    stages = f"{answer_part.stages(spans)}, unaccounted {ms(row.unaccounted_ms)}"
    stop = answer_part.STOPS.get(row.stop or "", "")
    cpu, load = "", row.machine_load
    if load is not None:
        busy = f"; busy machine: {load.busy}" if load.busy else ""
        cpu = f"CPU time {ms(load.cpu_ms)} in {ms(load.wall_ms)}{busy}"
    parts = model.times() if len(model.counted) > 1 else {}
    medians = " | ".join(
        f"{name} {answer_part.figure(name, time).words}"
        for name, time in parts.items()
        if name not in ("total", "ttft", "tpot")
    )
    lines = [
        OFF_SCRIPT if row.off_script else "",
        f"shown: {row.shown}",
        figures,
        " ".join(filter(None, [*answer_part.notes(model), stop])),
        stages,
        f"median run: {medians}" if medians else "",
        cpu,
        _verified(row),
    ]
    yield Bullets(tuple(filter(None, lines)))


def _verified(row: ResultRow) -> str:
    """Verified, not covered (and what is missing) or unverified, with the command to verify."""
    standing = row.standing
    if row.served:
        return f"not verified: what ran at {row.served.host} is that server's word"
    if standing.state == "verified":
        return f"{standing.words} (certificate {standing.name}). {standing.open_timing}".rstrip()
    if standing.state == "not covered":
        return f"{standing.words} (certificate {standing.name})"
    command = certificates.command(row.model, row.backend.ran or "")
    text = f"unverified: run `{command}` to prove the stages are the model's own"
    if unusable := len(certificates.unusable_files()):
        text += f"; {unusable:,} damaged certificate files were not used"
    return text
