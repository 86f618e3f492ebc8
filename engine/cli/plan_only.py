"""bench --plan-only: what a run would cost and detect, from an earlier run; it runs nothing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine import settings
from engine.analysis import run_planning
from engine.analysis.gate import ACCURACY
from engine.analysis.metrics import PAIRED
from engine.benchmark import prepare, sweep
from engine.cli.common import flag, out, percent, refuse
from engine.errors import BadInput
from engine.machine.device import free_disk_bytes
from engine.media.dataset import Dataset
from engine.media_options import Perturbation
from engine.quoting import quoted
from engine.report import planning_words
from engine.storage import run_store
from engine.storage.plan import Plan

KNOWN = (*(metric.name for metric in PAIRED), ACCURACY)


_HERE = "with --plan-only: "
FLAGS = {
    "--plan-only": flag(bool, "run nothing: print duration, disk size and the differences that the "
        "run can detect, from an earlier run"),
    "--from": flag(str, f"{_HERE}the earlier run, its folder or name (default: the newest of the "
        "same models and dataset)", form="RUN", dest="earlier"),
    "--detect": flag(str, f"{_HERE}the difference to detect, as in 5%% (default)"),
    "--metric": flag(str, f"{_HERE}total (default), or one of {', '.join(KNOWN)}"),
}  # fmt: skip


def asked(options: argparse.Namespace) -> bool:
    """Whether only a plan is wanted; BadInput for flags that do not fit."""
    if not options.plan_only:
        if options.earlier is not None:
            raise BadInput("--from goes with --plan-only: add that, or leave it out.")
        refuse(options, ("detect", "metric"), "goes with --plan-only: add that, or leave it out.")
        return False
    if options.resume is not None:
        raise BadInput("--plan-only plans a new run: leave --resume out.")
    return True


def show(
    options: argparse.Namespace,
    plan: Plan,
    found: Dataset,
    runs: Sequence[tuple[Perturbation, ...]],
) -> int:
    """Prints the forecast of the plan, or of the runs of a sweep together."""
    metric = "total" if options.metric is None else options.metric
    difference = percent("--detect", options.detect or "5%")
    if not 0 < difference < 1:
        text = f"--detect is {quoted(options.detect)}"
        raise BadInput(f"{text}: write a percentage above 0 and below 100, as in 5%.")
    if metric not in KNOWN:
        raise BadInput(f"--metric is {quoted(metric)}: choose one of {', '.join(KNOWN)}.")
    elsewhere = options.executor != "local"
    if elsewhere and len(runs) > 1:
        sweep.refuse_elsewhere(len(runs))
    plan, samples, _ = prepare.checked(sweep.plans(plan, runs)[0], found, elsewhere)
    base = settings.load().runs_dir
    if options.earlier is not None:
        folder: Path | None = run_store.find(options.earlier, base)
    else:
        newest = run_planning.newest(plan, found.root, run_store.listing(base))
        folder = newest.folder if newest else None
    earlier = run_planning.measure(run_store.read(folder), plan.models, metric) if folder else None
    sequences = {name: sample.sequence for name, sample in samples.items()}
    forecast = run_planning.forecast(plan, sequences, earlier, metric, difference, len(runs))
    free = free_disk_bytes(options.out or base)
    value: dict[str, Any] = {"from": None, "forecast": asdict(forecast), "free_bytes": free}
    if earlier is None:
        text = planning_words.nothing_known(plan.models)
        out(value | {"problem": text}, f"{planning_words.planned(forecast)}\n{text}", options)
        return 0
    value["from"] = {"run": earlier.run.id, "folder": str(earlier.run.folder),
                     "results": earlier.results, "device": earlier.device,
                     "busy": earlier.busy, "named": options.earlier is not None}  # fmt: skip
    place = [*planning_words.free(options.out or base)]
    if elsewhere:
        place.append("The duration is that of one worker; a run on several takes less.")
    out(value, planning_words.blocks(forecast, earlier, options.earlier is None, place), options)
    return 0
