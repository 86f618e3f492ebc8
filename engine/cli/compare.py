"""compare: ask one or more models one or more questions about one sample, once or several times.

Repeats take turns (A B C A B C), so that a drift of the machine affects all models alike.  Exit
code 0 if every model answered, 2 for a user error, 1 otherwise.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.analysis.compared import ComparedModel, RunRange
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
from engine.errors import BadInput, StageScopeError
from engine.jobs.run_job import RunJob
from engine.machine.load import MachineLoad
from engine.media import dataset
from engine.models import registry
from engine.prompts import DEFAULT_QUESTION, OFF_SCRIPT
from engine.quoting import NONE, cut
from engine.storage.result_rows import ResultRow
from engine.types import STAGES, PrefixUse, RunOptions, RunRequest, Span, arranged
from engine.verify import certificates

MAX_REPEATS = 100


def add(commands: Any) -> None:
    sub = commands.add_parser("compare", help="ask models about one sample")
    sub.add_argument("--sample", required=True, help="an id, the start of an id, or sequence/clip")
    sub.add_argument("--dataset", type=Path, help=DATASET_HELP)
    add_models(sub)
    sub.add_argument(
        "--prompt", action="append", help=f"a question; may be repeated ({DEFAULT_QUESTION!r})"
    )
    sub.add_argument(
        "--repeat",
        type=int,
        default=1,
        help="runs of each model, in turn; more than one gives medians and ranges",
    )
    sub.add_argument(
        "--prefix",
        action="store_true",
        help="later --prompt questions reuse the prompt prefix they share; their times say so",
    )
    add_options(sub)
    add_json(sub)
    sub.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    if not 1 <= options.repeat <= MAX_REPEATS:
        raise BadInput(f"--repeat is {options.repeat}: choose a number from 1 to {MAX_REPEATS}.")
    chosen = model_names(options)
    sample = dataset.find(read_dataset(options.dataset), options.sample)
    how = RunOptions(**arranged(given_options(options)))
    requests = [
        how.ask(sample, name, prompt, options.prefix)
        for prompt in options.prompt or [DEFAULT_QUESTION]
        for name in chosen
    ]
    rounds = [[_run(request) for request in requests] for _ in range(options.repeat)]
    jobs = [job for jobs in rounds for job in jobs]
    rows = [_row(job).printed() for job in jobs]
    several = len(options.prompt or ()) > 1
    repeats = [RepeatedRun(tuple(jobs)) for jobs in zip(*rounds, strict=True)]
    cards = "\n\n".join(_card(_row(one.shown), several) + one.words() for one in repeats)
    medians = [one.medians() for one in repeats]
    out(rows if options.repeat == 1 else {"runs": rows, "medians": medians}, cards, options)
    return max(map(_exit_code, jobs))


def _run(request: RunRequest) -> RunJob:
    """One run, which has ended; a failure does not stop the other models."""
    if registry.find(request.model):
        say(f"{request.model}: loading the model, then answering ...")
    job = RunJob(request=request)
    job.work()
    for note in job.result.notes if job.result else (job.error,):
        say(f"{cut(request.model)}: {note}")
    return job


def _row(job: RunJob) -> ResultRow:
    if job.result is None:
        return ResultRow.failed(job.request, registry.find(job.request.model), job.error)
    return certificates.row_of(job.result)


def _exit_code(job: RunJob) -> int:
    if job.result is not None:
        return 0
    return 2 if isinstance(job.failure, StageScopeError) else 1


@dataclass(frozen=True)
class RepeatedRun:
    """All runs of one request, oldest first."""

    jobs: tuple[RunJob, ...]

    @cached_property
    def compared(self) -> ComparedModel | None:
        """Their spread; None if all failed."""
        results = tuple(job.result for job in self.jobs if job.result is not None)
        failures = tuple(job.error for job in self.jobs if job.result is None)
        model = self.jobs[0].request.model
        return ComparedModel(model, "", results, failures) if results else None

    @property
    def shown(self) -> RunJob:
        """The newest run that counts; the last one if all failed."""
        last = self.compared.last if self.compared else None
        return next(job for job in reversed(self.jobs) if job.result is last)

    def medians(self) -> dict[str, Any]:
        """For the JSON document; times in milliseconds."""
        found, request = self.compared, self.jobs[0].request
        return {
            "model": request.model,
            "prompt": request.prompt,
            "runs": len(self.jobs),
            "counted": len(found.counted) if found else 0,
            "left_out": [asdict(one) for one in found.left_out] if found else [],
            "times_ms": {n: asdict(one) for n, one in found.times().items()} if found else {},
        }

    def words(self) -> str:
        """Medians and ranges as lines below a card; "" for a single run."""
        found = self.compared
        if len(self.jobs) == 1 or found is None:
            return ""
        times = " | ".join(f"{name} {_spread(one)}" for name, one in found.times().items())
        left = "; ".join(f"{one.runs} left out: {one.reason}" for one in found.left_out)
        counted = f"{len(found.counted)} of {len(self.jobs)} runs"
        return f"\n  medians of {counted}{f' ({left})' if left else ''}: {times}"


def _spread(times: RunRange) -> str:
    return f"{_ms(times.median)} ({times.low:.1f} to {times.high:.1f})"


def _card(row: ResultRow, asked: bool) -> str:
    """An answer as text, with its question if there are several."""
    question = f"\n  {row.prompt}" if asked else ""
    if row.error:
        return f"{row.model}{question}\n  no answer: {row.error}"
    reused = row.prefix is not None and row.prefix.state == "reused"
    spans = [(name, row.spans[name]) for name in STAGES]
    stages = " | ".join(_stage(name, span, reused) for name, span in spans if span)
    compiled = ", compiled" if row.backend.ran == "compiled" else ""
    cold = ", first (cold) run" if row.cold else ""
    fast = ", fast pixels" if row.pixels == "fast" else ""
    warning = f"  {OFF_SCRIPT}\n" if row.off_script else ""
    return (
        f"{row.model} ({row.mode}{compiled}{fast}{cold}){question}\n  {row.text}\n"
        f"{warning}  shown: {row.shown}\n"
        f"  {row.new_tokens} new tokens ({row.stop}), context {row.context_tokens}, "
        f"TTFT {_ms(row.ttft_ms)}, TPOT {_ms(row.tpot_ms, 2)}\n"
        f"  {stages} | unaccounted {_ms(row.unaccounted_ms)} | {_totals(row)}\n"
        f"{_prefix(row.prefix)}{_machine(row.machine_load)}  {_verified(row)}"
    )


def _ms(value: float | None, digits: int = 1) -> str:
    return NONE if value is None else f"{value:.{digits}f} ms"


def _machine(load: MachineLoad | None) -> str:
    """CPU time and wall time, and whether the machine was busy."""
    if load is None:
        return ""
    busy = f"; busy machine: {load.busy}" if load.busy else ""
    return f"  CPU time {load.cpu_ms:.1f} ms in {load.wall_ms:.1f} ms{busy}\n"


def _verified(row: ResultRow) -> str:
    """Verified, not covered (and what is missing) or unverified, with the command to verify."""
    standing = row.standing
    if standing.state == "verified":
        return f"verified: certificate {standing.name}"
    if standing.state == "not covered":
        return f"{standing.words} (certificate {standing.name})"
    command = certificates.command(row.model, row.backend.ran or "", row.pixels)
    text = f"unverified: run `{command}` to prove the stages are the model's own"
    if unusable := len(certificates.unusable_files()):
        text += f"; {unusable:,} damaged certificate files were not used"
    return text


def _prefix(use: PrefixUse | None) -> str:
    if use is None:
        return ""
    how = "are kept for another question" if use.state == "kept" else "were reused from memory"
    return f"  the first {use.tokens:,} tokens of the prompt {how}\n"


def _totals(row: ResultRow) -> str:
    text, vision = f"total {_ms(row.total_ms)}", row.spans["vision"]
    if vision is None or vision.source != "cached":
        return text
    if row.uncached_total_ms is None:
        return f"{text} (total without cache unknown)"
    return f"{text} (total without cache: {_ms(row.uncached_total_ms)})"


def _stage(name: str, span: Span, reused: bool) -> str:
    text = f"{name} {_ms(span.ms)}"
    if span.source == "cached":
        how = "prefix reused" if reused else "read from cache"
        computed = "computing time unknown"
        if span.original_ms is not None:
            computed = f"computed in {_ms(span.original_ms)}"
        return f"{text} ({how}; {computed})"
    return text if span.source == "measured" else f"{text} ({span.source})"
