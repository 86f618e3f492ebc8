"""compare: ask one or more models one or more questions about one sample.

Boundary: builds the requests, runs them one after another, prints text or JSON.  Exit code 0 if
every model answered, 2 for a user error, 1 otherwise.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.analysis.number_text import NONE
from engine.cli.common import (
    DATASET_HELP,
    add_backend,
    add_extent,
    add_json,
    add_pixels,
    names,
    out,
    read_dataset,
    say,
)
from engine.errors import StageScopeError
from engine.jobs.run_job import RunJob
from engine.media import dataset
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.prompts import DEFAULT_QUESTION, OFF_SCRIPT
from engine.quoting import cut
from engine.storage.result_rows import AnswerRow, LoadFigures, PrefixState, StageTime
from engine.types import STAGES, DecodeConfig, RunOptions, RunRequest
from engine.verify import certificates


def add(commands: Any) -> None:
    sub = commands.add_parser("compare", help="ask models about one sample")
    sub.add_argument("--sample", required=True, help="an id, the start of an id, or sequence/clip")
    sub.add_argument("--dataset", type=Path, help=DATASET_HELP)
    sub.add_argument("--models", required=True, help="comma-separated names from models.toml")
    sub.add_argument(
        "--prompt", action="append", help=f"a question; may be repeated ({DEFAULT_QUESTION!r})"
    )
    sub.add_argument("--max-new-tokens", type=int, default=DecodeConfig.max_new_tokens)
    sub.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")
    sub.add_argument("--top-p", type=float, default=1.0)
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--frames", default="arange", help="rule that chooses the 8 frames")
    sub.add_argument("--cache", default="use", choices=("use", "refresh", "off"))
    sub.add_argument("--mode", default="decoupled", choices=("decoupled", "hooked"))
    sub.add_argument(
        "--prefix",
        action="store_true",
        help="later --prompt questions reuse the prompt prefix they share; their times say so",
    )
    add_backend(sub)
    add_pixels(sub, "exact")
    add_extent(sub, "slice")
    add_json(sub)
    sub.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    decode = DecodeConfig(
        max_new_tokens=options.max_new_tokens,
        temperature=options.temperature,
        top_p=options.top_p,
        seed=options.seed,
        backend=options.backend or DecodeConfig.backend,
    )
    sample = dataset.find(read_dataset(options.dataset), options.sample)
    how = RunOptions(
        decode=decode,
        frames=options.frames,
        cache=options.cache,
        mode=options.mode,
        pixels=options.pixels,
        extent=options.extent,
    )
    requests = [
        how.ask(sample, name, prompt, options.prefix)
        for prompt in options.prompt or [DEFAULT_QUESTION]
        for name in names(options.models)
    ]
    outcomes = [_answer(request) for request in requests]
    rows = [row for row, _ in outcomes]
    several = len(options.prompt or ()) > 1
    cards = "\n\n".join(_card(row, several) for row in rows)
    out([row.as_dict() for row in rows], cards, options)
    return max(code for _, code in outcomes)


def _answer(request: RunRequest) -> tuple[AnswerRow, int]:
    """One model's row and exit code; a failure does not stop the other models."""
    if _entry(request.model):
        say(f"{request.model}: loading the model, then answering ...")
    job = RunJob(request=request)
    job.work()
    if job.result is None:
        say(f"{cut(request.model)}: {job.error}")
        code = 2 if isinstance(job.failure, StageScopeError) else 1
        return AnswerRow.failed(request, _entry(request.model), job.error), code
    for note in job.result.notes:
        say(f"{request.model}: {note}")
    return AnswerRow.from_result(job.result, certificates.certificate_status(job.result)), 0


def _entry(name: str) -> ModelEntry | None:
    return next((entry for entry in registry.entries() if entry.name == name), None)


def _card(row: AnswerRow, asked: bool) -> str:
    """An answer as text, with its question if there are several."""
    question = f"\n  {row.prompt}" if asked else ""
    if row.error:
        return f"{row.model}{question}\n  no answer: {row.error}"
    reused = row.prefix is not None and row.prefix.state == "reused"
    spans = [(name, row.spans[name]) for name in STAGES]
    stages = " | ".join(_stage(name, span, reused) for name, span in spans if span)
    compiled = ", compiled" if _ran(row) == "compiled" else ""
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


def _ran(row: AnswerRow) -> str:
    return (row.backend and row.backend.ran) or ""


def _machine(load: LoadFigures | None) -> str:
    """CPU time and wall time, and whether the machine was busy."""
    if load is None:
        return ""
    busy = f"; busy machine: {load.busy}" if load.busy else ""
    return f"  CPU time {load.cpu_ms:.1f} ms in {load.wall_ms:.1f} ms{busy}\n"


def _verified(row: AnswerRow) -> str:
    """Verified, not covered (and what is missing) or unverified, with the command to verify."""
    standing = row.certificate_status
    if standing.state == "verified":
        return f"verified: certificate {standing.certificate[: certificates.SHOWN]}"
    if standing.state == "not covered":
        return f"{standing.words} (certificate {standing.certificate[: certificates.SHOWN]})"
    command = certificates.command(row.model, _ran(row), row.pixels or "exact")
    text = f"unverified: run `{command}` to prove the stages are the model's own"
    if unusable := len(certificates.unusable_files()):
        text += f"; {unusable:,} damaged certificate files were not used"
    return text


def _prefix(use: PrefixState | None) -> str:
    if use is None:
        return ""
    how = "are kept for another question" if use.state == "kept" else "were reused from memory"
    return f"  the first {use.tokens:,} tokens of the prompt {how}\n"


def _totals(row: AnswerRow) -> str:
    text, vision = f"total {_ms(row.total_ms)}", row.spans["vision"]
    if vision is None or vision.source != "cached":
        return text
    if row.uncached_total_ms is None:
        return f"{text} (total without cache unknown)"
    return f"{text} (total without cache: {_ms(row.uncached_total_ms)})"


def _stage(name: str, span: StageTime, reused: bool) -> str:
    text = f"{name} {_ms(span.ms)}"
    if span.source == "cached":
        how = "prefix reused" if reused else "read from cache"
        computed = "computing time unknown"
        if span.original_ms is not None:
            computed = f"computed in {_ms(span.original_ms)}"
        return f"{text} ({how}; {computed})"
    return text if span.source == "measured" else f"{text} ({span.source})"
