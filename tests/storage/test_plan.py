"""Plans: their order, their limits, and back from JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.errors import BadInput, StoreError
from engine.storage import run_header
from engine.storage.plan import Plan, Task
from engine.types import DecodeConfig
from tests import fabricate


def plan(**more: Any) -> Plan:
    return Plan(**({"models": ("a", "b"), "samples": ("s", "t", "u")} | more))


def test_sequential_ends_one_model_before_the_next() -> None:
    wanted = plan(repeat=2)
    tasks = [task for group in wanted.model_groups() for task in wanted.tasks(group)]
    assert [task.model for task in tasks] == ["a"] * 6 + ["b"] * 6
    assert tasks[3] == Task("a", "s", 1, "measured")
    assert len(set(tasks)) == wanted.planned == 12


def test_interleaved_models_take_turns_at_being_first() -> None:
    wanted = plan(order="interleaved")
    (group,) = wanted.model_groups()
    tasks = list(wanted.tasks(group))
    assert [task.model for task in tasks] == ["a", "b", "b", "a", "a", "b"]
    assert [task.sample for task in tasks] == ["s", "s", "t", "t", "u", "u"]


def test_a_batch_holds_samples_of_one_model_and_the_last_may_be_smaller() -> None:
    wanted = plan(order="interleaved", batch=2, repeat=2)
    (group,) = wanted.model_groups()
    batches = list(wanted.batches(group))
    assert [[(t.model, t.sample) for t in batch] for batch in batches[:4]] == [
        [("a", "s"), ("a", "t")],
        [("b", "s"), ("b", "t")],
        [("b", "u")],
        [("a", "u")],
    ]
    assert [len({task.model for task in batch}) for batch in batches] == [1] * 8
    assert len(set(wanted.tasks(group))) == wanted.planned


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mode": "hooked"}, "mode is 'hooked' and batch is 4: .* choose decoupled"),
        ({"cache": "refresh"}, "cache is 'refresh' and batch is 4: .* choose use or off"),
    ],
)
def test_what_only_single_runs_give(more: dict[str, Any], message: str) -> None:
    assert plan(batch=1, **more).batch == 1
    with pytest.raises(BadInput, match=message):
        plan(batch=4, **more)


def test_forced_is_one_length_for_all() -> None:
    assert plan().decode.forced is None
    assert plan(decode=DecodeConfig(max_new_tokens=9, min_new_tokens=9)).decode.forced == 9


def test_json_gives_the_same_plan() -> None:
    wanted = plan(prompt=" Why? ", decode=DecodeConfig(max_new_tokens=7, temperature=0.5))
    header = replace(fabricate.header(), plan=wanted)
    stored = json.loads(json.dumps(run_header.as_json(header)))
    assert run_header.parsed(stored, "run.json") == header
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
        ("extent", "sensor", "extent is 'sensor'"),
        ("prompt", " ", "question is empty"),
        ("batch", 0, "batch is 0"),
        ("batch", 10**6, "batch is 1,000,000"),
    ],
)
def test_what_cannot_be_is_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plan(**{field: value})


def test_more_results_than_a_run_may_have() -> None:
    with pytest.raises(BadInput, match="2,000,000 results"):
        plan(samples=tuple(map(str, range(1000))), repeat=1000)


@pytest.mark.parametrize(
    "damage",
    [{"decode": 3}, {"decode": {"odd": 1}}, {"models": 5}, {"odd": 1}, {"repeat": "x"},
     {"repeat": 0}],
)  # fmt: skip
def test_a_damaged_plan_is_refused(damage: dict[str, Any]) -> None:
    stored = run_header.as_json(fabricate.header())
    with pytest.raises(StoreError, match=r"run\.json"):
        run_header.parsed(stored | {"plan": stored["plan"] | damage}, "run.json")


def test_a_label_in_a_file_is_one_line_of_characters() -> None:
    stored = run_header.as_json(fabricate.header())
    stored["models"][0]["label"] = "a\x1b\r\n\ufffeb"
    assert run_header.parsed(stored, "run.json").models[0].label == f"a{4 * chr(0xFFFD)}b"
    stored["models"][0]["label"] = " "
    assert run_header.parsed(stored, "run.json").models[0].label == stored["models"][0]["name"]
