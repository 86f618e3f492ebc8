"""The settings of a plan in words, and which of them are worth showing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.quoting import cut
from engine.storage.plan import Plan
from engine.types import OPTIONS

COMPARISON = "answers kept from the Compare page"  # the plan's `order_why`


@dataclass(frozen=True)
class SettingChip:
    """A setting in words; `differs`: from the other runs, otherwise only from the default."""

    words: str
    differs: bool


def settings(plan: Plan) -> dict[str, str]:
    """Every setting by name, in a fixed order."""
    return {
        "kind": "comparison" if plan.order_why == COMPARISON else "dataset run",
        **plan.settings,
        "batch": f"batches of {plan.batch:,}" if plan.batch > 1 else "one sample at a time",
        "repeat": f"{plan.repeat:,} repeats" if plan.repeat > 1 else "1 repeat",
        "question": f"question: {cut(plan.prompt)}" if plan.prompt else "each record's question",
    }


def differing(plan: Plan, other: Plan, times: bool = True) -> dict[str, tuple[str, str]]:
    """The settings of both plans, in words, that must be equal so that answers, or with `times`
    also times, can be compared."""
    ours, theirs = settings(plan), settings(other)
    apart = {"kind", "repeat"}
    if not times:
        apart |= {one.chip or name for name, one in OPTIONS.items() if not one.answers}
    return {
        name: (words, theirs[name])
        for name, words in ours.items()
        if name not in apart
        and (words != theirs[name] or (name == "question" and plan.prompt != other.prompt))
    }


DEFAULTS: Mapping[str, str] = settings(Plan(("model",), ("sample",)))


def chips(runs: Sequence[Mapping[str, str]]) -> list[list[SettingChip]]:
    """For each run the settings that are not the default, or not the same in all the runs."""
    known = [run for run in runs if run]  # an unreadable run has no settings
    differing = {name for name in DEFAULTS if len({run.get(name) for run in known}) > 1}
    return [
        [
            SettingChip(words, name in differing)
            for name, words in run.items()
            if name in differing or words != DEFAULTS.get(name)
        ]
        for run in runs
    ]
