"""The tasks of a session: those for workers, and those that no worker can answer.

Boundary: reads the session's plan, samples and rows; saves only rows that need no worker.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.benchmark.execute import RunSession
from engine.storage.plan import Task


class TaskList:
    """The tasks of one session, for the dispatcher."""

    def __init__(self, sitting: RunSession) -> None:
        self._sitting = sitting
        self._warmed = {
            name: sum(task.model == name and task.phase == "warmup" for task in sitting.done)
            for name in sitting.plan.models
        }

    def tasks_of(self, model: str) -> Iterable[Task]:
        """The tasks of a model that have no row yet."""
        sitting = self._sitting
        if model in sitting.given_up:
            return ()
        tasks = sitting.plan.tasks((model,))
        return (t for t in tasks if t not in sitting.done and not sitting.asker.missing(t))

    def sequence_of(self, sample: str) -> str:
        return self._sitting.ready.samples[sample].sequence

    def warm_ups(self, model: str, lacks: set[str]) -> list[Task]:
        """Warm-up tasks for one worker; numbers continue those of others and earlier sessions."""
        plan = self._sitting.plan
        tasks = (Task(model, name, 0, "warmup") for name in plan.samples if name not in lacks)
        able = [task.sample for task in tasks if not self._sitting.asker.missing(task)]
        found = []
        for index in range(plan.warmup if able else 0):
            found.append(Task(model, able[index % len(able)], self._warmed[model], "warmup"))
            self._warmed[model] += 1
        return found

    def answer_what_nobody_can(self) -> None:
        """Saves failed rows for samples that lack the model's media; this needs no worker."""
        for model in self._sitting.plan.models:
            for task in self._sitting.plan.tasks((model,)):
                missing = self._sitting.asker.missing(task)
                if task not in self._sitting.done and missing:
                    self.fail(task, missing)

    def fail(self, task: Task, reason: str) -> None:
        self._sitting.keep([task], [self._sitting.asker.failed(task, reason)])
