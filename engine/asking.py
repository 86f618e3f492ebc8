"""One task of a dataset run answered: from its sample and a loaded model to the row of the result.

Boundary: the same on this machine and on a worker of a cluster; it keeps nothing and loads nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import jobs, rows
from engine.errors import Cancelled, StageScopeError
from engine.models.checkpoint import ModelEntry
from engine.plan import Plan, Task
from engine.prompts import DEFAULT_QUESTION
from engine.types import RunRequest, Sample

if TYPE_CHECKING:
    from engine.models.base import Adapter
    from engine.pipeline import Watcher

log = logging.getLogger(__name__)
Row = dict[str, Any]


@dataclass(frozen=True)
class Asker:
    """Asks as the plan says; `entries` are the models by their names."""

    plan: Plan
    entries: Mapping[str, ModelEntry]

    def answer(self, task: Task, sample: Sample, adapter: Adapter, watcher: Watcher | None) -> Row:
        """The row of one run; only the user's stop and a lack of storage end more than the row."""
        from engine import pipeline

        try:
            request = self.request(task, sample)
            result = pipeline.run(adapter, request, jobs.feature_cache(), watcher)
        except Cancelled:
            raise
        except StageScopeError as error:
            return self.failed(task, sample, str(error))
        except Exception as error:  # whatever a model raises costs its own row
            log.exception("%s failed on %s", task.model, task.sample)
            return self.failed(task, sample, f"{task.model}: {type(error).__name__}: {error}")
        if result.generation.stop == "cancelled":
            raise Cancelled("The run was cancelled.")
        return rows.row(result)

    def request(self, task: Task, sample: Sample) -> RunRequest:
        plan = self.plan
        return RunRequest(
            sample,
            task.model,
            self._prompt(sample),
            plan.decode,
            plan.frames,
            plan.cache,
            plan.mode,
        )

    def failed(self, task: Task, sample: Sample, reason: str) -> Row:
        """The reason and no figure; written even where the question itself is what is wrong."""
        request = RunRequest(sample, task.model, DEFAULT_QUESTION, mode=self.plan.mode)
        row = rows.failed(request, self.entries[task.model], reason)
        return row | {"prompt": self._prompt(sample)}

    def _prompt(self, sample: Sample) -> str:
        return self.plan.prompt or sample.question or DEFAULT_QUESTION
