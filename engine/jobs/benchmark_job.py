"""A dataset run as a job of the queue: started or resumed, followed by any number of pages.

Boundary: the queue on one side, benchmark.py on the other, a frozen view for pages.  It goes on
whether anybody looks or not, and between two samples it lets brief jobs (a Compare) pass.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from engine.benchmark import execute
from engine.benchmark.cluster.cluster_options import LOCAL, ClusterOptions
from engine.benchmark.run_progress import Progress, Tracker
from engine.errors import BadInput
from engine.jobs.queue import ENDED, Job, State
from engine.media import dataset
from engine.storage.plan import Plan
from engine.types import Doing

CHECKING = "checking the dataset and the checkpoints"
LEAVING = "leaving Ray"


@dataclass(frozen=True)
class BenchmarkView:
    """A dataset run as it stands.  progress is None until what it needs has been checked."""

    id: str
    title: str
    state: State
    position: int
    queued_ms: float
    folder: Path | None
    stage: str
    progress: Progress | None
    error: str
    cluster: bool = False  # whether others answer in place of this process

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(eq=False, kw_only=True)
class BenchmarkJob(Job):
    """A new run of `plan` on the dataset at `root`, or the rest of the run in `resume`.

    `root` with `resume`: where the run's dataset is now; None: where it was.  `cluster`: who
    answers in place of this process.
    """

    plan: Plan | None = None
    root: Path | None = None
    resume: Path | None = None
    force: bool = False
    cluster: ClusterOptions | None = None
    folder: Path | None = None  # of the run, once it is known
    _tracker: Tracker | None = None
    _stage: str = ""

    @property
    def title(self) -> str:
        if self.plan is not None:
            return f"The run of {', '.join(self.plan.models)}"
        return f"The run {self.resume.name if self.resume else ''}"

    def run(self) -> None:
        """Checks, then works off what is left; refusals are the job's error."""
        self._stage, self.state = self._first(), "loading"
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
        self.state = "done" if outcome == "finished" else "cancelled"

    def _first(self) -> str:
        """What is done before anything else, as words."""
        if self.cluster is None:
            return CHECKING
        address = self.cluster.address
        return "starting Ray" if address == LOCAL else f"connecting to Ray at {address}"

    def _executor(self) -> AbstractContextManager[execute.Executor | None]:
        if self.cluster is None:
            return nullcontext()
        from engine.benchmark.cluster.run_session import ClusterExecutor

        if self.plan is not None:
            self.cluster.check(self.plan)
        return ClusterExecutor(self.cluster, cancelled=self.cancelled)

    def _ready(self) -> execute.PreparedRun:
        if self.resume is not None:
            return execute.resume(self.resume, self.root, self.force)
        if self.plan is None or self.root is None:
            raise BadInput("A new run needs a plan and a dataset: choose models and samples.")
        elsewhere = self.cluster is not None
        return execute.prepare(self.plan, dataset.read(self.root), self.folder, elsewhere)

    def stage(self, name: Doing) -> None:
        self._stage = name

    def view(self) -> BenchmarkView:
        """How the run stands; cheap enough to be asked for several times a second."""
        tracker = self._tracker
        return BenchmarkView(
            id=self.id,
            title=self.title,
            state=self.state,
            position=self.position,
            queued_ms=self.queued_ms,
            folder=self.folder,
            stage=self._stage,
            progress=tracker.view() if tracker else None,
            error=self.error,
            cluster=self.cluster is not None,
        )
