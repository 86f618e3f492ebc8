"""Turns tasks of one model into rows: single runs, or batches of a size that fits in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.errors import (
    BadInput,
    Cancelled,
    ModelUnavailable,
    OutOfMemory,
    ServerAway,
    StageScopeError,
)
from engine.machine import device
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.prompts import DEFAULT_QUESTION
from engine.quoting import count
from engine.storage.plan import Plan, Task
from engine.storage.result_rows import ResultRow
from engine.types import RunRequest, RunResult, Sample
from engine.verify import certificates

if TYPE_CHECKING:
    from engine.models.adapter import Adapter
    from engine.pipeline import Watcher

log = logging.getLogger(__name__)
Tasks = Sequence[Task]


@dataclass
class TaskExecutor:
    """Runs the tasks of one session; remembers how many samples of each model fit in memory."""

    plan: Plan
    samples: Mapping[str, Sample]
    entries: Mapping[str, ModelEntry]
    watcher: Watcher | None = None
    note: Callable[..., None] = lambda *_, **__: None  # (event, sentence, **more), journal
    fitting: dict[str, int] = field(default_factory=dict)
    remarks: dict[Task, str] = field(default_factory=dict)

    def missing(self, task: Task) -> str | None:
        kind = self.entries[task.model].kind
        return self.samples[task.sample].missing.get(kind)

    def ask(self, tasks: Tasks, adapter: Adapter | None) -> tuple[list[ResultRow], list[Tasks]]:
        """A row per task; or no rows and the smaller groups to run instead."""
        if adapter is None:  # the requests to a server are made at once
            with ThreadPoolExecutor(len(tasks)) as pool:
                rows = list(pool.map(self.alone, tasks))
            if len(tasks) > 1:
                note = f"Asked together with {count(len(tasks) - 1, 'other request')}."
                rows = [
                    row if row.error else replace(row, notes=(*row.notes, note)) for row in rows
                ]
            return rows, []
        most = self._fits(tasks[0].model, adapter) if len(tasks) > 1 else 1
        if len(tasks) > most:
            return [], parts(tasks, most)
        if len(tasks) == 1:
            return [self.alone(tasks[0], adapter)], []
        return self._together(tasks, adapter)

    def alone(self, task: Task, adapter: Adapter | None = None) -> ResultRow:
        """The row of one run, of a server without an adapter; only Cancelled, ServerAway and
        StoreError are raised further."""
        from engine.pipeline import feature_cache, single_run

        try:
            request = self._request(task)
            if adapter is None:
                from engine.served import column

                result = column.answer(self.entries[task.model], request, self.watcher)
            else:
                result = single_run.run(adapter, request, feature_cache.shared(), self.watcher)
        except (Cancelled, ServerAway):
            raise
        except Exception as error:  # any error becomes the row's error
            if not isinstance(error, StageScopeError):
                log.exception("%s failed on %s", task.model, task.sample)
            return self.failed(task, _failure_text(task.model, error))
        return self._row(task, result)

    def _together(self, tasks: Tasks, adapter: Adapter) -> tuple[list[ResultRow], list[Tasks]]:
        """Runs a batch; halves it if it does not fit, runs samples singly if it fails."""
        from engine.pipeline import batch_run, feature_cache

        requests: list[RunRequest] = []
        odd: list[Task] = []
        for task in tasks:
            try:
                requests.append(self._request(task))
            except BadInput:
                odd.append(task)
        if odd:
            others = [task for task in tasks if task not in odd]
            return [], [*parts(odd, 1), *([others] if others else [])]
        try:
            found = batch_run.run(adapter, requests, feature_cache.shared(), self.watcher)
        except Cancelled:
            raise
        except OutOfMemory:
            half = (len(tasks) + 1) // 2
            self._limit(tasks[0].model, half, len(tasks))
            return [], parts(tasks, half)
        except Exception as error:  # one bad sample must not cost the others their rows
            log.exception("%s failed on a batch of %s", tasks[0].model, len(tasks))
            failure = _failure_text(tasks[0].model, error)
            remark = f"Run singly, because a batch of {len(tasks):,} failed: {failure}"
            self.remarks |= dict.fromkeys(tasks, remark)
            return [], parts(tasks, 1)
        return [self._row(task, one) for task, one in zip(tasks, found, strict=True)], []

    def _fits(self, model: str, adapter: Adapter) -> int:
        """How many samples of this model fit into one batch.  An accelerator reports when its
        memory is full.  On the CPU the system would end this process, so an estimate decides
        beforehand."""
        if model in self.fitting:
            return self.fitting[model]
        self.fitting[model] = wanted = fits = self.plan.batch
        if adapter.device.type == "cpu":
            free = device.memory_of(adapter.device).free
            with suppress(ModelUnavailable):  # its folder was removed after loading
                one = registry.needed(self.entries[model], self.plan.decode.max_new_tokens).run
                while fits > 1 and fits * one > free:
                    fits = (fits + 1) // 2
            if fits < wanted:
                self._limit(model, fits, wanted)
        return fits

    def _limit(self, model: str, fits: int, tried: int) -> None:
        self.fitting[model] = fits
        text = f"A batch of {tried:,} does not fit in memory: {fits:,} at a time from here on."
        self.note("halved", f"{self.entries[model].label}: {text}", model=model)

    def _row(self, task: Task, found: RunResult | str) -> ResultRow:
        if isinstance(found, str):
            return self.failed(task, found)
        if found.generation.stop == "cancelled":
            raise Cancelled("The run was cancelled.")
        notes = list(found.notes)
        fits = self.fitting.get(task.model, self.plan.batch)
        if fits < self.plan.batch:
            batch = f"A batch of {self.plan.batch:,}"
            notes.append(f"{batch} does not fit in memory: {fits:,} at a time.")
        if task in self.remarks:
            notes.append(self.remarks[task])
        return replace(certificates.row_of(found), notes=tuple(notes))

    def _prompt(self, task: Task) -> str:
        return self.plan.prompt or self.samples[task.sample].question or DEFAULT_QUESTION

    def _request(self, task: Task) -> RunRequest:
        """BadInput if this sample cannot be shown to this model, or for an invalid question."""
        if reason := self.missing(task):
            raise BadInput(reason)
        return self.plan.ask(self.samples[task.sample], task.model, self._prompt(task))

    def failed(self, task: Task, reason: str) -> ResultRow:
        """A row with the reason and no figures, also if the question itself is invalid."""
        sample, entry = self.samples[task.sample], self.entries[task.model]
        request = self.plan.ask(sample, task.model, DEFAULT_QUESTION)
        return replace(ResultRow.failed(request, entry, reason), prompt=self._prompt(task))


def parts(tasks: Tasks, size: int) -> list[Tasks]:
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]


def _failure_text(model: str, error: Exception) -> str:
    """The message of an error; with model and type unless it is one of the engine's own."""
    if isinstance(error, StageScopeError):
        return str(error)
    return f"{model}: {type(error).__name__}: {error}"
