"""Plans: their order, their limits, and back from JSON."""

from dataclasses import fields
from typing import Any

import pytest

from engine.errors import BadInput, StoreError
from engine.storage import run_header
from engine.storage.plan import DEFAULTS, Plan, flags
from tests import fabricate


def plan(**more: Any) -> Plan:
    return Plan(**({"models": ("a", "b"), "samples": ("s", "t", "u")} | more))


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


def test_no_setting_of_a_plan_is_forgotten() -> None:
    apart = {"models", "samples", "warmup", "order", "order_why", "stop_after", "prompt", "decode"}
    apart.add("perturb_seed")  # named with the perturbation
    named = {one.name for one in fields(Plan)} - apart
    assert named <= set(DEFAULTS)


def test_a_command_names_its_dataset_unless_it_is_the_default_one() -> None:
    made = Plan(("m",), ("a",))
    assert [*flags([made], "set", ["a"])] == ["--dataset", "set", "--models", "m"]
    assert [*flags([made], "demo-dataset")] == ["--models", "m", "--ids", "ids.txt"]
