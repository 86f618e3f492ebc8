"""Converts records of published files, recorded or corrected, to rows like those of own runs.

Boundary: records in, frozen rows out; times are milliseconds.  Missing values are None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from engine.published.read.corrected import part_of
from engine.published.read.part_bars import PARTS
from engine.published.read.record_types import AnswerRecord, Part, ResultFile, milliseconds
from engine.types import STAGES


@dataclass(frozen=True)
class PublishedTime:
    """A stage's time.  "derived": the mean of other records in place of a warm-up, or a sum of
    parts."""

    ms: float
    source: Literal["recorded", "derived"] = "recorded"


@dataclass(frozen=True)
class PublishedRow:
    """One model's answer to one sample; `tokens_per_s` is tokens over decoding time, because these
    files have no time of the first token."""

    record: AnswerRecord
    stages: Mapping[str, PublishedTime | None]
    total_ms: float | None
    tokens_per_s: float | None


def rows(file: ResultFile, corrected: bool = True) -> list[PublishedRow]:
    """One row per sample and model."""
    return [_row(file, one) for one in (file.corrected if corrected else file.records)]


def _row(file: ResultFile, record: AnswerRecord) -> PublishedRow:
    spent = _ms(file, record, "steps") or _ms(file, record, "decode")
    return PublishedRow(
        record,
        {name: _stage(file, record, name) for name in STAGES},
        _ms(file, record, "total"),
        1000 * record.tokens / spent if spent and record.tokens else None,
    )


def _ms(file: ResultFile, record: AnswerRecord, part: Part) -> float | None:
    found = part_of(record, file.group, part)
    return milliseconds(*found) if found else None


def _stage(file: ResultFile, record: AnswerRecord, name: str) -> PublishedTime | None:
    for part in PARTS[name]:
        if found := part_of(record, file.group, part):
            mean = f"cold:{found[0]}" in record.marks
            return PublishedTime(milliseconds(*found), "derived" if mean else "recorded")
    prefill, steps = _ms(file, record, "prefill"), _ms(file, record, "steps")
    if name != "decode" or (prefill is None and steps is None):
        return None
    return PublishedTime((prefill or 0.0) + (steps or 0.0), "derived")
