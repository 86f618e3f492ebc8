"""Settings in words: what differs from the defaults, and between runs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from engine.storage import plan_words
from engine.storage.plan import Plan
from engine.storage.plan_words import COMPARISON, SettingChip, chips, settings
from engine.types import DecodeConfig


def plan(**more: Any) -> Plan:
    return Plan(("m",), ("s",), **more)


def test_a_default_run_has_no_chip_and_other_settings_have_one() -> None:
    forced = DecodeConfig(max_new_tokens=64, min_new_tokens=64)
    other = plan(decode=forced, cache="use", prompt="Why?", order_why=COMPARISON)
    alone = chips([settings(other)])[0]
    assert [chip.words for chip in alone] == [
        "comparison", "forced 64 tokens", "cache on", "question: Why?",
    ]  # fmt: skip
    assert not any(chip.differs for chip in alone)
    assert chips([settings(plan())]) == [[]]


def test_what_differs_between_runs_is_shown_for_all_of_them() -> None:
    one, two = chips([settings(plan()), settings(plan(mode="hooked"))])
    assert one == [SettingChip("decoupled", True)]
    assert two == [SettingChip("hooked", True)]
    same = chips([settings(plan(mode="hooked"))] * 2)  # control
    assert same == [[SettingChip("hooked", False)]] * 2
    assert chips([settings(plan()), {}]) == [[], []]  # an unreadable run


def test_no_setting_of_a_plan_is_forgotten() -> None:
    apart = {"models", "samples", "warmup", "order", "order_why", "stop_after", "prompt", "decode"}
    apart.add("perturb_seed")  # named with the perturbation
    named = {one.name for one in fields(Plan)} - apart
    assert named <= set(plan_words.DEFAULTS)
