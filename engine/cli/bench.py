"""bench: a dataset run with progress in the terminal; an interrupted run can be resumed.

Exit code 0 if all results are answers, 1 if some failed, 2 for a user error, 130 after Ctrl-C (the
run is saved).
"""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import media_options, settings, types
from engine.benchmark import by_turns, execute, prepare, sweep
from engine.benchmark.cluster.cluster_options import LOCAL, PER_WORKER, ClusterOptions, per_worker
from engine.benchmark.execute import PreparedRun
from engine.benchmark.run_progress import Progress, Tracker
from engine.cli import common, plan_only
from engine.cli.common import flag
from engine.errors import BadInput, StoreError
from engine.media import dataset
from engine.media_options import Perturbation
from engine.pipeline.watcher import Watcher
from engine.plain_files import read_text
from engine.quoting import duration, quoted, shown, whole
from engine.storage import run_header, run_store
from engine.storage.plan import ORDERS, STOP_AFTER, Plan
from engine.types import arranged

MAX_IDS = 64 * 2**20  # bytes of the file of --ids
EVERY_S = 2.0  # between two lines of progress
ORDER_HELP = "auto (default): by turns if all models fit in memory, otherwise model by model"
OFFERED = tuple(name for name in types.OFFERED if name not in ("temperature", "top_p", "seed"))
# Flags of a new run; a resumed run has its own plan.
PLANNING = ("models", "show", "samples", "ids", "prompt", "repeat", "warmup", "order", "length",
            *OFFERED, "batch", "stop_after", "out")  # fmt: skip


LENGTH_HELP = "natural (default), or forced:N for N tokens each"
AGAINST_HELP = (
    "run the code of this folder too, by turns; the runs OUT-base and OUT-new can be compared by "
    "gate, with their times"
)

ADDRESS_HELP = (
    "a Ray cluster: HOST:PORT, or auto for this machine's cluster; default: ray_address in the "
    "settings, otherwise a temporary local Ray cluster"
)
PER_WORKER_HELP = "resources of a worker (cpus=1, a GPU if any)"
PLACE_FLAGS = {
    "--executor": flag(("local", "ray"), "this process (default), or Ray", "local"),
    "--address": flag(str, ADDRESS_HELP),
    "--workers": flag(int, "number of workers (default: one per device)"),
    "--per-worker": flag(str, PER_WORKER_HELP, form=PER_WORKER),
}


def add(commands: Any) -> None:
    stop_after = f"stop a model after N failures in a row (default: {STOP_AFTER})"
    flags = {
        **common.DATASET,
        **common.MODELS,
        "--models": common.MODELS["--models"] | {"required": False},
        "--prompt": flag(str, "one question for all (default: each record's own)"),
        "--repeat": flag(int, "runs of each sample (default: 1)"),
        "--warmup": flag(int, "warm-up runs of each model (default: 1)"),
        "--order": flag(ORDERS, ORDER_HELP),
        "--length": flag(str, LENGTH_HELP),
        **common.option_flags(OFFERED, Plan),
        "--batch": flag(int, "samples per batch (default: 1); only whole batches are timed"),
        "--stop-after": flag(int, stop_after),
        "--out": flag(Path, "folder of the run (default: in the runs folder)"),
        "--resume": flag(str, "resume a run: its folder or name", form="RUN"),
        "--force": flag(bool, "resume although something has changed"),
        "--against": flag(Path, AGAINST_HELP, form="CHECKOUT"),
        "--turns": flag(str, argparse.SUPPRESS),  # a side of --against
        **PLACE_FLAGS,
        **plan_only.FLAGS,
        **common.JSON,
    }
    text = "run models on many samples and save the results"
    bench = common.command(commands, "bench", _bench, text, flags)
    chosen = {
        "--samples": flag(int, "the first N samples (default: all)"),
        "--ids": flag(Path, "a file with one sample id per line"),
    }
    common.add_flags(bench.add_mutually_exclusive_group(), chosen)


def _bench(options: argparse.Namespace) -> int:
    if options.against is not None:
        return _by_turns(options)
    if plan_only.asked(options):
        return plan_only.show(options, *_plan_of_sweep(options))
    if options.resume is None and "/" in (options.perturb or ""):
        return _sweep(options)
    with _place(options) as executor:
        return _run(options, executor)


def _place(options: argparse.Namespace) -> AbstractContextManager[execute.Executor | None]:
    """A context for the run; leaving it stops everything that was started."""
    if options.executor == "local":
        common.refuse(
            options,
            ("address", "workers", "per_worker"),
            "needs --executor ray: leave it out, or add that.",
        )
        return nullcontext()
    from engine.benchmark.cluster.run_session import ClusterExecutor

    cpus, gpus = (1, None) if options.per_worker is None else per_worker(options.per_worker)
    address = options.address
    if address is None:
        address = settings.load().ray_address or LOCAL
    wanted = ClusterOptions(address, options.workers, cpus, gpus)
    wanted.refuse(options.order or "", options.batch or 1)
    common.say(f"Connecting to Ray at {address} ..." if address != LOCAL else "Starting Ray ...")
    return ClusterExecutor(wanted)


