"""Handing out: by model, in the plan's order, bounded; nothing lost, nothing doubled."""

import random
from collections import Counter
from collections.abc import Iterable

from engine.benchmark.cluster.workers import (
    DEPTH,
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


def test_what_a_worker_leaves_behind_is_given_out_again_in_its_place() -> None:
    tasks = Given()
    x = tasks.join("x")
    tasks.give(x)
    given = list(x.given)
    assert tasks.end(x) == (given, []) and not tasks.finished
    assert tasks.give(tasks.join("y")) == ["a q0/0", "a q0/1"]
    assert tasks.leave(x) == ([], [])


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
