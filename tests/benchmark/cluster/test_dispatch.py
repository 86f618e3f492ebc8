"""Handing out: by model, in the plan's order, bounded; nothing lost, nothing doubled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from engine.benchmark.cluster.dispatch import DEPTH, MOST_DEATHS, Dispatcher, Order
from engine.storage.plan import Task


def task(model: str, sample: str, phase: str = "measured") -> Task:
    return Task(model, sample, 0, "warmup" if phase == "warmup" else "measured")


def dispatcher(
    models: Iterable[str] = ("a",), samples: Iterable[str] = ("q0/0", "q0/1", "q1/0"), warm: int = 0
) -> Dispatcher:
    """Samples are named sequence/number."""
    numbers = iter(range(10**6))

    def warm_ups(model: str, lacks: set[str]) -> list[Task]:
        able = [name for name in samples if name not in lacks]
        return [Task(model, able[0], next(numbers), "warmup") for _ in range(warm if able else 0)]

    return Dispatcher(
        list(models),
        lambda model: [task(model, sample) for sample in samples],
        warm_ups,
    )


def load(found: Dispatcher) -> list[Order]:
    """The orders, all loads among them obeyed at once."""
    orders = list(found.orders())
    for order in orders:
        if order.task is None:
            found.loaded(order.worker)
    return orders


def asked(found: Dispatcher, worker: str) -> list[str]:
    return [o.task.sample for o in found.orders() if o.worker == worker and o.task]


def test_a_worker_loads_warms_up_and_then_gets_a_bounded_number() -> None:
    found = dispatcher(warm=1)
    found.join("w", "n")
    assert load(found) == [Order("w", "a")]
    first = [order.task for order in found.orders()]
    assert [one and one.phase for one in first] == ["warmup", "measured"] and len(first) == DEPTH
    assert list(found.orders()) == []  # until something comes back
    assert first[0] is not None
    found.done("w", first[0])
    assert asked(found, "w") == ["q0/1"]


def test_models_go_one_after_another_and_nobody_waits_for_the_last_of_one() -> None:
    found = dispatcher(models=("a", "b"), samples=("q0/0",))
    for name in ("x", "y"):
        found.join(name, "n")
    assert [order.model for order in load(found)] == ["a", "a"]
    orders = list(found.orders())
    assert [(o.worker, o.model, o.task is None) for o in orders] == [
        ("x", "a", False),
        ("y", "b", True),
    ]


def test_what_a_worker_leaves_behind_is_given_out_again_in_its_place() -> None:
    found = dispatcher()
    found.join("x", "n")
    load(found)
    given = [order.task for order in found.orders()]
    again, fatal = found.leave("x")
    assert again == given and not fatal and not found.finished()
    found.join("y", "n")
    load(found)
    assert asked(found, "y") == ["q0/0", "q0/1"]
    assert found.leave("x") == ([], [])


def test_a_task_that_workers_end_on_again_and_again_is_given_up() -> None:
    found = dispatcher(samples=("q0/0", "q0/1"))
    for number in range(MOST_DEATHS):
        found.join(str(number), "n")
        load(found)
        list(found.orders())
        again, fatal = found.leave(str(number))
    assert fatal == [task("a", "q0/0")] and again == [task("a", "q0/1")]


def test_a_warm_up_is_not_given_to_another() -> None:
    found = dispatcher(samples=("q0/0",), warm=1)
    found.join("x", "n")
    load(found)
    list(found.orders())
    assert found.leave("x") == ([task("a", "q0/0")], [])


def test_samples_that_a_node_lacks_go_to_another_node() -> None:
    found = dispatcher()
    found.join("x", "poor", lacks=["q0/0", "q0/1"])
    found.join("y", "rich")
    load(found)
    assert asked(found, "x") == ["q1/0"]
    assert asked(found, "y") == []  # both were given in the same round
    assert [t.sample for t in found.in_flight("y")] == ["q0/0", "q0/1"]
    found.absent("y", task("a", "q0/1"), "it has gone")
    for worker in ("x", "y"):
        for one in found.in_flight(worker):
            found.done(worker, one)
    assert not found.finished() and not list(found.orders())
    (stuck,) = found.stuck()
    assert (stuck.model, stuck.reason, stuck.loaded, stuck.tasks) == ("a", "it has gone", True, 1)


def test_a_model_that_one_worker_cannot_load_goes_to_another() -> None:
    found = dispatcher(models=("a", "b"), samples=("q0/0",))
    found.join("x", "n")
    list(found.orders())
    found.refused("x", "a", "too large")
    assert [order.model for order in load(found)] == ["b"]
    list(found.orders())
    found.done("x", task("b", "q0/0"))
    assert not list(found.orders())
    (stuck,) = found.stuck()
    assert (stuck.model, stuck.reason, stuck.loaded) == ("a", "too large", False)
    found.join("y", "n")
    assert [(o.worker, o.model) for o in load(found)] == [("y", "a")]


def test_a_dropped_model_is_not_begun_and_does_not_come_back() -> None:
    found = dispatcher(models=("a", "b"), samples=("q0/0", "q0/1"))
    found.join("x", "n")
    load(found)
    list(found.orders())
    found.drop("a")
    found.drop("b")
    assert not found.finished()  # two are in flight
    assert found.leave("x") == ([], []) and found.finished()


def test_whatever_happens_each_task_is_answered_exactly_once() -> None:
    chance = random.Random(0)
    samples = [f"q{i % 13}/{i}" for i in range(200)]
    found = dispatcher(models=("a", "b", "c"), samples=samples, warm=2)
    answered: Counter[Task] = Counter()
    workers: list[str] = []
    for turn in range(50_000):
        if found.finished():
            break
        if len(workers) < 5 and (chance.random() < 0.1 or not workers):
            workers.append(f"w{turn}")
            found.join(workers[-1], f"n{turn % 2}", lacks=samples[: 3 * (turn % 2)])
        for order in list(found.orders()):
            if order.task is None:
                found.loaded(order.worker)
            assert len(found.in_flight(order.worker)) <= DEPTH
        one = chance.choice(workers)
        if chance.random() < 0.01:
            workers.remove(one)
            _, fatal = found.leave(one)
            answered.update(fatal)
        elif given := found.in_flight(one):
            found.done(one, given[0])
            answered[given[0]] += 1
    assert found.finished()
    measured = {one: n for one, n in answered.items() if one.phase == "measured"}
    assert len(measured) == 600 and set(answered.values()) == {1}
