"""From tasks of one model to rows: a sample alone, or several as a batch of a size that fits.

Boundary: what is asked together, and what a failure costs; the order of tasks, what is kept and
what is counted are benchmark.py's, a run itself is pipeline.py's or batch_run.py's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.errors import BadInput, Cancelled, ModelUnavailable, OutOfMemory, StageScopeError
from engine.machine import device
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.prompts import DEFAULT_QUESTION
from engine.storage.plan import Plan, Task
from engine.storage.result_rows import AnswerRow
from engine.types import RunRequest, RunResult, Sample
from engine.verify import certificates

if TYPE_CHECKING:
    from engine.models.adapter import Adapter
    from engine.pipeline.single_run import Watcher

log = logging.getLogger(__name__)
Tasks = Sequence[Task]
Note = Callable[[str, str], None]  # (event, sentence), for the run's journal


@dataclass
class Asker:
    """Asks the models of one sitting; remembers how many samples of each fit in memory."""

    plan: Plan
    samples: Mapping[str, Sample]
    entries: Mapping[str, ModelEntry]
    watcher: Watcher | None
    note: Note
    fitting: dict[str, int] = field(default_factory=dict)
    remarks: dict[Task, str] = field(default_factory=dict)

    def missing(self, task: Task) -> str | None:
        """Why this sample cannot be shown to this model, if it cannot."""
        kind = self.entries[task.model].kind
        return self.samples[task.sample].missing.get(kind)

    def ask(self, tasks: Tasks, adapter: Adapter) -> tuple[list[AnswerRow], list[Tasks]]:
        """A row per task; or no row and the smaller groups that are to be asked in their place."""
        most = self._fits(tasks[0].model, adapter) if len(tasks) > 1 else 1
        if len(tasks) > most:
            return [], _parts(tasks, most)
        if len(tasks) == 1:
            return [self.alone(tasks[0], adapter)], []
        return self._together(tasks, adapter)

    def alone(self, task: Task, adapter: Adapter) -> AnswerRow:
        """The row of one run; only the user's stop and a lack of storage end more than the row."""
        from engine.pipeline import feature_cache, single_run

        if reason := self.missing(task):
            return self.failed(task, reason)
        try:
            request = self._request(task)
            result = single_run.run(adapter, request, feature_cache.shared(), self.watcher)
        except Cancelled:
            raise
        except StageScopeError as error:
            return self.failed(task, str(error))
        except Exception as error:  # whatever a model raises costs its own row
            log.exception("%s failed on %s", task.model, task.sample)
            return self.failed(task, _told(task.model, error))
        return self._row(task, result)

    def _together(self, tasks: Tasks, adapter: Adapter) -> tuple[list[AnswerRow], list[Tasks]]:
        """What does not fit is halved; what fails as a batch is asked one by one."""
        from engine.pipeline import batch_run, feature_cache

        odd = [task for task in tasks if self._cannot_be_asked(task)]
        if odd:
            others = [task for task in tasks if task not in odd]
            return [], [*_parts(odd, 1), *([others] if others else [])]
        requests = [self._request(task) for task in tasks]
        try:
            found = batch_run.run(adapter, requests, feature_cache.shared(), self.watcher)
        except Cancelled:
            raise
        except OutOfMemory:
            half = (len(tasks) + 1) // 2
            self._limit(tasks[0].model, half, len(tasks))
            return [], _parts(tasks, half)
        except Exception as error:  # one sample's fault costs no other its row
            log.exception("%s failed on a batch of %s", tasks[0].model, len(tasks))
            told = f"Asked alone, because a batch of {len(tasks):,} failed: "
            self.remarks |= dict.fromkeys(tasks, told + _told(tasks[0].model, error))
            return [], _parts(tasks, 1)
        return [self._row(task, one) for task, one in zip(tasks, found, strict=True)], []

    def _fits(self, model: str, adapter: Adapter) -> int:
        """How many samples of this model go together.

        An accelerator says itself when its memory is full.  A system out of memory would end this
        process, so there the estimate decides beforehand.
        """
        if model not in self.fitting:
            self.fitting[model] = wanted = self.plan.batch
            if adapter.device.type == "cpu":
                self._estimate(model, wanted, device.memory_of(adapter.device).free)
        return self.fitting[model]

    def _estimate(self, model: str, wanted: int, free: int) -> None:
        try:
            one = registry.needed(self.entries[model], self.plan.decode.max_new_tokens).run
        except ModelUnavailable:  # its folder has gone since it was loaded
            return
        fits = wanted
        while fits > 1 and fits * one > free:
            fits = (fits + 1) // 2
        if fits < wanted:
            self._limit(model, fits, wanted)

    def _limit(self, model: str, fits: int, tried: int) -> None:
        self.fitting[model] = fits
        text = f"A batch of {tried:,} does not fit in memory: {fits:,} at a time from here on."
        self.note("halved", f"{model}: {text}")

    def _row(self, task: Task, found: RunResult | str) -> AnswerRow:
        if isinstance(found, str):
            return self.failed(task, found)
        if found.generation.stop == "cancelled":
            raise Cancelled("The run was cancelled.")
        row = AnswerRow.from_result(found, certificates.standing_of(found))
        return replace(row, notes=(*found.notes, *self._remarks(task)))

    def _remarks(self, task: Task) -> list[str]:
        """What the row says of the batch it was not in."""
        fits = self.fitting.get(task.model, self.plan.batch)
        halved = f"A batch of {self.plan.batch:,} does not fit in memory: {fits:,} at a time."
        alone = self.remarks.get(task)
        return [*([halved] if fits < self.plan.batch else []), *([alone] if alone else [])]

    def _prompt(self, task: Task) -> str:
        return self.plan.prompt or self.samples[task.sample].question or DEFAULT_QUESTION

    def _cannot_be_asked(self, task: Task) -> bool:
        try:
            self._request(task)
        except BadInput:
            return True
        return self.missing(task) is not None

    def _request(self, task: Task) -> RunRequest:
        plan, sample = self.plan, self.samples[task.sample]
        how = (plan.decode, plan.frames, plan.cache, plan.mode, plan.pixels)
        return RunRequest(sample, task.model, self._prompt(task), *how, extent=plan.extent)

    def failed(self, task: Task, reason: str) -> AnswerRow:
        """The reason and no figure; written even where the question itself is what is wrong."""
        sample, entry = self.samples[task.sample], self.entries[task.model]
        mode, pixels = self.plan.mode, self.plan.pixels
        request = RunRequest(sample, task.model, DEFAULT_QUESTION, mode=mode, pixels=pixels)
        return replace(AnswerRow.failed(request, entry, reason), prompt=self._prompt(task))


def _parts(tasks: Tasks, size: int) -> list[Tasks]:
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]


def _told(model: str, error: Exception) -> str:
    """Our own sentences as they are, others with their names."""
    if isinstance(error, StageScopeError):
        return str(error)
    return f"{model}: {type(error).__name__}: {error}"
