"""The command line: compare, samples, models, demo.

Boundary: parses arguments, prints, and chooses the exit code: 0 if every model answered, 2 for
what the user can mend, 1 for anything else.  Results go to standard output, progress to standard
error.  torch is imported by `compare` and `demo --evaluate` alone.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from engine import dataset, jobs, rows, settings
from engine.dataset import Dataset
from engine.errors import BadInput, StageScopeError
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.prompts import DEFAULT_QUESTION
from engine.types import STAGES, DecodeConfig, RunRequest, Sample


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    _print_anywhere()
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except StageScopeError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        say("Stopped.")
        return 130
    except OSError as error:  # a full disk, or a reader such as `head` that has gone
        if not isinstance(error, BrokenPipeError):
            say(f"The output cannot be written ({error.strerror}): make room.")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left would fail again at exit
        return 1


def _print_anywhere() -> None:
    """A terminal that lacks a character shows its code; no result is lost for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Progress and errors, on standard error."""
    print(plain(text), file=sys.stderr, flush=True)


def plain(text: str) -> str:
    """Text without control characters, so that an answer cannot steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _compare(options: argparse.Namespace) -> int:
    decode = DecodeConfig(
        max_new_tokens=options.max_new_tokens,
        temperature=options.temperature,
        top_p=options.top_p,
        seed=options.seed,
    )
    sample = dataset.find(_dataset(options.dataset), options.sample)
    prompt = options.prompt if options.prompt is not None else DEFAULT_QUESTION
    requests = [
        RunRequest(sample, name, prompt, decode, options.frames, options.cache, options.mode)
        for name in _names(options.models)
    ]
    outcomes = [_answer(request) for request in requests]
    found = [row for row, _ in outcomes]
    print(_json(found) if options.json else "\n\n".join(_card(row) for row in found))
    return max(code for _, code in outcomes)


def _answer(request: RunRequest) -> tuple[dict[str, Any], int]:
    """One model's row and exit code; a failure is its own and costs no other run."""
    say(f"{request.model}: loading the model, then answering ...")
    job = jobs.Job(request, jobs.manager())
    job.work()
    if job.result is None:
        say(f"{request.model}: {job.error}")
        mendable = isinstance(job.failure, StageScopeError)
        return rows.failed(request, _known(request.model), job.error), 2 if mendable else 1
    for note in job.result.notes:
        say(f"{request.model}: {note}")
    return rows.row(job.result), 0


def _known(name: str) -> ModelEntry | None:
    return next((entry for entry in registry.entries() if entry.name == name), None)


def _card(row: dict[str, Any]) -> str:
    if row["error"]:
        return f"{row['model']}\n  no answer: {plain(row['error'])}"
    stages = " | ".join(_stage(name, row["stages"][name]) for name in STAGES)
    tpot = "-" if row["tpot_ms"] is None else f"{row['tpot_ms']:.2f} ms"
    cold = ", first (cold) run" if row["cold"] else ""
    return (
        f"{row['model']} ({row['mode']}{cold})\n  {plain(row['text'])}\n"
        f"  {row['new_tokens']} new tokens ({row['stop']}), context {row['context_tokens']}, "
        f"TTFT {row['ttft_ms']:.1f} ms, TPOT {tpot}\n"
        f"  {stages} | unaccounted {row['unaccounted_ms']:.1f} ms | {_totals(row)}"
    )


def _totals(row: dict[str, Any]) -> str:
    text = f"total {row['total_ms']:.1f} ms"
    if row["stages"]["vision"]["source"] != "cached":
        return text
    return f"{text} (had vision been computed: {row['uncached_total_ms']:.1f} ms)"


def _stage(name: str, stage: dict[str, Any]) -> str:
    text = f"{name} {stage['ms']:.1f} ms"
    if stage["source"] == "cached":
        return f"{text} (read from cache; computed in {stage['original_ms']:.1f} ms)"
    return text if stage["source"] == "measured" else f"{text} ({stage['source']})"


def _samples(options: argparse.Namespace) -> int:
    found = _dataset(options.dataset)
    entries = registry.entries()
    reasons = {entry.name: registry.unavailable(entry) for entry in entries}
    table = [_sample_row(sample, entries, reasons) for sample in found.samples]
    for problem in found.problems:
        say(problem)
    print(_json(table) if options.json else "\n".join(map(_sample_line, table)))
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
    return plain("\n    ".join([text, *row["problems"]]))


def _models(options: argparse.Namespace) -> int:
    table = [_model_row(entry) for entry in registry.entries()]
    lines = [f"{r['name']}  {r['family']}  {r['dtype']}  {r['reason'] or 'ready'}" for r in table]
    print(_json(table) if options.json else plain("\n".join(lines)))
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


def _demo(options: argparse.Namespace) -> int:
    if not options.evaluate:
        print(_dataset(None).root)
        return 0
    from engine.demo import evaluate

    models = _names(options.models) if options.models else list(evaluate.DEMO_MODELS)
    table = evaluate.evaluate(_seeds(options.seeds), models, say)
    print(_json(table) if options.json else evaluate.as_text(table))
    return 0


def _dataset(root: Path | None) -> Dataset:
    if root is not None:
        return dataset.read(root)
    from engine.demo.dataset import ensure_dataset

    return dataset.read(ensure_dataset(settings.load().demo_dir))


def _names(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise BadInput(f"--models is {text!r}: name at least one model.")
    return names


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise BadInput(f"--seeds is {text!r}: write it as FIRST:LAST, as in 900000:900400.")
    return range(int(first), int(last))


def _json(value: object) -> str:
    return json.dumps(value, indent=1, allow_nan=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _compare_parser(commands.add_parser("compare", help="one sample, one question, some models"))
    samples = commands.add_parser("samples", help="what a dataset holds and what can run on it")
    samples.add_argument("--dataset", type=Path, help="dataset root (default: the demo dataset)")
    models = commands.add_parser("models", help="the entries of models.toml")
    demo = commands.add_parser("demo", help="make the demo dataset, or evaluate the demo models")
    demo.add_argument("--evaluate", action="store_true", help="accuracy on held-out scenes")
    demo.add_argument("--seeds", default="900000:900400", help="held-out scene seeds, FIRST:LAST")
    demo.add_argument("--models", help="comma-separated names (default: the demo models)")
    for sub, run in ((samples, _samples), (models, _models), (demo, _demo)):
        sub.add_argument("--json", action="store_true", help="one JSON document and nothing else")
        sub.set_defaults(run=run)
    return parser


def _compare_parser(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--sample", required=True, help="id, the start of one, or sequence/clip")
    sub.add_argument("--dataset", type=Path, help="dataset root (default: the demo dataset)")
    sub.add_argument("--models", required=True, help="comma-separated names from models.toml")
    sub.add_argument("--prompt", help=f"the question (default: {DEFAULT_QUESTION!r})")
    sub.add_argument("--max-new-tokens", type=int, default=DecodeConfig.max_new_tokens)
    sub.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")
    sub.add_argument("--top-p", type=float, default=1.0)
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--frames", default="arange", help="rule that chooses the 8 frames")
    sub.add_argument("--cache", default="use", choices=("use", "refresh", "off"))
    sub.add_argument("--mode", default="decoupled", choices=("decoupled", "hooked"))
    sub.add_argument("--json", action="store_true", help="one JSON document and nothing else")
    sub.set_defaults(run=_compare)


if __name__ == "__main__":
    sys.exit(main())
