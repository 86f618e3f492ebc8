"""bench --plan-only: what a run would cost, from an earlier run; it runs nothing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine import settings
from engine.analysis import run_planning
from engine.benchmark import prepare, sweep
from engine.cli.common import flag, out
from engine.errors import BadInput
from engine.machine.device import free_disk_bytes
from engine.media.dataset import Dataset
from engine.media_options import Perturbation
from engine.report import planning_words
from engine.report.blocks import Bullets
from engine.storage import run_store
from engine.storage.plan import Plan

FLAGS = {
    "--plan-only": flag(bool, "run nothing: print duration and disk size, from an earlier run"),
    "--from": flag(str, "with --plan-only: the earlier run, its folder or name (default: the "
        "newest of the same models and dataset)", form="RUN", dest="earlier"),
}  # fmt: skip


def asked(options: argparse.Namespace) -> bool:
    """Whether only a plan is wanted; BadInput for flags that do not fit."""
    if not options.plan_only:
        if options.earlier is not None:
            raise BadInput("--from goes with --plan-only: add that, or leave it out.")
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
    earlier = run_planning.measure(run_store.read(folder), plan.models) if folder else None
    sequences = {name: sample.sequence for name, sample in samples.items()}
    forecast = run_planning.forecast(plan, sequences, earlier, len(runs))
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
    facts = planning_words.facts(forecast, earlier, options.earlier is None)
    out(value, [Bullets((*facts, *place))], options)
    return 0
