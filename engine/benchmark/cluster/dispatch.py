"""Decides which worker gets which task: the next one of its model that its node has files for.

A worker without tasks for its model continues with the next model.  Every task that is given out
comes back exactly once: done, or returned when its worker ends.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from engine.benchmark.cluster.workers import Workers, WorkerState
from engine.storage.plan import Task

DEPTH = 2  # tasks per worker: one running and one waiting, so that it never waits for the driver
MOST_DEATHS = 3  # a task fails after this many workers have ended while running it


class Dispatcher:
    """`tasks`: those without a row, by model in the plan's order; `warm_ups`: a new worker's tasks
    for a model, without the samples that its node lacks."""

    def __init__(
        self,
        tasks: Mapping[str, Iterable[Task]],
        workers: Workers,
        warm_ups: Callable[[str, set[str]], Iterable[Task]],
    ) -> None:
        self._workers, self._warm_ups = workers, warm_ups
        self._queues = {model: deque(waiting) for model, waiting in tasks.items()}
        self.lacks: dict[str, set[str]] = {}  # an accepted node -> samples that it lacks
        self._why: dict[str, str] = {}  # model or sample -> the last reason for a refusal
        self._deaths: Counter[Task] = Counter()
        self._loaded: set[str] = set()

    def orders(self) -> Iterator[tuple[WorkerState, Task]]:
        """All tasks that can be given out now; each counts as given."""
        for _ in range(DEPTH):  # every worker gets one task before any gets two
            for member in self.able:
                if len(member.given) < DEPTH and (task := self._take(member)) is not None:
                    member.given.append(task)
                    yield member, task

    def _take(self, member: WorkerState) -> Task | None:
        """A warm-up or the next task of the worker's model; of another one only if it is idle."""
        for model in (member.model, *(() if member.given else self._queues)):
            if model in member.refused or (task := self._first(model, member.node)) is None:
                continue
            if model != member.model:
                member.model = model
                member.warm_up = deque(self._warm_ups(model, self.lacks[member.node]))
            if member.warm_up:
                return member.warm_up.popleft()
            self._queues[model].remove(task)
            return task
        return None

    def _first(self, model: str, node: str) -> Task | None:
        lacks = self.lacks[node]
        return next(
            (task for task in self._queues.get(model, ()) if task.sample not in lacks), None
        )

    def done(self, member: WorkerState, task: Task) -> None:
        member.given.remove(task)
        member.loaded = task.model
        self._loaded.add(task.model)

    def unloadable(self, member: WorkerState, model: str, reason: str) -> bool:
        """The worker cannot load the model, others may; whether it can load no model at all."""
        self._why[model] = reason
        member.refused.add(model)
        member.model = member.loaded = ""
        self._return([task for task in member.given if task.model == model])
        member.given = deque(task for task in member.given if task.model != model)
        return member.refused.issuperset(self._queues)

    def absent(self, member: WorkerState, task: Task, reason: str) -> None:
        """The task's sample is not on the worker's node; others get it."""
        self.lacks[member.node].add(task.sample)
        self._why[task.sample] = reason
        member.given.remove(task)
        self._return([task])
        if task.phase == "warmup":
            member.model = ""  # it gets warm-ups that its node has

    def leave(self, member: WorkerState) -> tuple[list[Task], list[Task]]:
        """(tasks for other workers, tasks that fail because too many workers ended on them)."""
        self._deaths.update(list(member.given)[:1])
        given, member.given = self._wanted(member.given), deque()
        fatal = [task for task in given if self._deaths[task] >= MOST_DEATHS]
        again = [task for task in given if task not in fatal]
        self._return(again)
        return again, fatal

    def _wanted(self, tasks: Iterable[Task]) -> list[Task]:
        """Without warm-ups, which are a worker's own, and tasks of dropped models."""
        return [task for task in tasks if task.phase == "measured" and task.model in self._queues]

    def _return(self, tasks: Iterable[Task]) -> None:
        for task in reversed(self._wanted(tasks)):
            self._queues[task.model].appendleft(task)

    def drop(self, model: str) -> None:
        self._queues.pop(model, None)

    @property
    def able(self) -> list[WorkerState]:
        """Workers that have begun, on accepted nodes."""
        return [one for one in self._workers.present if one.device and one.node in self.lacks]

    @property
    def busy(self) -> bool:
        return any(member.given for member in self._workers.present)

    @property
    def finished(self) -> bool:
        return not self.busy and not any(self._queues.values())

    def stuck(self) -> list[tuple[str, str, bool, int]]:
        """(model, reason, whether a worker had loaded it, number of tasks) of models with tasks
        that no worker can take, once nothing else is left."""
        models = []
        for model, queue in () if self.busy else self._queues.items():
            if queue:
                refused = all(model in member.refused for member in self.able)
                why = self._why.get(model if refused else queue[0].sample, "")
                loaded = model in self._loaded or not refused
                models.append((model, why, loaded, len(queue)))
        return models
