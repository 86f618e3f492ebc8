"""Finds models beyond the two that are read, so that they can be named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.published.read.file_forms import IDS
from engine.published.read.file_reading import FileReading

NOT_MODELS = ("acceptance", "parallel", "config", "summary", "statistics", "speculative_decoding")
NOT_ANSWERS = ("prompt_tokens", "input_tokens", "reference_tokens", "accepted_tokens",
               "rejected_tokens", "matched_tokens")  # fmt: skip
FLAT = re.compile(r"(?P<model>.+?)_(?:stage\d_time|token_ids)")
LISTED = re.compile(r"(?P<model>.+?)_(?:output_|draft_)?tokens")
PATTERNS: Mapping[str, re.Pattern[str]] = {"A": FLAT, "F": LISTED}
STAGE = re.compile(r"stage\d_time|total_time")
READ: Mapping[str, tuple[str, ...]] = {
    "A": ("egpt",),
    "F": ("egpt", "vl", "adapter", "adapted", "sd"),
}
NESTED = ("B'", "D", "E")  # an object for each model
LOOKED_AT = 1_000  # rows


def name(value: Any, reading: FileReading) -> None:
    """Notes each further model once, at its first place."""
    known = {*reading.models, *READ.get(reading.form.group.letter, ())}
    seen: set[str] = set()
    for model, path in _places(value, reading.form.group.letter):
        if model not in known and model not in seen:
            seen.add(model)
            both = " and ".join(reading.models[:2])
            reading.cells.note("model", path, f"the answers read are those of {both}")


def _places(value: Any, group: str) -> Iterator[tuple[str, str]]:
    if group == "B":
        yield from _lists(value)
    elif group == "C":
        yield from ((key, key) for key, inner in value.items()
                    if isinstance(inner, dict) and "samples" in inner)  # fmt: skip
    for place, row in _rows(value):
        for key, inner in row.items():
            if group in NESTED and _is_answer(key, inner):
                yield key, f"{place}.{key}"
            pattern = PATTERNS.get(group)
            found = pattern.fullmatch(key) if pattern else None
            if found and (group == "A" or (isinstance(inner, list) and key not in NOT_ANSWERS)):
                yield found["model"], f"{place}.{key}"


def _lists(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        if key.endswith("_results") and isinstance(inner, list):
            yield key.removesuffix("_results"), key


def _rows(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, list):
        start, rows = "$", value
    else:
        start = "samples" if isinstance(value.get("samples"), list) else "results"
        rows = value.get(start)
    for index, row in enumerate(rows[:LOOKED_AT] if isinstance(rows, list) else ()):
        if isinstance(row, dict):
            yield f"{start}[{index}]", row


def _is_answer(key: str, inner: Any) -> bool:
    if key in NOT_MODELS or not isinstance(inner, dict):
        return False
    return any(STAGE.fullmatch(one) or (one in IDS and isinstance(inner[one], list))
               for one in inner)  # fmt: skip
