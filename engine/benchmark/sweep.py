"""A sweep: a dataset run per strength of one change, each in a folder of its own.

The folders are named BASE-CHANGE-STRENGTH.  The same sweep with the same base skips finished runs
and continues a stopped one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine import settings
from engine.benchmark.execute import PreparedRun, prepare, resume
from engine.errors import BadInput, StoreError
from engine.media.dataset import Dataset
from engine.media_options import Change, Perturbation, swept_change
from engine.quoting import shown
from engine.storage import run_details, run_header
from engine.storage.plan import Plan
from engine.storage.run_details import MAX_NAME_CHARS, RunDetails


def plans(plan: Plan, runs: Sequence[tuple[Perturbation, ...]]) -> tuple[Plan, ...]:
    return tuple(replace(plan, perturb=run) for run in runs)


def change_of(every: Sequence[Plan]) -> Change | None:
    return swept_change(plan.perturb for plan in every)


def new_base() -> Path:
    return settings.load().runs_dir / f"sweep-{run_header.new_id()}"


def folders(base: Path, every: Sequence[Plan]) -> tuple[Path, ...]:
    return tuple(
        base.with_name(f"{base.name}-{str(one).replace(':', '-')}")
        for plan in every
        for one in plan.perturb
        if one.change == change_of(every)
    )


def ready(plan: Plan, found: Dataset, folder: Path, change: Change | None) -> PreparedRun:
    """A new run in the folder, or the rest of the run that is there already.

    StoreError if the folder holds a run with other settings.
    """
    if not os.path.lexists(folder / run_header.HEADER):
        made = prepare(plan, found, folder)
        run_details.put(folder, details(plan, change))
        return made
    there = run_header.read(folder).plan
    if replace(there, order=plan.order, order_why=plan.order_why) != plan:
        raise StoreError(
            f"{shown(folder)} holds a run with other settings: repeat the command unchanged, or "
            "choose another --out."
        )
    return resume(folder, found.root)


def details(plan: Plan, change: Change | None) -> RunDetails:
    """The name of a run of a sweep, after its changes, and the tag of all its runs."""
    text = ",".join(map(str, plan.perturb))
    return run_details.cleaned(text[:MAX_NAME_CHARS], (f"sweep {change}",))


def refuse_elsewhere(count: int) -> None:
    """BadInput for a sweep on a cluster."""
    raise BadInput(
        f"A sweep of {count:,} strengths runs in this process only: choose this machine alone, or "
        "start a run per strength."
    )
