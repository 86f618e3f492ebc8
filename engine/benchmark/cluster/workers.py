"""The workers of a cluster, as shown to users and in rows, and which of them gets which task: the
next one of its model that its node has files for.

A worker without tasks for its model continues with the next model.  Every task that is given out
comes back exactly once: done, or returned when its worker ends.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from engine.quoting import count
from engine.storage.plan import Task
from engine.storage.result_rows import Place

DEPTH = 2  # tasks per worker: one running and one waiting, so that it never waits for the driver
MOST_DEATHS = 3  # a task fails after this many workers have ended while running it
RATED = 50  # number of last results in the rate, so that the time to load a model drops out
NO_DEVICE, STARTING, WAITING = "waiting for its device", "starting", "waiting"
NO_MODEL = "can load no model"
COUNTED = {NO_DEVICE: "waiting for a device", STARTING: "starting", WAITING: "idle",
           NO_MODEL: "idle"}  # fmt: skip


@dataclass(eq=False)
class WorkerState:
    """One worker, on the device with this number of its node.

    `machine` is empty until its process runs, which needs a free device; `device` is the report of
    worker.device_here(), empty before it; `over_at`: when it ended, or stopped using its device
    because it can load no model, in monotonic seconds; `shared`: what other workers use now.

    `model`: whose tasks it gets, after those of `warm_up`; `loaded`: the model of its last answer;
    `given`: its tasks, the running one first; `refused`: models that it cannot load.
    """

    id: str
    node: str
    address: str
    number: int = 0
    loaded: str = ""
    model: str = ""
    warm_up: deque[Task] = field(default_factory=deque)
    given: deque[Task] = field(default_factory=deque)
    refused: set[str] = field(default_factory=set)
    machine: str = ""
    host: str = ""
    device: Mapping[str, Any] = field(default_factory=dict)
    state: str = NO_DEVICE
    since: float = field(default_factory=time.monotonic)
    ended: bool = False
    over_at: float = inf
    done: int = 0
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=RATED))
    shared: tuple[str, ...] = ()

    @property
    def per_s(self) -> float | None:
        if self.ended or len(self.ends) < 2:
            return None
        return (len(self.ends) - 1) / (self.ends[-1] - self.ends[0])

    def end(self, state: str) -> None:
        self.set_aside(state)
        self.ended = True

    def set_aside(self, state: str = NO_MODEL) -> None:
        self.state, self.over_at = state, min(self.over_at, time.monotonic())

    def count(self) -> None:
        self.done += 1
        self.ends.append(time.monotonic())


class Workers(dict[str, WorkerState]):
    @property
    def present(self) -> list[WorkerState]:
        return [member for member in self.values() if not member.ended]

    def waiting(self, longer_s: float = 0.0) -> list[WorkerState]:
        """Workers whose process has not started for `longer_s`: their device is in use."""
        latest = time.monotonic() - longer_s
        return [one for one in self.present if not one.machine and one.since <= latest]

    def where(self, member: WorkerState, since: float) -> Place:
        return Place(
            node=member.node,
            host=member.host,
            address=member.address,
            device=f"{member.device['name']} ({member.device['unit']})",
            type=member.device["type"],
            actor=member.id,
            pid=member.device["pid"],
            shares=self.shares(member, since),
        )

    def shares(self, member: WorkerState, since: float) -> tuple[str, ...]:
        """What other workers of this run used at any moment since then: "device" (the same GPU, or
        the machine's processor), "cores" (more threads than cores), or nothing.  A starting worker
        counts with its threads, but without a GPU."""
        mine = member.device
        others = [
            other.device or {"threads": mine["threads"], "unit": "cpu"}
            for other in self.values()
            if other is not member and other.machine == member.machine and other.over_at >= since
        ]
        shares = ["device"] if any(other["unit"] == mine["unit"] for other in others) else []
        if mine["threads"] + sum(other["threads"] for other in others) > mine["cores"]:
            shares.append("cores")
        return tuple(shares)

    def words(self) -> str:
        states = Counter(COUNTED.get(member.state, "at work") for member in self.present)
        order = ("at work", *dict.fromkeys(reversed(COUNTED.values())))
        parts = [f"{count(states[state], 'worker')} {state}" for state in order if states[state]]
        return ", ".join(parts) or ("no worker left" if self else "looking for devices")

    def seen(self) -> tuple[WorkerState, ...]:
        """All of them, with what they share now and the name of their node, which one has told."""
        now = time.monotonic()
        hosts = {member.node: member.host for member in self.values() if member.host}
        for member in self.values():
            member.host = hosts.get(member.node, "")
            working = member.device and not member.ended
            member.shared = self.shares(member, now) if working else ()
        return tuple(self.values())


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
        lacks = self.lacks[member.node]
        for model in (member.model, *(() if member.given else self._queues)):
            known = (task for task in self._queues.get(model, ()) if task.sample not in lacks)
            if model in member.refused or (task := next(known, None)) is None:
                continue
            if model != member.model:
                member.model = model
                member.warm_up = deque(self._warm_ups(model, lacks))
            if member.warm_up:
                return member.warm_up.popleft()
            self._queues[model].remove(task)
            return task
        return None

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
