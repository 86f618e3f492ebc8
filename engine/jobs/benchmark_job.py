"""A dataset run as a job: started or resumed, and shown by any number of pages.

It continues when no page shows it.  Between two samples it lets brief jobs (a Compare) run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.benchmark import execute, sweep
from engine.benchmark.cluster.cluster_options import LOCAL, ClusterOptions
from engine.benchmark.run_progress import Progress, Tracker
from engine.errors import BadInput
from engine.jobs.queue import Job, JobView
from engine.media import dataset
from engine.media_options import Change
from engine.models import registry
from engine.storage.plan import Plan
from engine.types import Doing

CHECKING = "checking the dataset and the checkpoints"
LEAVING = "leaving Ray"


@dataclass(frozen=True, kw_only=True)
class BenchmarkView(JobView):
    """The current state of a dataset run.  progress is None until the checks have passed."""

    title: str
    folder: Path | None
    stage: str
    progress: Progress | None
    cluster: bool = False  # whether workers of a cluster answer


def sweep_jobs(plans: Sequence[Plan], root: Path) -> list[BenchmarkJob]:
    """A job per strength, each with a folder in the runs folder."""
    places, change = sweep.folders(sweep.new_base(), plans), sweep.change_of(plans)
    return [
        BenchmarkJob(plan=plan, root=root, sweep=places, place=place, swept=change)
        for place, plan in enumerate(plans)
    ]


@dataclass(eq=False, kw_only=True)
class BenchmarkJob(Job):
    """A new run of `plan` on the dataset at `root`, or the rest of the run in `resume`.

    With `resume`, `root` is the dataset's new folder, or None if it has not moved.  With `cluster`,
    the cluster's workers answer instead of this process.
    """

    plan: Plan | None = None
    root: Path | None = None
    resume: Path | None = None
    force: bool = False
    cluster: ClusterOptions | None = None
    folder: Path | None = None  # of the run, once known
    sweep: tuple[Path, ...] = ()  # the folders of all runs of a sweep
    place: int = 0  # of this run among them
    swept: Change | None = None  # the change whose strength differs between them
    _tracker: Tracker | None = None
    _stage: str = ""

    @cached_property
    def title(self) -> str:  # stays the same if models.toml changes meanwhile
        if self.plan is not None:
            changes = f" with {','.join(map(str, self.plan.perturb))}" if self.plan.perturb else ""
            return f"The run of {', '.join(map(registry.label, self.plan.models))}{changes}"
        return f"The run {self.resume.name if self.resume else ''}"

    def run(self) -> None:
        """Checks the run, then does the remaining tasks; a failed check is the job's error."""
        self.state = "loading"
        with self._executor() as executor:
            self._stage = CHECKING
            ready = self._ready()
            with ready.writer:
                self.folder, self._tracker = ready.writer.folder, ready.tracker
                self._stage, self.state = "", "running"
                try:
                    outcome = execute.run(ready, self, executor)
                finally:
                    self._stage = "" if self.cluster is None else LEAVING
        if outcome == "cancelled":
            self.state = "cancelled"

    def _executor(self) -> AbstractContextManager[execute.Executor | None]:
        if self.cluster is None:
            return nullcontext()
        address = self.cluster.address
        self._stage = "starting Ray" if address == LOCAL else f"connecting to Ray at {address}"
        from engine.benchmark.cluster.run_session import ClusterExecutor

        if self.plan is not None:
            self.cluster.check(self.plan)
        return ClusterExecutor(self.cluster, cancelled=self.cancelled)

    def _ready(self) -> execute.PreparedRun:
        if self.resume is not None:
            return execute.resume(self.resume, self.root, self.force)
        if self.plan is None or self.root is None:
            raise BadInput("A new run needs a plan and a dataset: choose models and samples.")
        if self.sweep:
            folder = self.sweep[self.place]
            return sweep.ready(self.plan, dataset.read(self.root), folder, self.swept)
        elsewhere = self.cluster is not None
        return execute.prepare(self.plan, dataset.read(self.root), self.folder, elsewhere)

    def stage(self, name: Doing) -> None:
        self._stage = name

    def view(self) -> BenchmarkView:
        state = self.state
        return self.seen_as(
            BenchmarkView,
            state,
            stage=self._stage,
            progress=self._tracker.view() if self._tracker else None,
            cluster=self.cluster is not None,
        )
