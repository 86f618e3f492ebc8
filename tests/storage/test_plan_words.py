"""Settings in words: what differs from the defaults, and between runs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from engine.storage.plan import DEFAULTS, Plan


def plan(**more: Any) -> Plan:
    return Plan(("m",), ("s",), **more)


def test_no_setting_of_a_plan_is_forgotten() -> None:
    apart = {"models", "samples", "warmup", "order", "order_why", "stop_after", "prompt", "decode"}
    apart.add("perturb_seed")  # named with the perturbation
    named = {one.name for one in fields(Plan)} - apart
    assert named <= set(DEFAULTS)
