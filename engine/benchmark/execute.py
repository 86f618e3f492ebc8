"""A dataset run: every task of a plan through the pipeline, each result kept as soon as it is done.

Boundary: the order of tasks, models coming and going, failures, pauses.  What one task is, is the
pipeline's; where rows are kept, the store's; who looks, the watcher's.  Tasks are answered in this
process, unless an executor (engine/cluster) has them answered elsewhere.  Nothing here grows with
the number of results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from engine.benchmark.prepare import Ready, prepare, resume, settled
from engine.benchmark.task_executor import Asker, Tasks
from engine.errors import Cancelled, StageScopeError, StoreError
from engine.models import registry
from engine.storage import run_header, run_store
from engine.storage.plan import Task
from engine.storage.result_rows import AnswerRow, Place, ResultRow
from engine.types import Doing

if TYPE_CHECKING:
    from engine.models.adapter import Adapter

__all__ = [
    "Alone",
    "Executor",
    "Outcome",
    "Ready",
    "Sitting",
    "Watcher",
    "prepare",
    "resume",
    "run",
]
Outcome = Literal["finished", "cancelled"]


class Watcher(Protocol):
    """Who looks at a dataset run: the pipeline's watcher, and what happens between two samples."""

    def stage(self, name: Doing) -> None: ...
    def token(self, token: int, ms: float) -> None: ...
    def cancelled(self) -> bool: ...
    def give_way(self) -> float:
        """Lets others have the device; how many milliseconds that took."""
        ...


class Alone:
    """A watcher that looks at nothing and yields to nobody."""

    def stage(self, name: Doing) -> None: ...
    def token(self, token: int, ms: float) -> None: ...
    def cancelled(self) -> bool:
        return False

    def give_way(self) -> float:
        return 0.0


class Executor(Protocol):
    """Who answers the tasks, if it is not this process."""

    def work(self, sitting: Sitting) -> None:
        """Has every task answered that has no row yet and keeps each row; Cancelled as told."""
        ...


def run(ready: Ready, watcher: Watcher | None = None, executor: Executor | None = None) -> Outcome:
    """All tasks that have no row yet.  The run stays open and resumable whatever happens.

    StoreError when results can no longer be kept.  The summary is written when nothing is left.
    """
    return Sitting(ready, watcher or Alone(), executor).run()


def _reason(error: BaseException) -> str:
    """What the journal says of an end: our own sentences whole, others by their kind."""
    name = type(error).__name__
    return f"{name} ({str(error).rstrip('.')})" if isinstance(error, StageScopeError) else name


@dataclass
class _Streak:
    """Failures of one model in a row, and the last reason."""

    length: int = 0
    reason: str = ""


