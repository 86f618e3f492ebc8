"""The tasks of a session: those for workers, and those that no worker can answer.

Boundary: reads the session's plan, samples and rows; saves only rows that need no worker.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.benchmark.execute import RunSession
from engine.storage.plan import Task


class TaskList:
    """The tasks of one session, for the dispatcher."""

    def __init__(self, session: RunSession) -> None:
        self._session = session
        self._warmed = {
            name: sum(task.model == name and task.phase == "warmup" for task in session.done)
            for name in session.plan.models
        }

    def tasks_of(self, model: str) -> Iterable[Task]:
        """The tasks of a model that have no row yet."""
        session = self._session
        if model in session.given_up:
            return ()
        tasks = session.plan.tasks((model,))
        return (t for t in tasks if t not in session.done and not session.task_executor.missing(t))

    def sequence_of(self, sample: str) -> str:
        return self._session.ready.samples[sample].sequence

    def warm_ups(self, model: str, lacks: set[str]) -> list[Task]:
        """Warm-up tasks for one worker; numbers continue those of others and earlier sessions."""
        plan = self._session.plan
        tasks = (Task(model, name, 0, "warmup") for name in plan.samples if name not in lacks)
        able = [task.sample for task in tasks if not self._session.task_executor.missing(task)]
        found = []
        for index in range(plan.warmup if able else 0):
            found.append(Task(model, able[index % len(able)], self._warmed[model], "warmup"))
            self._warmed[model] += 1
        return found

    def fail_unanswerable(self) -> None:
        """Saves failed rows for samples that lack the model's media; this needs no worker."""
        for model in self._session.plan.models:
            for task in self._session.plan.tasks((model,)):
                missing = self._session.task_executor.missing(task)
                if task not in self._session.done and missing:
                    self.fail(task, missing)

    def fail(self, task: Task, reason: str) -> None:
        self._session.keep([task], [self._session.task_executor.failed(task, reason)])
