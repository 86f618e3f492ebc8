"""bench: a dataset run, watched in the terminal; interrupted, it can be resumed.

Boundary: from flags to a plan, progress on standard error, the summary on standard output.  Exit
code 0 if every result is an answer, 1 if some failed, 2 for what the user can mend, 130 after
Ctrl-C, with the run kept.
"""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path
from typing import Any

from engine import settings
from engine.benchmark import execute, prepare
from engine.benchmark.execute import PreparedRun
from engine.benchmark.run_progress import Progress, Tracker
from engine.cli import run_place
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
from engine.errors import BadInput
from engine.media import dataset
from engine.pipeline.watcher import Watcher
from engine.plain_files import read_text
from engine.quoting import number, quoted, shown
from engine.storage import run_store
from engine.storage.plan import ORDERS, STOP_AFTER, Plan
from engine.types import FRAME_RULES, DecodeConfig

MAX_IDS = 64 * 2**20  # bytes of the file of --ids
EVERY_S = 2.0  # a line of progress
ORDER_HELP = "auto (default): by turns where all models fit into memory, else model by model"
# Flags that say what a new run is; a resumed one knows it already.
PLANNING = ("models", "samples", "ids", "prompt", "repeat", "warmup", "order", "cache", "length",
            "max_new_tokens", "frames", "mode", "backend", "pixels", "batch",
            "extent", "stop_after", "out")  # fmt: skip


def add(commands: Any) -> None:
    sub = commands.add_parser("bench", help="many samples, some models: a run that is kept")
    sub.add_argument("--dataset", type=Path, help=DATASET_HELP)
    sub.add_argument("--models", help="comma-separated names from models.toml")
    some = sub.add_mutually_exclusive_group()
    some.add_argument("--samples", type=int, help="the first N samples (default: all)")
    some.add_argument("--ids", type=Path, help="a file with one sample id per line")
    sub.add_argument("--prompt", help="one question for all (default: each record's own)")
    sub.add_argument("--repeat", type=int, help="runs of each sample (default: 1)")
    sub.add_argument("--warmup", type=int, help="runs of each model that do not count (default: 1)")
    sub.add_argument("--order", choices=ORDERS, help=ORDER_HELP)
    sub.add_argument("--cache", choices=("off", "use", "refresh"), help="default: off, measured")
    sub.add_argument("--length", help="natural (default), or forced:N for N tokens each")
    sub.add_argument("--max-new-tokens", type=int, help="the limit of a natural length")
    sub.add_argument("--frames", choices=FRAME_RULES, help="rule that chooses the 8 frames")
    sub.add_argument("--mode", choices=("decoupled", "hooked"))
    add_backend(sub)
    add_pixels(sub)
    add_extent(sub)
    sub.add_argument(
        "--batch", type=int, help="samples answered together (default: 1); only the batch is timed"
    )
    sub.add_argument(
        "--stop-after", type=int, help=f"failures in a row that give a model up ({STOP_AFTER})"
    )
    sub.add_argument("--out", type=Path, help="folder of the run (default: in the runs folder)")
    sub.add_argument("--resume", metavar="RUN", help="go on with a run: its folder or name")
    sub.add_argument("--force", action="store_true", help="resume although something has changed")
    run_place.add(sub)
    add_json(sub)
    sub.set_defaults(run=_bench)


def _bench(options: argparse.Namespace) -> int:
    with run_place.chosen(options) as executor:
        return _run(options, executor)


def _run(options: argparse.Namespace, executor: execute.Executor | None) -> int:
    elsewhere = executor is not None
    ready = _new(options, elsewhere) if options.resume is None else _resumed(options)
    folder = ready.writer.folder
    say(f"The run is kept in {folder}")
    if ready.writer.problem:
        say(ready.writer.problem)
    if (plan := ready.writer.header.plan).order_why:
        say(f"Order: {plan.order} ({plan.order_why})")
    try:
        with ready.writer:
            execute.run(ready, _Teller(ready.tracker), executor)
    except KeyboardInterrupt:
        say(f"Stopped; go on with: python -m engine bench --resume {shlex.quote(str(folder))}")
        return 130
    view = ready.tracker.view()
    say(_line(view))
    _tell(folder, view, options)
    return 1 if view.failed or any(live.given_up for live in view.models) else 0


