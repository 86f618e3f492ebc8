"""Executes a dataset run: sends every task through the pipeline and saves each result at once.

Tasks are answered in this process, or elsewhere by an executor (engine/benchmark/cluster).  Memory
does not grow with the number of results.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from engine.benchmark.prepare import PreparedRun, prepare, resume, settled
from engine.benchmark.task_executor import TaskExecutor, Tasks, parts
from engine.errors import Cancelled, ServerAway, StageScopeError, StoreError
from engine.models import registry, variants
from engine.pipeline.watcher import Watcher
from engine.storage import run_header, run_store
from engine.storage.plan import Task
from engine.storage.result_rows import Place, ResultRow
from engine.storage.run_store import Writer

if TYPE_CHECKING:
    from engine.models.adapter import Adapter

__all__ = ["Executor", "Outcome", "PreparedRun", "RunSession", "prepare", "resume", "run"]
Outcome = Literal["finished", "cancelled"]
# In place of this process, gets a row for every task without one; Cancelled if requested.
Executor = Callable[["RunSession"], None]


def run(
    ready: PreparedRun, watcher: Watcher | None = None, executor: Executor | None = None
) -> Outcome:
    """Runs all tasks that have no row yet, then writes the summary; StoreError if results can no
    longer be saved.  The run stays resumable whatever happens."""
    return RunSession(ready, watcher or Watcher(), executor).run()


@dataclass
class RunSession:
    """A run from start or resume to its end; executors read tasks and save rows through it."""

    ready: PreparedRun
    watcher: Watcher
    executor: Executor | None = None
    streaks: Counter[str] = field(default_factory=Counter)  # a model's failures in a row
    given_up: set[str] = field(default_factory=set)
    paused_ms: float = 0.0

    def __post_init__(self) -> None:
        self.writer, self.plan = self.ready.writer, self.ready.writer.header.plan
        self.tracker, self.done = self.ready.tracker, self.ready.writer.done
        samples, entries = self.ready.samples, self.ready.entries
        self.task_executor = TaskExecutor(self.plan, samples, entries, self.watcher, self.note)

    def run(self) -> Outcome:
        self.tracker.begin()
        if settled(self.writer):
            return "finished"
        self.writer.begin()
        try:
            if self.executor is not None:
                self.executor(self)
            else:
                for group in self.plan.model_groups():
                    self._run_group(group)
        except Cancelled:
            self.note("stopped", "Cancelled; the run can be resumed.")
            return "cancelled"
        except BaseException as error:
            # Our own messages in full, others by type only.
            why = f" ({str(error).rstrip('.')})" if isinstance(error, StageScopeError) else ""
            kind = type(error).__name__
            with suppress(StoreError):  # a full disk is reported elsewhere
                self.note("stopped", f"Stopped by {kind}{why}; the run can be resumed.")
            raise
        finally:
            self.tracker.end()
        view = self.tracker.view()
        given_up = {live.model: live.given_up for live in view.models if live.given_up}
        self.writer.finish(summary(self.writer, view.planned, view.done, view.failed, given_up))
        self.note("finished", "")
        return "finished"

    def _run_group(self, group: tuple[str, ...]) -> None:
        waiting = {task.model for task in self.plan.tasks(group) if task not in self.done}
        adapters = self._load([name for name in group if name in waiting])
        for name, adapter in adapters.items():
            self._warm_up(name, adapter)
        batches: Iterable[Tasks] = self.plan.batches(group)
        if len(group) == 1 and (server := self.ready.entries[group[0]].server):
            left = [task for task in self.plan.tasks(group) if task not in self.done]
            batches = parts(left, server.parallel)  # requests at once
        for batch in batches:
            if tasks := [task for task in batch if task not in self.done]:
                self._ask(tasks, adapters)

    def _load(self, names: Sequence[str]) -> dict[str, Adapter | None]:
        """The adapters of a group, None for a server; a model that does not load is given up, the
        others continue."""
        adapters: dict[str, Adapter | None] = {}
        for name in names:
            self.between()
            entry, begin = self.ready.entries[name], time.monotonic()
            if entry.server:
                adapters[name] = None
                continue
            self.tracker.current = f"loading {entry.label}"
            there = variants.loaded(entry) in registry.resident()
            try:
                adapters[name] = registry.load(entry, self.plan.decode.max_new_tokens)
            except StageScopeError as error:
                self.give_up(name, str(error))
                continue
            if not there:  # for the planning of later runs
                ms = (time.monotonic() - begin) * 1000
                self.note("loaded", "", model=name, ms=round(ms, 1))
        return adapters

    def _warm_up(self, name: str, adapter: Adapter | None) -> None:
        """Warm-up rows; their numbers continue those of earlier sessions."""
        begin = sum(task.model == name and task.phase == "warmup" for task in self.done)
        tasks = (Task(name, sample, 0, "warmup") for sample in self.plan.samples)
        able = [task for task in tasks if not self.task_executor.missing(task)]
        size = min(self.plan.batch, len(able))
        for start in range(0, self.plan.warmup * size, max(1, size)):
            numbers = range(start, start + size)
            some = [able[n % len(able)]._replace(repeat=begin + n) for n in numbers]
            self._ask(some, {name: adapter})

    def between(self) -> None:
        """Lends the device between two tasks; the next row records the pause."""
        if self.watcher.cancelled():
            raise Cancelled("The run was cancelled.")
        paused = self.watcher.give_way()
        if paused:
            self.paused_ms += paused
            self.tracker.paused_ms += paused
            self.note("paused", "The device was lent to other work.", ms=round(paused, 1))

    def _ask(self, tasks: Tasks, adapters: Mapping[str, Adapter | None]) -> None:
        """Runs tasks of one model together, or in smaller groups if they do not fit."""
        model, todo = tasks[0].model, deque([tasks])
        label = self.ready.entries[model].label
        while todo and model not in self.given_up:
            self.between()
            some = todo.popleft()
            more = f" and {len(some) - 1:,} more" if len(some) > 1 else ""
            self.tracker.current = f"{label}, {some[0].phase}, sample {some[0].sample}{more}"
            try:
                found, smaller = self.task_executor.ask(some, adapters[model])
            except ServerAway as error:  # no row: a resumed run asks again
                return self.give_up(model, str(error))
            todo.extendleft(reversed(smaller))
            self.keep(some, found, self.paused_ms)
            if found:
                self.paused_ms = 0.0

    def keep(
        self,
        tasks: Tasks,
        found: Sequence[ResultRow],
        paused_ms: float = 0.0,
        where: Place | None = None,
    ) -> None:
        """Saves a row per task; nothing if the tasks are to be run in smaller groups.

        `paused_ms`: how long the device was lent just before; `where`: the node, device and worker
        that answered, if it was not this process.
        """
        rows = [
            row.placed(task, self.plan.batch, paused_ms, run_header.now(), where)
            for task, row in zip(tasks, found, strict=False)
        ]
        for row in rows:
            self.writer.append(row)
        self.tracker.rows(rows)
        for row in rows:
            if self.task_executor.missing(row.task):
                continue
            self.streaks[row.model] = streak = self.streaks[row.model] + 1 if row.error else 0
            if streak >= self.plan.stop_after:
                why = f"{streak:,} failures in a row, the last one: {row.error}"
                self.give_up(row.model, why)

    def give_up(self, model: str, reason: str) -> None:
        self.given_up.add(model)
        self.tracker.give_up(model, reason)
        self.writer.note("given up", f"{model} was given up: {reason}", model=model)

    def note(self, event: str, text: str, **more: Any) -> None:
        self.writer.note(event, text, **more)
        if text:
            self.tracker.note(text)


def summary(
    writer: Writer, planned: int, results: int, failed: int, given_up: Mapping[str, str]
) -> dict[str, Any]:
    """Counts of the run, and each model's counts and figures; `given_up`: model -> reason."""
    from engine.analysis import model_summary, results_table

    table = results_table.frame([run_store.read(writer.folder)], answers=False)
    return {
        "finished": run_header.now(),
        "planned": planned,
        "results": results,
        "failed": failed,
        "given_up": dict(given_up),
        "counts": [vars(count) for count in model_summary.counts(table)],
        "figures": [vars(figure) for figure in model_summary.figures(table)],
        "throughput": [asdict(one) for one in model_summary.throughputs(table)],
    }
