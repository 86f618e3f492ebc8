"""Plans: their order, their limits, and back from JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.errors import BadInput, StoreError
from engine.plan import Plan, Task, from_json
from engine.types import DecodeConfig


def plan(**more: Any) -> Plan:
    return Plan(**({"models": ("a", "b"), "samples": ("s", "t", "u")} | more))


def test_sequential_ends_one_model_before_the_next() -> None:
    wanted = plan(repeat=2)
    tasks = [task for batch in wanted.batches() for task in wanted.tasks(batch)]
    assert [task.model for task in tasks] == ["a"] * 6 + ["b"] * 6
    assert tasks[3] == Task("a", "s", 1, "measured")
    assert len(set(tasks)) == wanted.planned == 12


def test_interleaved_models_take_turns_at_being_first() -> None:
    wanted = plan(order="interleaved")
    (batch,) = wanted.batches()
    tasks = list(wanted.tasks(batch))
    assert [task.model for task in tasks] == ["a", "b", "b", "a", "a", "b"]
    assert [task.sample for task in tasks] == ["s", "s", "t", "t", "u", "u"]


def test_forced_is_one_length_for_all() -> None:
    assert plan().forced is None
    assert plan(decode=DecodeConfig(max_new_tokens=9, min_new_tokens=9)).forced == 9


def test_json_gives_the_same_plan() -> None:
    wanted = plan(prompt=" Why? ", decode=DecodeConfig(max_new_tokens=7, temperature=0.5))
    assert from_json(json.loads(json.dumps(wanted.as_json()))) == wanted
    assert wanted.prompt == "Why?"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("models", (), "needs models"),
        ("samples", (), "needs samples"),
        ("repeat", 0, "repeat is 0"),
        ("repeat", 10**9, "repeat is 1,000,000,000"),
        ("warmup", -1, "warmup is -1"),
        ("stop_after", 0, "stop-after is 0"),
        ("order", "random", "order is 'random'"),
        ("cache", "on", "cache is 'on'"),
        ("mode", "both", "mode is 'both'"),
        ("frames", "all", "frames is 'all'"),
        ("pixels", "soft", "pixels is 'soft'"),
        ("prompt", " ", "question is empty"),
    ],
)
def test_what_cannot_be_is_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plan(**{field: value})


def test_more_results_than_a_run_may_have() -> None:
    with pytest.raises(BadInput, match="2,000,000 results"):
        plan(samples=tuple(map(str, range(1000))), repeat=1000)


@pytest.mark.parametrize("damage", [{"decode": 3}, {"models": 5}, {"odd": 1}, {"repeat": "x"}])
def test_a_damaged_plan_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match=r"run\.json"):
        from_json(plan().as_json() | damage)