def _run(options: argparse.Namespace, executor: execute.Executor | None) -> int:
    if options.resume is None:
        plan, found = _planned(options)
        elsewhere = executor is not None
        ready = execute.prepare(plan, found, options.out, elsewhere, options.turns or "")
    else:
        common.refuse(options, PLANNING, "belongs to a new run: leave it or --resume out.")
        run = run_store.find(options.resume, settings.load().runs_dir)
        ready = prepare.resume(run, options.dataset, options.force)
    folder, plan = ready.writer.folder, ready.writer.header.plan
    common.say(f"The run is saved in {folder}")
    if ready.writer.problem:
        common.say(ready.writer.problem)
    if plan.order_why:
        common.say(f"Order: {plan.order} ({plan.order_why})")
    view = _executed(ready, executor)
    if view is None:
        how = f"Resume with: python -m engine bench --resume {shlex.quote(str(folder))}"
        common.say("Stopped." if options.turns else f"Stopped. {how}")
        return 130
    from engine.report import document
    from engine.report.report_figures import Findings

    figures = Findings([run_store.read(folder)], titled=False)
    value = {
        "folder": str(folder),
        "counts": figures.counts,
        "figures": figures.figures,
        "throughput": figures.throughputs,
        "choice_accuracy": figures.choices,
        "machine_load": figures.loads,
    }
    common.out(value, document.summary(figures), options)
    return 1 if _incomplete(view) else 0


def _executed(ready: PreparedRun, executor: execute.Executor | None) -> Progress | None:
    """The progress at the end of the run, with each failure reason once; None after Ctrl-C."""
    try:
        with ready.writer:
            kind = _Turns if ready.writer.header.together else _ProgressPrinter
            execute.run(ready, kind(ready.tracker), executor)
    except KeyboardInterrupt:
        return None
    view = ready.tracker.view()
    common.say(_line(view))
    for live in view.models:
        if live.given_up:
            common.say(f"{live.model} was given up: {live.given_up}")
    for reason, count in Counter(f"{row.model}: {row.error}" for row in view.failures).items():
        common.say(f"{count:,}x {reason}")
    return view


def _by_turns(options: argparse.Namespace) -> int:
    """A run of the other checkout (BASE) and one of this (NEW)."""
    others = {"--resume": options.resume, "--executor": options.executor != "local",
              "--plan-only": plan_only.asked(options), "--batch": options.batch not in (None, 1),
              "a sweep in --perturb": "/" in (options.perturb or "")}  # fmt: skip
    if wrong := [name for name, given in others.items() if given]:
        raise BadInput(f"--against times two new runs, sample by sample: leave out {wrong[0]}.")
    plan, found = _planned(options)
    plan, _, entries = prepare.checked(plan, found)
    plan = prepare.ordered(plan, entries, elsewhere=False)
    checkout, together = options.against.absolute(), run_header.new_id()
    by_turns.refuse(checkout)
    out_ = (options.out or settings.load().runs_dir / together).absolute()
    given = {name: getattr(options, name) for name in PLANNING if name not in ("show", "out")}
    given |= {"dataset": found.root.absolute(), "ids": options.ids and options.ids.absolute(),
              "models": ",".join(plan.models), "order": plan.order, "turns": together}  # fmt: skip
    flags = [
        f"{common.flag_of(name)}={value}" for name, value in given.items() if value is not None
    ]
    folders = [out_.with_name(f"{out_.name}-{side}") for side in ("base", "new")]
    if taken := [folder for folder in folders if os.path.lexists(folder)]:
        raise BadInput(f"{shown(taken[0])} exists already: name another --out.")
    commands = [
        (place, ["bench", *flags, f"--out={folder}"])
        for place, folder in zip((checkout, settings.PROJECT), folders, strict=True)
    ]
    in_a_repeat = replace(plan, repeat=1).batches(plan.model_groups()[0])
    code = by_turns.run(commands, len(list(in_a_repeat)))
    if unfinished := [one for one in folders if run_store.read(one).state != "finished"]:
        raise StoreError(
            f"The run {shown(unfinished[0])} did not finish: mend what it printed, and start both "
            "again with another --out."
        )
    command = shlex.join(["python", "-m", "engine", "gate", *map(str, folders)])
    common.out(
        {"folders": list(map(str, folders)), "gate": command}, f"Compare them: {command}", options
    )
    return code


def _incomplete(view: Progress) -> bool:
    return bool(view.failed) or any(live.given_up for live in view.models)


