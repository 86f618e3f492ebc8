"""Mean or median stage times of a file's models, for bars.

Boundary: arithmetic over a ResultFile, in milliseconds.  A part that was not timed, or was a
placeholder, is absent, never 0.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine.palette import UNACCOUNTED
from engine.published.read.corrected import part_of
from engine.published.read.record_types import AnswerRecord, Part, ResultFile, milliseconds
from engine.types import STAGES

Middle = Literal["mean", "median"]
# The parts that a stage may be timed as, the first one that a record has.
_ALONE: Mapping[str, tuple[Part, ...]] = {name: (name,) for name in STAGES}
PARTS: Mapping[str, tuple[Part, ...]] = {**_ALONE, "load": ("load", "load+preprocess")}


@dataclass(frozen=True)
class Bar:
    """One model.  parts: ms by stage and "unaccounted"; total in ms, None if the file has none.
    notes: how to read the parts."""

    model: str
    n: int
    parts: Mapping[str, float] = field(default_factory=dict)
    total: float | None = None
    tokens: float | None = None
    notes: tuple[str, ...] = ()


def bars(file: ResultFile, corrected: bool = True, middle: Middle = "mean") -> tuple[Bar, ...]:
    """The models that have any time, in the file's order."""
    every = (_bar(file, model, corrected, middle) for model in file.models)
    return tuple(bar for bar in every if bar.parts)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


_MIDDLES: Mapping[Middle, Callable[[Sequence[float]], float]] = {
    "mean": _mean,
    "median": statistics.median,
}


def _bar(file: ResultFile, model: str, corrected: bool, middle: Middle) -> Bar:
    records = file.of(model, corrected)
    of = _MIDDLES[middle]
    spent = {str(s): [_spent(file, record, s) for record in records] for s in STAGES}
    totals = [_time(file, record, "total") for record in records]
    parts = {stage: of(some) for stage, values in spent.items() if (some := _known(values))}
    total, tokens = _known(totals), _known([record.tokens for record in records])
    if total:
        rest = [
            whole - math.fsum(_known(stages))
            for record, whole, *stages in zip(records, totals, *spent.values(), strict=True)
            if whole is not None and not record.lost
        ]
        parts[UNACCOUNTED] = max(0.0, of(rest)) if rest else 0.0
    return Bar(
        model=model,
        n=len(records),
        parts=parts,
        total=of(total) if total else None,
        tokens=of(tokens) if tokens else None,
        notes=tuple(_notes(file, records, parts)),
    )


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _time(file: ResultFile, record: AnswerRecord, part: Part) -> float | None:
    found = part_of(record, file.group, part)
    return milliseconds(*found) if found else None


def _spent(file: ResultFile, record: AnswerRecord, stage: str) -> float | None:
    for part in PARTS[stage]:
        if (found := _time(file, record, part)) is not None:
            return found
    if stage != "decode":
        return None
    made = _known([_time(file, record, "prefill"), _time(file, record, "steps")])
    return math.fsum(made) if made else None


def _notes(
    file: ResultFile, records: tuple[AnswerRecord, ...], parts: Mapping[str, float]
) -> list[str]:
    found = []
    keys = {key for record in records for key in record.times}
    known = {file.group.stages.get(key) for key in keys}
    if "load+preprocess" in known:
        found.append("load includes preprocessing: both were timed together")
    if "steps" in known and "prefill" not in known:
        found.append("decode is the token steps only")
    if "prefill" in known and not known & {"steps", "decode"}:
        found.append("decode is the prefill only")
    absent = [stage for stage in STAGES if stage not in parts]
    if "load+preprocess" in known and "preprocess" in absent:
        absent.remove("preprocess")
    if absent:
        found.append(f"not measured separately: {', '.join(absent)}")
    return found
