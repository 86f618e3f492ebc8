"""A dataset run as a job: started or resumed, and shown by any number of pages.

It continues when no page shows it.  Between two samples it lets brief jobs (a Compare) run.

A sweep is such a run per strength of one change, each in a folder of its own, which is named
BASE-CHANGE-STRENGTH.  The same sweep with the same base skips finished runs and continues a stopped
one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from engine import settings
from engine.benchmark import by_turns, execute
from engine.benchmark.cluster.ray_link import LOCAL, ClusterOptions
from engine.benchmark.run_progress import Progress, Tracker
from engine.errors import BadInput, StoreError
from engine.jobs.queue import Job
from engine.media import dataset
from engine.media_options import Change, swept_change
from engine.models import registry
from engine.quoting import shown
from engine.storage import annotations as feedback
from engine.storage import run_header, run_store
from engine.storage.plan import Plan
from engine.types import Doing

EVERY_S = 2.0  # between two lines of progress
CHECKING = "checking the dataset and the checkpoints"
LEAVING = "leaving Ray"


def sweep_base() -> Path:
    return settings.load().runs_dir / f"sweep-{run_header.new_id()}"


def refuse_sweep_elsewhere(count: int) -> None:
    raise BadInput(
        f"A sweep of {count:,} strengths runs in this process only: choose this machine alone, or "
        "start a run per strength."
    )


def sweep_jobs(plans: Sequence[Plan], root: Path, base: Path | None = None) -> list[BenchmarkJob]:
    """A job per strength, each with a folder: `base` and the strength (default: in the runs
    folder)."""
    change, base = swept_change(plan.perturb for plan in plans), base or sweep_base()
    places = tuple(
        base.with_name(f"{base.name}-{str(one).replace(':', '-')}")
        for plan in plans
        for one in plan.perturb
        if one.change == change
    )
    return [
        BenchmarkJob(plan=plan, root=root, sweep=places, place=place, swept=change)
        for place, plan in enumerate(plans)
    ]


def in_sweep(
    plan: Plan, found: dataset.Dataset, folder: Path, change: Change | None
) -> execute.RunSession:
    """A new run in the folder, or the rest of the run that is there already.  StoreError if the
    folder holds a run with other settings."""
    if not os.path.lexists(folder / run_header.HEADER):
        made = execute.prepare(plan, found, folder)
        name = ",".join(map(str, plan.perturb))[: feedback.MAX_NAME_CHARS]
        feedback.put_details(folder, feedback.cleaned_details(name, (f"sweep {change}",)))
        return made
    there = run_header.read(folder).plan
    if replace(there, order=plan.order, order_why=plan.order_why) != plan:
        raise StoreError(
            f"{shown(folder)} holds a run with other settings: repeat the command unchanged, or "
            "choose another --out."
        )
    return execute.resume(folder, found.root)


@dataclass(eq=False, kw_only=True)
class BenchmarkJob(Job):
    """A new run of `plan` on the dataset at `root`, or the rest of the run in `resume`.  With
    `resume`, `root` is the dataset's new folder, or None if it has not moved.  With `cluster`, the
    cluster's workers answer instead of this process."""

    plan: Plan | None = None
    root: Path | None = None
    resume: Path | None = None
    force: bool = False
    cluster: ClusterOptions | None = None
    folder: Path | None = None  # of the run, once known
    together: str = ""  # the ID of two runs that take turns (engine/benchmark/by_turns.py)
    sweep: tuple[Path, ...] = ()  # the folders of all runs of a sweep
    place: int = 0  # of this run among them
    swept: Change | None = None  # the change whose strength differs between them
    doing: str = ""
    _tracker: Tracker | None = None
    _told_s: float = field(default_factory=time.monotonic)

    @cached_property
    def title(self) -> str:  # stays the same if models.toml changes meanwhile
        if self.plan is not None:
            changes = f" with {','.join(map(str, self.plan.perturb))}" if self.plan.perturb else ""
            return f"The run of {', '.join(map(registry.label, self.plan.models))}{changes}"
        return f"The run {self.resume.name if self.resume else ''}"

    @property
    def seen(self) -> Progress | None:
        """None until the checks have passed."""
        return self._tracker.view() if self._tracker else None

    @property
    def progress(self) -> tuple[int, int]:
        return (seen.done, seen.planned) if (seen := self.seen) else (0, 0)

    def run(self) -> None:
        """Checks the run, then does the remaining tasks; a failed check is the job's error."""
        self.state = "loading"
        with self._executor() as executor:
            self.doing = CHECKING
            ready = self._ready()
            with ready.writer:
                self.folder, self._tracker = ready.writer.folder, ready.tracker
                self.doing, self.state = "", "running"
                self.tell(f"The run is saved in {self.folder}")
                if ready.writer.problem:
                    self.tell(ready.writer.problem)
                if (plan := ready.plan).order_why:
                    self.tell(f"Order: {plan.order} ({plan.order_why})")
                try:
                    outcome = ready.run(self, executor)
                finally:
                    self.doing = "" if self.cluster is None else LEAVING
                for line in ready.tracker.view().end():
                    self.tell(line)
        if outcome == "cancelled":
            self.state = "cancelled"

    def give_way(self) -> float:
        """Tells progress now and then; a side of two runs waits for its turn, which is no pause,
        because each result follows one of the other side."""
        if self.together:
            by_turns.wait_for_turn()
        if self._tracker and time.monotonic() - self._told_s >= EVERY_S:
            self._told_s = time.monotonic()
            if (view := self._tracker.view()).done:
                self.tell(view.line)
        return super().give_way()

    def _executor(self) -> AbstractContextManager[execute.Executor | None]:
        if self.cluster is None:
            return nullcontext()
        if self.plan is not None and self.root is not None:  # what needs no cluster first
            self.doing = CHECKING
            self.cluster.check(self.plan)
            if self.folder is not None:
                run_store.refuse_taken(self.folder)
            execute.checked(self.plan, dataset.read(self.root), elsewhere=True)
        address = self.cluster.address
        self.doing = "starting Ray" if address == LOCAL else f"connecting to Ray at {address}"
        self.tell(f"{self.doing[0].upper()}{self.doing[1:]} ...")
        from engine.benchmark.cluster.run_session import ClusterExecutor

        return ClusterExecutor(self.cluster, self.cancelled)

    def _ready(self) -> execute.RunSession:
        if self.resume is not None:
            return execute.resume(self.resume, self.root, self.force)
        if self.plan is None or self.root is None:
            raise BadInput("A new run needs a plan and a dataset: choose models and samples.")
        found = dataset.read(self.root)
        if self.sweep:
            return in_sweep(self.plan, found, self.sweep[self.place], self.swept)
        elsewhere = self.cluster is not None
        return execute.prepare(self.plan, found, self.folder, elsewhere, self.together)

    def stage(self, name: Doing) -> None:
        self.doing = name