def _new(options: argparse.Namespace, elsewhere: bool) -> PreparedRun:
    if not options.models:
        raise BadInput("--models is missing: name at least one model.")
    if options.force:
        raise BadInput("--force goes with --resume: leave it out.")
    found = read_dataset(options.dataset)
    given = {
        "prompt": options.prompt,
        "repeat": options.repeat,
        "warmup": options.warmup,
        "order": options.order,
        "cache": options.cache,
        "frames": options.frames,
        "mode": options.mode,
        "pixels": options.pixels,
        "extent": options.extent,
        "batch": options.batch,
        "stop_after": options.stop_after,
    }
    plan = Plan(
        models=tuple(names(options.models)),
        samples=_samples(found, options),
        decode=_decode(options),
        **{name: value for name, value in given.items() if value is not None},
    )
    return execute.prepare(plan, found, options.out, elsewhere)


def _resumed(options: argparse.Namespace) -> PreparedRun:
    given = [name for name in PLANNING if getattr(options, name) is not None]
    if given:
        flag = "--" + given[0].replace("_", "-")
        raise BadInput(f"--resume goes on with the run's own plan: leave {flag} out.")
    folder = run_store.find(options.resume, settings.load().runs_dir)
    return prepare.resume(folder, options.dataset, options.force)


def _samples(found: dataset.Dataset, options: argparse.Namespace) -> tuple[str, ...]:
    """The ids of the chosen samples, in the dataset's order or the file's."""
    if options.ids is not None:
        return _listed(found, options.ids)
    everything = tuple(sample.id for sample in found.samples)
    wanted = options.samples
    if wanted is None:
        return everything
    if wanted < 1:
        raise BadInput(f"--samples is {number(wanted)}: give at least 1.")
    if wanted > len(everything):
        known = f"{len(everything):,}"
        say(f"--samples is {number(wanted)}; the dataset holds {known}, and all are taken.")
    return everything[:wanted]


def _listed(found: dataset.Dataset, file: Path) -> tuple[str, ...]:
    wanted = read_text(file, MAX_IDS, "The list of ids").splitlines()
    ids = dataset.find_all(found, wanted)
    if not ids:
        raise BadInput(f"{shown(file)} names no sample: put one id on each line.")
    if repeated := len(ids) - len(set(ids)):
        say(
            f"{shown(file)} names {repeated:,} samples more than once: each is run once per repeat."
        )
    return tuple(dict.fromkeys(ids))


def _decode(options: argparse.Namespace) -> DecodeConfig:
    most, backend = options.max_new_tokens, options.backend or DecodeConfig.backend
    length = "natural" if options.length is None else options.length
    if length == "natural":
        return DecodeConfig(DecodeConfig.max_new_tokens if most is None else most, backend=backend)
    kind, _, digits = length.partition(":")
    if kind != "forced" or not digits.isdecimal() or len(digits) > 9:
        raise BadInput(f"--length is {quoted(length)}: write natural, or forced:N as in forced:64.")
    if most is not None:
        raise BadInput("--length forced:N sets the number of tokens: leave --max-new-tokens out.")
    return DecodeConfig(int(digits), min_new_tokens=int(digits), backend=backend)


class _Teller(Watcher):
    """Says now and then how the run stands."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._said = time.monotonic()

    def give_way(self) -> float:
        """Between two samples; nobody waits for the device here."""
        if time.monotonic() - self._said >= EVERY_S:
            self._said = time.monotonic()
            say(_line(self._tracker.view()))
        return 0.0


def _line(view: Progress) -> str:
    rate = f", {view.per_s:.2f} a second" if view.per_s else ""
    left = f", about {_duration(view.left_s)} left" if view.left_s else ""
    failed = f", {view.failed:,} failed" if view.failed else ""
    workers = any(not worker.ended for worker in view.workers)
    where = f"; {view.current}" if workers else ""  # whom a cluster waits for, and its troubles
    return f"{view.done:,} of {view.planned:,} results{failed}{rate}{left}{where}"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def _tell(folder: Path, view: Progress, options: argparse.Namespace) -> None:
    """The summary: every failure's reason once, and the medians of each model."""
    from engine import report
    from engine.analysis import results_table

    table = results_table.frame([run_store.read(folder)])
    for live in view.models:
        if live.given_up:
            say(f"{live.model} was given up: {live.given_up}")
    for reason, count in _reasons(view).items():
        say(f"{count:,}x {reason}")
    value = {"folder": str(folder), **report.figures(table)}
    out(value, report.as_text(table), options)


def _reasons(view: Progress) -> dict[str, int]:
    """The last failures by their sentence."""
    found: dict[str, int] = {}
    for failure in view.failures:
        key = f"{failure.model}: {failure.reason}"
        found[key] = found.get(key, 0) + 1
    return found
