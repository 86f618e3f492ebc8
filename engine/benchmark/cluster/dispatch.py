"""Decides which worker gets which task: the next one of its model that its node has files for.

A worker without tasks for its model continues with the next model.

Every task that is sent out comes back exactly once: done, or returned when its worker ends.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.storage.plan import Task

DEPTH = 2  # tasks per worker: one running and one waiting, so that it never waits for the driver
MOST_DEATHS = 3  # a task fails after this many workers have ended while running it


class Order(NamedTuple):
    """An order to a worker: load `model` if there is no task, else answer the task."""

    worker: str
    model: str
    task: Task | None = None


@dataclass(eq=False)
class _WorkerTasks:
    """A worker's model and tasks in flight."""

    id: str
    node: str
    model: str = ""
    loading: str = ""
    warm_up: deque[Task] = field(default_factory=deque)
    given: deque[Task] = field(default_factory=deque)
    refused: set[str] = field(default_factory=set)


class StuckModel(NamedTuple):
    """A model that no worker can continue, and why; `loaded`: whether a worker had loaded it."""

    model: str
    reason: str
    loaded: bool
    tasks: int


class Dispatcher:
    """`tasks_of`: a model's tasks without a row; `warm_ups`: a new worker's warm-up tasks for a
    model, without the samples that its node lacks."""

    def __init__(
        self,
        models: Sequence[str],
        tasks_of: Callable[[str], Iterable[Task]],
        warm_ups: Callable[[str, set[str]], Iterable[Task]],
    ) -> None:
        self._models = tuple(models)
        self._tasks_of, self._warm_ups = tasks_of, warm_ups
        self._queues: dict[str, deque[Task]] = {}  # of the models that have been started
        self._hands: dict[str, _WorkerTasks] = {}
        self._lacks: dict[str, set[str]] = {}  # node -> samples that it lacks
        self._why: dict[str, str] = {}  # model or sample -> the last reason for a refusal
        self._deaths: Counter[Task] = Counter()
        self._loaded: set[str] = set()
        self._dropped: set[str] = set()

    # Workers come and go.
    def join(self, worker: str, node: str, lacks: Iterable[str] = ()) -> None:
        self._hands[worker] = _WorkerTasks(worker, node)
        self._lacks.setdefault(node, set()).update(lacks)

    def leave(self, worker: str) -> tuple[list[Task], list[Task]]:
        """(tasks for other workers, tasks that fail because too many workers ended on them)."""
        hand = self._hands.pop(worker, None)
        if hand is None:
            return [], []
        self._deaths.update(list(hand.given)[:1])
        given = [task for task in hand.given if self._wanted(task)]
        fatal = [task for task in given if self._deaths[task] >= MOST_DEATHS]
        again = [task for task in given if task not in fatal]
        for task in reversed(again):
            self._queues[task.model].appendleft(task)
        return again, fatal

    def _wanted(self, task: Task) -> bool:
        return task.phase == "measured" and task.model not in self._dropped

    # Orders and answers.
    def orders(self) -> Iterator[Order]:
        """All orders that are possible now; each is counted as sent."""
        for _ in range(DEPTH):  # every worker gets one task before any gets two
            for hand in self._hands.values():
                if (order := self._next(hand)) is not None:
                    yield order

    def loaded(self, worker: str) -> None:
        if (hand := self._hands.get(worker)) is not None:
            hand.model, hand.loading = hand.loading, ""
            self._loaded.add(hand.model)
            hand.warm_up = deque(self._warm_ups(hand.model, self._lacks[hand.node]))

    def refused(self, worker: str, model: str, reason: str) -> None:
        """The worker cannot load the model; others may be able to."""
        self._why[model] = reason
        if (hand := self._hands.get(worker)) is not None:
            hand.refused.add(model)
            hand.loading = hand.model = ""

    def useless(self, worker: str) -> bool:
        """Whether the worker has refused all models."""
        hand = self._hands.get(worker)
        return hand is not None and hand.refused.issuperset(self._models)

    def done(self, worker: str, task: Task) -> None:
        if (hand := self._hands.get(worker)) is not None and task in hand.given:
            hand.given.remove(task)

    def absent(self, worker: str, task: Task, reason: str) -> None:
        """The task's sample is not on the worker's node; other workers get it."""
        hand = self._hands[worker]
        hand.given.remove(task)
        self._lacks[hand.node].add(task.sample)
        self._why[task.sample] = reason
        if self._wanted(task):
            self._queues[task.model].appendleft(task)

    def drop(self, model: str) -> None:
        """Sends out no more tasks of this model."""
        self._dropped.add(model)
        self._queues[model] = deque()
        for hand in self._hands.values():
            if hand.model == model:
                hand.warm_up.clear()

    # State.
    def finished(self) -> bool:
        """Whether no task is waiting or in flight."""
        return not self.busy and not any(self._models_waiting())

    @property
    def busy(self) -> bool:
        return any(hand.given or hand.loading for hand in self._hands.values())

    @property
    def workers(self) -> int:
        return len(self._hands)

    def in_flight(self, worker: str) -> tuple[Task, ...]:
        """The tasks at a worker, the running one first."""
        hand = self._hands.get(worker)
        return tuple(hand.given) if hand else ()

    def stuck(self) -> list[StuckModel]:
        """Models with tasks that no worker can take, once nothing else is left."""
        models: list[StuckModel] = []
        for model in () if self.busy else self._models_waiting():
            refused = all(model in hand.refused for hand in self._hands.values())
            waiting = self._queues[model]
            why = self._why.get(model if refused else waiting[0].sample, "")
            loaded = model in self._loaded or not refused
            models.append(StuckModel(model, why, loaded, len(waiting)))
        return models

    # One worker's next order.
    def _next(self, hand: _WorkerTasks) -> Order | None:
        if hand.loading or len(hand.given) >= DEPTH:
            return None
        if hand.model and (task := self._take(hand)) is not None:
            hand.given.append(task)
            return Order(hand.id, hand.model, task)
        for model in () if hand.given else self._models_waiting():
            if model not in hand.refused and self._first(model, hand):
                hand.loading = model
                return Order(hand.id, model)
        return None

    def _take(self, hand: _WorkerTasks) -> Task | None:
        """A warm-up, or the next task; none if the model has no task for this node."""
        if (task := self._first(hand.model, hand)) is None:
            return None
        if hand.warm_up:
            return hand.warm_up.popleft()
        self._queues[hand.model].remove(task)
        return task

    def _first(self, model: str, hand: _WorkerTasks) -> Task | None:
        """The first task of the model that this worker's node has files for."""
        lacks = self._lacks[hand.node]
        return next((task for task in self._queue(model) if task.sample not in lacks), None)

    def _models_waiting(self) -> Iterator[str]:
        """Models with tasks in the plan's order; starts those that have not been started."""
        return (model for model in self._models if self._queue(model))

    def _queue(self, model: str) -> deque[Task]:
        if model not in self._queues:
            self._queues[model] = deque(self._tasks_of(model))
        return self._queues[model]
