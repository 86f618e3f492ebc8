"""Explanations kept with a run: which parts of the input the words of an answer rest on.

Boundary: one file of a run folder, appended like annotations.py's and checked when it is read; the
last entry for the same words and options of an answer counts.  Pictures are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Meta, Struct

from engine.errors import StoreError
from engine.plain_files import reason
from engine.quoting import shown
from engine.storage import json_lines
from engine.storage.annotations import append
from engine.storage.json_lines import DamagedLines
from engine.storage.schemas import Count, Name, Repeat, Time, checked

EXPLANATIONS = "explanations.jsonl"
MAX_LINES = 10_000  # that are read
MAX_BYTES = 64 * 2**20  # of the file
MAX_CELLS, MAX_MOMENTS = 2 * 32 * 32, 4096
LEAST_SIDE = 1 / 64  # of a box; the finest map has 32 cells per side
Share = Annotated[float, Meta(ge=0, le=1)]
Nats = Annotated[float, Meta(ge=-1e9, le=1e9)]
StoredBox = tuple[Share, Share, Share, Share]
Text = Annotated[str, Meta(max_length=100_000)]


class StoredCell(Struct, frozen=True):
    """The loss of one removed part of the picture."""

    box: StoredBox
    removed: StoredBox
    nats: Nats
    fine: bool


class StoredMoment(Struct, frozen=True):
    """The loss of one changed frame or event image."""

    index: Count
    label: Text
    how: Literal["replaced", "emptied"]
    nats: Nats


class StoredChance(Struct, frozen=True):
    """The permutation test of a map."""

    p: Share
    permutations: Count
    sentence: Text


class StoredCost(Struct, frozen=True):
    encodings: Count
    prefills: Count
    seconds: Time | None = None


class StoredExplanation(Struct, frozen=True):
    """A line of explanations.jsonl."""

    model: Name
    sample: Name
    repeat: Repeat
    prompt: Text
    answer: Text
    words: Annotated[str, Meta(min_length=1, max_length=100_000)]
    said: bool
    token_ids: Annotated[tuple[Count, ...], Meta(min_length=1, max_length=100_000)]
    scored: tuple[Count, Count]
    logprob: Nats
    removal: Literal["blur", "neutral", "events", "painted"]
    options: dict[str, int | str | bool]
    cells: Annotated[tuple[StoredCell, ...], Meta(max_length=MAX_CELLS)]
    moments: Annotated[tuple[StoredMoment, ...], Meta(max_length=MAX_MOMENTS)]
    cost: StoredCost
    ms: Time
    chance: StoredChance | None = None
    notes: Annotated[tuple[Text, ...], Meta(max_length=100)] = ()
    at: str = ""

    def __post_init__(self) -> None:
        first, after = self.scored
        if not first < after <= len(self.token_ids):
            raise ValueError("`scored` is no part of `token_ids`")
        for cell in self.cells:
            for left, top, right, bottom in (cell.box, cell.removed):
                if right - left < LEAST_SIDE or bottom - top < LEAST_SIDE:
                    raise ValueError("a box of `cells` is too small")

    @classmethod
    def parse(cls, line: bytes) -> Self:
        return msgspec.convert(checked(line), cls)


def read(folder: Path, damage: DamagedLines | None = None) -> tuple[StoredExplanation, ...]:
    """The explanations of a run, oldest first; StoreError if they cannot be read."""
    found: dict[Any, StoredExplanation] = {}
    path = folder / EXPLANATIONS
    try:
        for _, one in islice(json_lines.read(path, StoredExplanation.parse, damage), MAX_LINES):
            options = tuple(sorted(one.options.items()))
            found[(one.model, one.sample, one.repeat, one.words, options)] = one
    except OSError as error:
        raise StoreError(
            f"The explanations in {shown(path)} cannot be read ({reason(error)}): move this file "
            "away, or restore it from a copy."
        ) from error
    return tuple(found.values())


def problem(folder: Path) -> str:
    """A sentence about explanations that cannot be read, or ""."""
    damage = DamagedLines()
    try:
        read(folder, damage)
    except StoreError as error:
        return str(error)
    clause = damage.summary(EXPLANATIONS)
    return f"{clause}: they are left out." if clause else ""


def put(folder: Path, line: Mapping[str, Any]) -> None:
    """Appends an explanation that read() accepts; StoreError if it cannot be saved."""
    path = folder / EXPLANATIONS
    msgspec.convert(dict(line), StoredExplanation)
    if path.exists() and (size := path.stat().st_size) > MAX_BYTES:
        raise StoreError(
            f"{shown(path)} has {size:,} bytes, and at most {MAX_BYTES:,} are used: move it away "
            "to start again."
        )
    append(folder, EXPLANATIONS, "explanation", line)