@dataclass
class Sitting:
    """The state of one sitting; an executor takes from it what is to do, and keeps rows by it."""

    ready: Ready
    watcher: Watcher
    executor: Executor | None = None
    streaks: dict[str, _Streak] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    paused_ms: float = 0.0

    def __post_init__(self) -> None:
        self.writer, self.plan = self.ready.writer, self.ready.writer.header.plan
        self.tracker, self.done = self.ready.tracker, self.ready.writer.done
        samples, entries = self.ready.samples, self.ready.entries
        self.asker = Asker(self.plan, samples, entries, self.watcher, self.note)

    def run(self) -> Outcome:
        self.tracker.begin()
        if settled(self.writer):
            return "finished"
        self.writer.begin()
        try:
            self._work()
        except Cancelled:
            self.note("stopped", "Cancelled; it can be resumed.")
            return "cancelled"
        except BaseException as error:
            with suppress(StoreError):  # a full disk has its own sentence
                self.note("stopped", f"Stopped by {_reason(error)}; it can be resumed.")
            raise
        finally:
            self.tracker.end()
        self.writer.finish(self._summary())
        self.note("finished", "")
        return "finished"

    def _work(self) -> None:
        if self.executor is not None:
            self.executor.work(self)
            return
        for crew in self.plan.crews():
            self._crew(crew)

    # One crew of models: loaded, warmed up, then asked.
    def _crew(self, crew: tuple[str, ...]) -> None:
        waiting = {task.model for task in self.plan.tasks(crew) if task not in self.done}
        adapters = self._load([name for name in crew if name in waiting])
        for name, adapter in adapters.items():
            self._warm_up(name, adapter)
        for batch in self.plan.batches(crew):
            if tasks := [task for task in batch if task not in self.done]:
                self._ask(tasks, adapters)

    def _load(self, names: Sequence[str]) -> dict[str, Adapter]:
        """The adapters of a crew; a model that does not load is given up, the others go on."""
        adapters: dict[str, Adapter] = {}
        tokens = self.plan.decode.max_new_tokens
        for name in names:
            self.between()
            self.tracker.doing(f"loading {name}")
            try:
                adapters[name] = registry.load(self.ready.entries[name], tokens)
            except StageScopeError as error:
                self.give_up(name, str(error))
        return adapters

    def _warm_up(self, name: str, adapter: Adapter) -> None:
        """Rows of a phase of their own, numbered on from those of earlier sittings."""
        begin = sum(task.model == name and task.phase == "warmup" for task in self.done)
        tasks = (Task(name, sample, 0, "warmup") for sample in self.plan.samples)
        able = [task for task in tasks if not self.asker.missing(task)]
        size = min(self.plan.batch, len(able))
        for start in range(0, self.plan.warmup * size, max(1, size)):
            numbers = range(start, start + size)
            some = [able[n % len(able)]._replace(repeat=begin + n) for n in numbers]
            self._ask(some, {name: adapter})

    def between(self) -> None:
        """Between two pieces of work others may have the device; the next row says so."""
        if self.watcher.cancelled():
            raise Cancelled("The run was cancelled.")
        paused = self.watcher.give_way()
        if paused:
            self.paused_ms += paused
            self.tracker.paused(paused)
            self.note("paused", "The device was lent to other work.", ms=round(paused, 1))

    def _ask(self, tasks: Tasks, adapters: Mapping[str, Adapter]) -> None:
        """Tasks of one model together, or in the smaller groups that turn out to be possible."""
        model, todo = tasks[0].model, deque([tasks])
        while todo and model not in self.given_up:
            self.between()
            some = todo.popleft()
            self.tracker.doing(_words(some))
            found, parts = self.asker.ask(some, adapters[model])
            todo.extendleft(reversed(parts))
            self.keep(some, found, self.paused_ms)
            if found:
                self.paused_ms = 0.0

    def keep(
        self,
        tasks: Tasks,
        found: Sequence[AnswerRow],
        paused_ms: float = 0.0,
        where: Place | None = None,
    ) -> None:
        """Writes a row per task, or nothing where there are smaller groups.

        `paused_ms`: how long the device was lent just before; `where`: the node, device and actor
        that answered, where it was not this process.
        """
        rows = []
        for task, answer in zip(tasks, found, strict=False):
            sample, batch = self.ready.samples[task.sample], self.plan.batch
            at = run_header.now()
            rows.append(ResultRow.kept(answer, task, sample, batch, paused_ms, at, where))
            self.writer.append(rows[-1])
        if rows:
            self.tracker.rows(rows)
        for row in rows:
            if not self.asker.missing(row.task):
                self._count_failures(row.model, row.error)

    def _count_failures(self, model: str, error: str | None) -> None:
        streak = self.streaks.setdefault(model, _Streak())
        streak.length = streak.length + 1 if error else 0
        streak.reason = error or ""
        if streak.length >= self.plan.stop_after:
            self.give_up(
                model, f"{streak.length:,} failures in a row, the last one: {streak.reason}"
            )

    def give_up(self, model: str, reason: str) -> None:
        self.given_up.add(model)
        self.tracker.give_up(model, reason)
        self.note("given up", f"{model} was given up: {reason}", model=model)

    def note(self, event: str, text: str, **more: Any) -> None:
        self.writer.note(event, text, **more)
        if text:
            self.tracker.note(text)

    def _summary(self) -> dict[str, Any]:
        """Counts, and each figure of each model; neither texts nor token times are read for it."""
        from engine.analysis import model_summary, results_table, throughput

        view = self.tracker.view()
        table = results_table.frame([run_store.read(self.writer.folder)], answers=False)
        return {
            "format": run_header.FORMAT,
            "version": run_header.VERSION,
            "id": self.writer.header.id,
            "finished": run_header.now(),
            "planned": view.planned,
            "results": view.done,
            "failed": view.failed,
            "given_up": {live.model: live.given_up for live in view.models if live.given_up},
            "counts": [vars(count) for count in model_summary.counts(table)],
            "figures": [vars(figure) for figure in model_summary.figures(table)],
            "throughput": [asdict(one) for one in throughput.throughputs(table)],
        }


def _words(tasks: Tasks) -> str:
    """What goes on, for people."""
    first, more = tasks[0], f" and {len(tasks) - 1:,} more" if len(tasks) > 1 else ""
    return f"{first.model}, {first.phase}, sample {first.sample}{more}"
