"""bench: a dataset run with progress in the terminal; an interrupted run can be resumed.

--plan-only runs nothing: it prints what the run would cost, from an earlier run.

Exit code 0 if all results are answers, 1 if some failed, 2 for a user error, 130 after Ctrl-C (the
run is saved).
"""

import argparse
import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engine import media_options, public, settings
from engine.analysis import run_planning
from engine.benchmark import by_turns, execute
from engine.benchmark.cluster.ray_link import LOCAL, PER_WORKER, ClusterOptions, per_worker
from engine.cli import common
from engine.cli.common import flag
from engine.errors import BadInput, StoreError
from engine.jobs import benchmark_job
from engine.jobs.benchmark_job import BenchmarkJob
from engine.machine.device import free_disk_bytes
from engine.media import dataset
from engine.media_options import Perturbation
from engine.plain_files import read_text
from engine.quoting import count, shown
from engine.report.blocks import Bullets
from engine.storage import run_header, run_store
from engine.storage.plan import ORDERS, STOP_AFTER, Plan

MAX_IDS = 64 * 2**20  # bytes of the file of --ids
ORDER_HELP = "auto (default): by turns if all models fit in memory, otherwise model by model"
# Flags of a new run; a resumed run has its own plan.
PLANNING = ("models", "show", "samples", "ids", "prompt", *public.PLANNED, *public.BENCHED, "out")

AGAINST_HELP = (
    "run the code of this folder too, by turns; the runs OUT-base and OUT-new can be compared by "
    "gate, with their times"
)

ADDRESS_HELP = (
    "a Ray cluster: HOST:PORT, or auto for this machine's cluster; default: ray_address in the "
    "settings, otherwise a temporary local Ray cluster"
)
PLACE_FLAGS = {
    "--executor": flag(("local", "ray"), "this process (default), or Ray", "local"),
    "--address": flag(str, ADDRESS_HELP),
    "--workers": flag(int, "number of workers (default: one per device)"),
    "--per-worker": flag(str, "resources of a worker (cpus=1, a GPU if any)", form=PER_WORKER),
}
PLAN_FLAGS = {
    "--plan-only": flag(bool, "run nothing: print duration and disk size, from an earlier run"),
    "--from": flag(str, "with --plan-only: the earlier run, its folder or name (default: the "
        "newest of the same models and dataset)", form="RUN", dest="earlier"),
}  # fmt: skip


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
        "--length": flag(str, "natural (default), or forced:N for N tokens each"),
        **common.option_flags(public.BENCHED, Plan),
        "--batch": flag(int, "samples per batch (default: 1); only whole batches are timed"),
        "--stop-after": flag(int, stop_after),
        "--out": flag(Path, "folder of the run (default: in the runs folder, which Results lists)"),
        "--resume": flag(str, "resume a run: its folder or name", form="RUN"),
        "--force": flag(bool, "resume although something has changed"),
        "--against": flag(Path, AGAINST_HELP, form="CHECKOUT"),
        "--turns": flag(str, argparse.SUPPRESS),  # a side of --against
        **PLACE_FLAGS,
        **PLAN_FLAGS,
        **common.JSON,
    }
    flags["--perturb"]["help"] += " Several strengths, as in drop:0/0.3/0.6: a run for each."
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
    if _plans_only(options):
        return _forecast(options)
    if options.resume is None and "/" in (options.perturb or ""):
        return _sweep(options)
    return _run(options)


def _cluster(options: argparse.Namespace) -> ClusterOptions | None:
    """Where the run is done, if not in this process."""
    if options.executor == "local":
        why = "needs --executor ray: leave it out, or add that."
        common.refuse(options, ("address", "workers", "per_worker"), why)
        return None
    cpus, gpus = (1, None) if options.per_worker is None else per_worker(options.per_worker)
    address = options.address
    if address is None:
        address = settings.load().ray_address or LOCAL
    wanted = ClusterOptions(address, options.workers, cpus, gpus)
    wanted.refuse(options.order or "", options.batch or 1)
    return wanted


def _run(options: argparse.Namespace) -> int:
    cluster = _cluster(options)
    if options.resume is None:
        plan, found = _planned(options)
        together = options.turns or ""
        job = BenchmarkJob(
            plan=plan, root=found.root, folder=options.out, together=together, cluster=cluster
        )
    else:
        common.refuse(options, PLANNING, "belongs to a new run: leave it or --resume out.")
        run = run_store.find(options.resume, settings.load().runs_dir)
        job = BenchmarkJob(resume=run, root=options.dataset, force=options.force, cluster=cluster)
    try:
        results = public.ran(job, common.say)
    except KeyboardInterrupt:
        again = ["--resume", str(job.folder), *(cluster.flags if cluster else ())]
        how = f"{settings.COMMAND} bench {shlex.join(again)}"
        there = job.folder is not None and (job.folder / run_header.HEADER).exists()
        resumable = there and not options.turns
        common.say(f"Stopped. Resume with: {how}" if resumable else "Stopped.")
        return 130
    from engine.report import document
    from engine.report.report_figures import Findings

    figures = Findings([results.run], titled=False)
    value = {
        "folder": str(results.folder),
        "counts": figures.counts,
        "figures": figures.figures,
        "throughput": figures.throughputs,
        "choice_accuracy": figures.choices,
        "machine_load": figures.loads,
    }
    common.out(value, document.summary(figures), options)
    return _code(job)


def _code(job: BenchmarkJob) -> int:
    return 1 if job.seen is None or job.seen.incomplete else 0


