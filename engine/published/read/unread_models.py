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
MODEL: Mapping[str, re.Pattern[str]] = {  # in keys of rows, by group
    "A": re.compile(r"(.+?)_(?:stage\d_time|token_ids)"),
    "F": re.compile(r"(.+?)_(?:output_|draft_)?tokens"),
}
STAGE = re.compile(r"stage\d_time|total_time")
READ = {"A": ("egpt",), "F": ("egpt", "vl", "adapter", "adapted", "sd")}
NESTED = ("B'", "D", "E")  # an object for each model
LOOKED_AT = 1_000  # rows


def name(value: Any, reading: FileReading) -> None:
    """Notes each further model once, at its first place."""
    group = reading.form.group.letter
    known = {*reading.models, *READ.get(group, ())}
    for model, path in _places(value, group):
        if model not in known:
            known.add(model)
            both = " and ".join(reading.models[:2])
            reading.cells.note("model", path, f"the answers read are those of {both}")


def _places(value: Any, group: str) -> Iterator[tuple[str, str]]:
    """(model, path) of everything that looks like an answer."""
    for key, inner in value.items() if group in ("B", "C") else ():
        if group == "B" and key.endswith("_results") and isinstance(inner, list):
            yield key.removesuffix("_results"), key
        elif group == "C" and isinstance(inner, dict) and "samples" in inner:
            yield key, key
    start, rows = "$", value
    if isinstance(value, dict):
        start = "samples" if isinstance(value.get("samples"), list) else "results"
        rows = value.get(start)
    for index, row in enumerate(rows[:LOOKED_AT] if isinstance(rows, list) else ()):
        for key, inner in row.items() if isinstance(row, dict) else ():
            place = f"{start}[{index}].{key}"
            if group in NESTED and key not in NOT_MODELS and _is_answer(inner):
                yield key, place
            found = MODEL[group].fullmatch(key) if group in MODEL else None
            if found and (group == "A" or (isinstance(inner, list) and key not in NOT_ANSWERS)):
                yield found[1], place


def _is_answer(value: Any) -> bool:
    keys = value if isinstance(value, dict) else {}
    return any(STAGE.fullmatch(key) or (key in IDS and isinstance(keys[key], list)) for key in keys)