def _plan_of_sweep(
    options: argparse.Namespace,
) -> tuple[Plan, dataset.Dataset, Sequence[tuple[Perturbation, ...]]]:
    """The plan without its perturbation, its dataset, and the perturbation of each run."""
    one = argparse.Namespace(**vars(options) | {"perturb": None})
    return *_planned(one), media_options.sweep(options.perturb or "")


def _sweep(options: argparse.Namespace) -> int:
    """A run per strength, then the curves."""
    if options.executor != "local":
        sweep.refuse_elsewhere(len(media_options.sweep(options.perturb)))
    plan, found, runs = _plan_of_sweep(options)
    plans, base = sweep.plans(plan, runs), options.out or sweep.new_base()
    folders, failed = sweep.folders(base, plans), False
    for place, (each, folder) in enumerate(zip(plans, folders, strict=True), start=1):
        strength = ",".join(map(str, each.perturb))
        common.say(f"Run {place} of {len(plans)}, {strength}, is saved in {folder}")
        view = _executed(sweep.ready(each, found, folder, sweep.change_of(plans)), None)
        if view is None:
            common.say(
                f"Stopped. Repeat the command with --out {shlex.quote(str(base))}: finished runs "
                "are skipped, and this one continues."
            )
            return 130
        failed = failed or _incomplete(view)
    from engine.analysis import robustness
    from engine.report import robustness_part

    curves = robustness.find([run_store.read(folder) for folder in folders])
    shown = robustness_part.parts(curves, charts=False) if curves else ()
    value = {"folders": list(map(str, folders)), "robustness": curves}
    common.out(value, shown, options)
    names = shlex.join(map(str, folders))
    common.say(f"Report: python -m engine report {names} --format html --out report.html")
    return 1 if failed else 0


def _planned(options: argparse.Namespace) -> tuple[Plan, dataset.Dataset]:
    """The plan of the flags, and its dataset."""
    if not options.models:
        raise BadInput("--models is missing: name at least one model.")
    common.refuse(options, ["force"], "goes with --resume: leave it out.")
    found = common.read_dataset(options.dataset)
    names = ("prompt", "repeat", "warmup", "order", "batch", "stop_after")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    plan = Plan(
        models=tuple(common.model_names(options)),
        samples=_samples(found, options),
        **given,
        **arranged(_length(options) | common.given_options(options)),
    )
    return plan, found


def _samples(found: dataset.Dataset, options: argparse.Namespace) -> tuple[str, ...]:
    """The ids of the chosen samples, in the dataset's order or the file's."""
    if (file := options.ids) is not None:
        ids = dataset.find_all(found, read_text(file, MAX_IDS, "The list of ids").splitlines())
        once = tuple(dict.fromkeys(ids))
        if not ids:
            raise BadInput(f"{shown(file)} names no sample: put one id on each line.")
        if repeated := len(ids) - len(once):
            common.say(
                f"{shown(file)} names {repeated:,} samples more than once: each is run once per "
                "repeat."
            )
        return once
    everything, wanted = tuple(sample.id for sample in found.samples), options.samples
    if wanted is None:
        return everything
    if wanted < 1:
        raise BadInput(f"--samples is {whole(wanted)}: give at least 1.")
    if wanted > len(everything):
        known = f"{len(everything):,}"
        common.say(f"--samples is {whole(wanted)}; the dataset has only {known}: all are used.")
    return everything[:wanted]


def _length(options: argparse.Namespace) -> dict[str, int]:
    """The limits that --length sets."""
    if options.length in (None, "natural"):
        return {}
    kind, _, digits = options.length.partition(":")
    if kind != "forced" or not digits.isdecimal() or len(digits) > 9:
        raise BadInput(
            f"--length is {quoted(options.length)}: write natural, or forced:N as in forced:64."
        )
    if options.max_new_tokens is not None:
        raise BadInput("--length forced:N sets the number of tokens: leave --max-new-tokens out.")
    return {"max_new_tokens": int(digits), "min_new_tokens": int(digits)}


class _ProgressPrinter(Watcher):
    """Prints the progress every EVERY_S."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._printed = time.monotonic()

    def give_way(self) -> float:
        """Prints progress between two samples; other jobs do not wait for the device here."""
        if time.monotonic() - self._printed >= EVERY_S:
            self._printed = time.monotonic()
            common.say(_line(self._tracker.view()))
        return 0.0


class _Turns(_ProgressPrinter):
    """A side of --against; the other side's work is no pause, because each result follows one."""

    def give_way(self) -> float:
        by_turns.wait_for_turn()
        return super().give_way()


def _line(view: Progress) -> str:
    rate = f", {view.per_s:.2f} per second" if view.per_s else ""
    left = f", about {duration(view.left_s)} left" if view.left_s else ""
    failed = f", {view.failed:,} failed" if view.failed else ""
    on_cluster = any(not worker.ended for worker in view.workers)
    where = f"; {view.current}" if on_cluster else ""  # the workers' states and problems
    return f"{view.done:,} of {view.planned:,} results{failed}{rate}{left}{where}"