def _by_turns(options: argparse.Namespace) -> int:
    others = {"--resume": options.resume, "--executor": options.executor != "local",
              "--plan-only": _plans_only(options), "--batch": options.batch not in (None, 1),
              "a sweep in --perturb": "/" in (options.perturb or "")}  # fmt: skip
    if wrong := [name for name, given in others.items() if given]:
        raise BadInput(f"--against times two new runs, sample by sample: leave out {wrong[0]}.")
    plan, found = _planned(options)
    plan, _, entries = execute.checked(plan, found)
    plan = execute.ordered(plan, entries, elsewhere=False)
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
    command = f"{settings.COMMAND} gate {shlex.join(map(str, folders))}"
    common.out(
        {"folders": list(map(str, folders)), "gate": command}, f"Compare them: {command}", options
    )
    return code


def _plan_of_sweep(
    options: argparse.Namespace,
) -> tuple[Plan, dataset.Dataset, Sequence[tuple[Perturbation, ...]]]:
    """The plan without its perturbation, its dataset, and the perturbation of each run."""
    one = argparse.Namespace(**vars(options) | {"perturb": None})
    return *_planned(one), media_options.sweep(options.perturb or "")


def _plans_only(options: argparse.Namespace) -> bool:
    """Whether only a plan is wanted; BadInput for flags that do not fit."""
    if not options.plan_only:
        if options.earlier is not None:
            raise BadInput("--from goes with --plan-only: add that, or leave it out.")
        return False
    if options.resume is not None:
        raise BadInput("--plan-only plans a new run: leave --resume out.")
    return True


def _forecast(options: argparse.Namespace) -> int:
    plan, found, runs = _plan_of_sweep(options)
    elsewhere = options.executor != "local"
    if elsewhere and len(runs) > 1:
        benchmark_job.refuse_sweep_elsewhere(len(runs))
    plan, samples, _ = execute.checked(replace(plan, perturb=runs[0]), found, elsewhere)
    base = settings.load().runs_dir
    if options.earlier is not None:
        folder: Path | None = run_store.find(options.earlier, base)
    else:
        newest = run_planning.newest(plan, found.root, run_store.listing(base))
        folder = newest.folder if newest else None
    earlier = run_planning.measure(run_store.read(folder), plan.models) if folder else None
    sequences = {name: sample.sequence for name, sample in samples.items()}
    forecast = run_planning.forecast(plan, sequences, earlier, len(runs))
    free = free_disk_bytes(options.out or base)
    value: dict[str, Any] = {"from": None, "forecast": asdict(forecast), "free_bytes": free}
    if earlier is None:
        text = run_planning.nothing_known(plan.models)
        common.out(value | {"problem": text}, f"{run_planning.planned(forecast)}\n{text}", options)
        return 0
    value["from"] = {"run": earlier.run.id, "folder": str(earlier.run.folder),
                     "results": earlier.results, "device": earlier.device,
                     "busy": earlier.busy, "named": options.earlier is not None}  # fmt: skip
    place = [*run_planning.free(options.out or base)]
    if elsewhere:
        place.append("The duration is that of one worker; a run on several takes less.")
    facts = run_planning.facts(forecast, earlier, options.earlier is None)
    common.out(value, [Bullets((*facts, *place))], options)
    return 0


def _sweep(options: argparse.Namespace) -> int:
    if options.executor != "local":
        benchmark_job.refuse_sweep_elsewhere(len(media_options.sweep(options.perturb)))
    plan, found, runs = _plan_of_sweep(options)
    base = options.out or benchmark_job.sweep_base()
    plans = [replace(plan, perturb=run) for run in runs]
    jobs = benchmark_job.sweep_jobs(plans, found.root, base)
    for number, job in enumerate(jobs, start=1):
        common.say(f"Run {number} of {len(jobs)}: {','.join(map(str, runs[number - 1]))}")
        try:
            public.ran(job, common.say)
        except KeyboardInterrupt:
            common.say(
                f"Stopped. Repeat the command with --out {shlex.quote(str(base))}: finished runs "
                "are skipped, and this one continues."
            )
            return 130
    folders = [job.folder for job in jobs if job.folder]
    from engine.analysis import robustness
    from engine.report import accuracy_part

    curves = robustness.find([run_store.read(folder) for folder in folders])
    shown = accuracy_part.sweep_parts(curves, charts=False) if curves else ()
    value = {"folders": list(map(str, folders)), "robustness": curves}
    common.out(value, shown, options)
    names = shlex.join(map(str, folders))
    common.say(f"Report: {settings.COMMAND} report {names} --format html --out report.html")
    return max(map(_code, jobs))


def _planned(options: argparse.Namespace) -> tuple[Plan, dataset.Dataset]:
    if not options.models:
        raise BadInput("--models is missing: name at least one model.")
    common.refuse(options, ["force"], "goes with --resume: leave it out.")
    found = public.read_dataset(options.dataset)
    given = {name: getattr(options, name) for name in (*public.PLANNED, *public.BENCHED)}
    samples = options.samples if options.ids is None else _ids(found, options.ids)
    models = common.model_names(options)
    return public.planned(models, found, samples, options.prompt, given, common.say), found


def _ids(found: dataset.Dataset, file: Path) -> tuple[str, ...]:
    """The ids of the samples that a file names, in its order."""
    ids = dataset.find_all(found, read_text(file, MAX_IDS, "The list of ids").splitlines())
    once = tuple(dict.fromkeys(ids))
    if not ids:
        raise BadInput(f"{shown(file)} names no sample: put one id on each line.")
    if repeated := len(ids) - len(once):
        again = f"{shown(file)} names {count(repeated, 'sample')} more than once"
        common.say(f"{again}: each is run once per repeat.")
    return once
