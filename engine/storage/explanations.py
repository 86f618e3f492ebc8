"""Explanations kept with a run: which parts of the input the words of an answer rest on.  The last
entry for the same words and options of an answer counts.  Pictures are not kept."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from engine.plain_files import Count, Name, Repeat, Time
from engine.quoting import count
from engine.storage.annotations import append, lines, of_file
from engine.storage.json_lines import DamagedLines

EXPLANATIONS = "explanations.jsonl"
MAX_LINES = 10_000  # that are read
MAX_BYTES = 64 * 2**20  # of the file
MAX_CELLS, MAX_MOMENTS = 2 * 32 * 32, 4096
LEAST_SIDE = 1 / 64  # of a box; the finest map has 32 cells per side
Share = Annotated[float, Meta(ge=0, le=1)]
Nats = Annotated[float, Meta(ge=-1e9, le=1e9)]
StoredBox = tuple[Share, Share, Share, Share]
Text = Annotated[str, Meta(max_length=100_000)]
Removal = Literal["blur", "neutral", "events", "painted"]  # painted: drawn event pictures, white


class CellLoss(Struct, frozen=True):
    """One removed part of the picture, in all frames or event images."""

    box: StoredBox  # the cell itself, without its neighbours
    removed: StoredBox  # what was removed
    nats: Nats  # > 0: the words rest on it
    fine: bool


class MomentLoss(Struct, frozen=True):
    """One frame or event image, replaced by its neighbour, or emptied of its events."""

    index: Count  # among the pictures that the model is shown
    label: Text  # "frame 12", "event image 3"
    how: Literal["replaced", "emptied"]
    nats: Nats


class Chance(Struct, frozen=True):
    """Whether a place is named: the permutation test of a map, and the conclusion in words."""

    p: Share
    permutations: Count
    sentence: Text
    probability: Share  # of the words' least likely token


class Cost(Struct, frozen=True):
    """What an explanation computes.  `prefills`: passes of the language model, each with up to a
    whole batch of inputs.  `seconds`: None if this model's times are not measured yet."""

    encodings: Count
    prefills: Count
    seconds: Time | None = None

    @property
    def sentence(self) -> str:
        seconds, passes = self.seconds, count(self.prefills, "prefill")
        lasting = "not measured yet" if seconds is None else "under 0.1 s"
        if seconds is not None and seconds >= 0.1:
            lasting = f"about {seconds:.1f} s" if seconds < 10 else f"about {seconds:,.0f} s"
        return f"{self.encodings:,} encodings, {passes}; time: {lasting}."


class ExplainedWords(Struct, frozen=True, kw_only=True, eq=False):
    """How much each part of the input carries the words of an answer."""

    answer: Text
    words: Annotated[str, Meta(min_length=1, max_length=100_000)]  # as they stand in the answer
    said: bool  # False: scored as if the model had said them after the prompt
    # Of the answer, or of the words if they were not said.
    token_ids: Annotated[tuple[Count, ...], Meta(min_length=1, max_length=100_000)]
    scored: tuple[Count, Count]  # the words' tokens among these: first, and the one after the last
    logprob: Nats  # of the words on the plain input
    cells: Annotated[tuple[CellLoss, ...], Meta(max_length=MAX_CELLS)]
    moments: Annotated[tuple[MomentLoss, ...], Meta(max_length=MAX_MOMENTS)]
    chance: Chance
    cost: Cost  # what was computed; seconds are measured
    ms: Time
    removal: Removal
    notes: Annotated[tuple[Text, ...], Meta(max_length=100)] = ()


KEPT = ExplainedWords.__struct_fields__


class StoredExplanation(ExplainedWords, frozen=True, kw_only=True, eq=True):
    model: Name
    sample: Name
    repeat: Repeat
    prompt: Text
    options: dict[str, int | str | bool]
    at: str = ""

    def __post_init__(self) -> None:
        first, after = self.scored
        if not first < after <= len(self.token_ids):
            raise ValueError("`scored` is no part of `token_ids`")
        for cell in self.cells:
            for left, top, right, bottom in (cell.box, cell.removed):
                if right - left < LEAST_SIDE or bottom - top < LEAST_SIDE:
                    raise ValueError("a box of `cells` is too small")


def read(folder: Path, damage: DamagedLines | None = None) -> tuple[StoredExplanation, ...]:
    """The explanations of a run, oldest first; StoreError if they cannot be read."""
    found: dict[Any, StoredExplanation] = {}
    every = lines(folder, EXPLANATIONS, "explanations", StoredExplanation, damage)
    for one in islice(every, MAX_LINES):
        options = tuple(sorted(one.options.items()))
        found[(one.model, one.sample, one.repeat, one.words, options)] = one
    return tuple(found.values())


def problem(folder: Path) -> str:
    """A sentence about explanations that cannot be read, or ""."""
    return of_file(folder, EXPLANATIONS, read)


def put(folder: Path, line: Mapping[str, Any]) -> None:
    """Appends an explanation that read() accepts; StoreError if it cannot be saved."""
    msgspec.convert(dict(line), StoredExplanation)
    append(folder, EXPLANATIONS, "explanation", line, MAX_BYTES)
