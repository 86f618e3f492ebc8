"""Handing out: by model, in the plan's order, bounded; nothing lost, nothing doubled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from engine.benchmark.cluster.workers import (
    DEPTH,
    MOST_DEATHS,
    Dispatcher,
    Workers,
    WorkerState,
)
from engine.storage.plan import Task


def task(model: str, sample: str) -> Task:
    return Task(model, sample, 0, "measured")


class Given(Dispatcher):
    """Samples are named sequence/number."""

    def __init__(
        self,
        models: Iterable[str] = ("a",),
        samples: Iterable[str] = ("q0/0", "q0/1", "q1/0"),
        warm: int = 0,
    ) -> None:
        numbers, self.workers = iter(range(10**6)), Workers()

        def warm_ups(model: str, lacks: set[str]) -> list[Task]:
            able = [name for name in samples if name not in lacks]
            return [
                Task(model, able[0], next(numbers), "warmup") for _ in range(warm if able else 0)
            ]

        tasks = {model: [task(model, sample) for sample in samples] for model in models}
        super().__init__(tasks, self.workers, warm_ups)

    def join(self, name: str, node: str = "n", lacks: Iterable[str] = ()) -> WorkerState:
        self.lacks[node] = set(lacks)
        self.workers[name] = WorkerState(name, node, "::1", device={"name": "cpu"})
        return self.workers[name]

    def end(self, member: WorkerState) -> tuple[list[Task], list[Task]]:
        left = self.leave(member)
        member.end("ended")
        return left

    def give(self, member: WorkerState) -> list[str]:
        return [f"{t.model} {t.sample}" for one, t in list(self.orders()) if one is member]


def test_a_worker_warms_up_and_then_gets_a_bounded_number() -> None:
    tasks = Given(warm=1)
    worker = tasks.join("w")
    tasks.give(worker)
    assert [t.phase for t in worker.given] == ["warmup", "measured"] and len(worker.given) == DEPTH
    assert tasks.give(worker) == []  # until something comes back
    tasks.done(worker, worker.given[0])
    assert tasks.give(worker) == ["a q0/1"]


def test_models_go_one_after_another_and_nobody_waits_for_the_last_of_one() -> None:
    tasks = Given(models=("a", "b"), samples=("q0/0",))
    x, y = tasks.join("x"), tasks.join("y")
    given = [(member, t.model) for member, t in tasks.orders()]
    assert given == [(x, "a"), (y, "b")]


def test_what_a_worker_leaves_behind_is_given_out_again_in_its_place() -> None:
    tasks = Given()
    x = tasks.join("x")
    tasks.give(x)
    given = list(x.given)
    assert tasks.end(x) == (given, []) and not tasks.finished
    assert tasks.give(tasks.join("y")) == ["a q0/0", "a q0/1"]
    assert tasks.leave(x) == ([], [])


def test_a_task_that_workers_end_on_again_and_again_is_given_up() -> None:
    tasks = Given(samples=("q0/0", "q0/1"))
    for number in range(MOST_DEATHS):
        worker = tasks.join(str(number))
        tasks.give(worker)
        again, fatal = tasks.end(worker)
    assert fatal == [task("a", "q0/0")] and again == [task("a", "q0/1")]


def test_a_warm_up_is_not_given_to_another() -> None:
    tasks = Given(samples=("q0/0",), warm=1)
    worker = tasks.join("x")
    tasks.give(worker)
    assert tasks.end(worker) == ([task("a", "q0/0")], [])


def test_samples_that_a_node_lacks_go_to_another_node() -> None:
    tasks = Given()
    x, y = tasks.join("x", "poor", lacks=["q0/0", "q0/1"]), tasks.join("y", "rich")
    list(tasks.orders())
    assert [t.sample for t in x.given] == ["q1/0"]
    assert [t.sample for t in y.given] == ["q0/0", "q0/1"]
    tasks.absent(y, task("a", "q0/1"), "it has gone")
    for worker in (x, y):
        tasks.done(worker, worker.given[0])
    assert not tasks.finished and not list(tasks.orders())
    assert tasks.stuck() == [("a", "it has gone", True, 1)]


def test_a_warm_up_that_the_node_lacks_is_replaced() -> None:
    tasks = Given(warm=1)
    worker = tasks.join("x")
    tasks.give(worker)
    for t in list(worker.given):
        tasks.absent(worker, t, "it is not there")
    assert tasks.give(worker) == ["a q0/1", "a q0/1"]
    assert [t.phase for t in worker.given] == ["warmup", "measured"]


def test_a_model_that_one_worker_cannot_load_goes_to_another() -> None:
    tasks = Given(models=("a", "b"), samples=("q0/0", "q0/1"))
    x = tasks.join("x")
    assert tasks.give(x) == ["a q0/0", "a q0/1"]
    assert not tasks.unloadable(x, "a", "too large")
    assert tasks.give(x) == ["b q0/0", "b q0/1"]
    for t in list(x.given):
        tasks.done(x, t)
    assert not list(tasks.orders()) and tasks.stuck() == [("a", "too large", False, 2)]
    assert tasks.give(tasks.join("y")) == ["a q0/0", "a q0/1"]
    assert tasks.unloadable(x, "b", "too large")  # it can load nothing


def test_a_dropped_model_is_not_begun_and_does_not_come_back() -> None:
    tasks = Given(models=("a", "b"), samples=("q0/0", "q0/1"))
    worker = tasks.join("x")
    tasks.give(worker)
    tasks.drop("a")
    tasks.drop("b")
    assert not tasks.finished  # two are in flight
    assert tasks.end(worker) == ([], []) and tasks.finished


def test_whatever_happens_each_task_is_answered_exactly_once() -> None:
    chance = random.Random(0)
    samples = [f"q{i % 13}/{i}" for i in range(200)]
    tasks = Given(models=("a", "b", "c"), samples=samples, warm=2)
    answered: Counter[Task] = Counter()
    for turn in range(50_000):
        if tasks.finished:
            break
        workers = tasks.workers.present
        if len(workers) < 5 and (chance.random() < 0.1 or not workers):
            workers.append(tasks.join(f"w{turn}", f"n{turn % 2}", samples[: 3 * (turn % 2)]))
        list(tasks.orders())
        assert all(len(worker.given) <= DEPTH for worker in workers)
        worker = chance.choice(workers)
        if chance.random() < 0.01:
            answered.update(tasks.end(worker)[1])
        elif worker.given:
            answered[worker.given[0]] += 1
            tasks.done(worker, worker.given[0])
    assert tasks.finished
    measured = {t: count for t, count in answered.items() if t.phase == "measured"}
    assert len(measured) == 600 and set(answered.values()) == {1}
