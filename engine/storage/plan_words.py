"""The settings of a plan in words, and which of them are worth showing.

Boundary: plans in, short texts out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.quoting import cut
from engine.storage.plan import Plan
from engine.types import CACHE_WORDS, EXTENT_WORDS, FRAME_WORDS

COMPARISON = "answers kept from the Compare page"  # the plan's `order_why`


@dataclass(frozen=True)
class SettingChip:
    """A setting in words; `differs`: from the other runs, otherwise only from the default."""

    words: str
    differs: bool


def settings(plan: Plan) -> dict[str, str]:
    """Every setting by name, in a fixed order."""
    decode = plan.decode
    limit = f"forced {plan.forced:,} tokens" if plan.forced else _limit(plan)
    sampled = f"temperature {decode.temperature:g}, top p {decode.top_p:g}, seed {decode.seed}"
    return {
        "kind": "comparison" if plan.order_why == COMPARISON else "dataset run",
        "length": limit,
        "decoding": "greedy" if decode.greedy else sampled,
        "backend": f"{decode.backend} token steps",
        "frames": f"8 {FRAME_WORDS.get(plan.frames, plan.frames)} frames",
        "cache": CACHE_WORDS[plan.cache],
        "mode": plan.mode,
        "pixels": f"{plan.pixels} pixels",
        "extent": f"event pictures {EXTENT_WORDS[plan.extent]}",
        "window": f"window {plan.window}" if plan.window else "whole recordings",
        "split": f"event pictures: {plan.split.words}",
        "perturb": f"perturbed: {plan.perturbed}" if plan.perturbed else "not perturbed",
        "batch": f"batches of {plan.batch:,}" if plan.batch > 1 else "one sample at a time",
        "repeat": f"{plan.repeat:,} repeats" if plan.repeat > 1 else "1 repeat",
        "question": f"question: {cut(plan.prompt)}" if plan.prompt else "each record's question",
    }


def _limit(plan: Plan) -> str:
    least = plan.decode.min_new_tokens
    return f"{f'{least:,} to' if least else 'at most'} {plan.decode.max_new_tokens:,} new tokens"


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
