"""Stage times of a file's records as a table in ms, and their means or medians for bars.

A part that was not timed, or was a placeholder, is absent, never 0.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from engine.palette import UNACCOUNTED
from engine.published.read.record_types import AnswerRecord, ResultFile
from engine.types import STAGES, StageName

if TYPE_CHECKING:
    import pandas as pd


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


def frame(file: ResultFile, corrected: bool = True) -> pd.DataFrame:
    """All records in the columns of own runs, a row per sample and model.

    Missing values are None, never 0.  tok/s is over the whole decoding time, because these files
    have no time of the first token.
    """
    import pandas as pd

    return pd.DataFrame([_row(one) for one in (file.corrected if corrected else file.records)])


def _row(record: AnswerRecord) -> dict[str, object]:
    time = record.ms("steps") or record.ms("decode")
    return {
        "sample": record.sample,
        "model": record.model,
        **{f"{name} (ms)": _spent(record, name) for name in STAGES},
        "total (ms)": record.ms("total"),
        "new tokens": record.tokens,
        "tok/s": 1000 * record.tokens / time if time and record.tokens else None,
        "context": record.context,
        "answer": record.text,
        "corrected for": ", ".join(sorted(record.marks)),
        "where": record.path,
    }


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _spent(record: AnswerRecord, stage: StageName) -> float | None:
    """The ms of a stage; decoding can be the sum of prefill and token steps."""
    spent = record.ms(stage)
    if stage == "load" and spent is None:
        return record.ms("load+preprocess")
    if stage == "decode" and spent is None:
        made = _known([record.ms("prefill"), record.ms("steps")])
        return sum(made) if made else None
    return spent


def bars(
    file: ResultFile, corrected: bool = True, middle: Literal["mean", "median"] = "mean"
) -> tuple[Bar, ...]:
    """The models that have any time, in the file's order."""
    of = statistics.median if middle == "median" else statistics.fmean
    found = []
    for model in file.models:
        records = file.of(model, corrected)
        stages = {str(name): _known(_spent(one, name) for one in records) for name in STAGES}
        parts = {name: of(values) for name, values in stages.items() if values}
        total = _known(record.ms("total") for record in records)
        tokens = _known(record.tokens for record in records)
        rest = [whole - sum(_known(_spent(record, name) for name in STAGES)) for record in records
                if not record.lost and (whole := record.ms("total")) is not None]  # fmt: skip
        if total:
            parts[UNACCOUNTED] = max(0.0, of(rest)) if rest else 0.0
        if parts:
            means = (of(total) if total else None, of(tokens) if tokens else None)
            found.append(Bar(model, len(records), parts, *means, _notes(file, records, parts)))
    return tuple(found)


def _notes(
    file: ResultFile, records: Iterable[AnswerRecord], parts: Mapping[str, float]
) -> tuple[str, ...]:
    known = {file.group.stages.get(key) for record in records for key in record.times}
    together = "load+preprocess" in known
    absent = [stage for stage in STAGES if stage not in parts
              and not (together and stage == "preprocess")]  # fmt: skip
    notes = {
        "load includes preprocessing: both were timed together": together,
        "decode is the token steps only": "steps" in known and "prefill" not in known,
        "decode is the prefill only": "prefill" in known and not known & {"steps", "decode"},
        f"not measured separately: {', '.join(absent)}": bool(absent),
    }
    return tuple(note for note, holds in notes.items() if holds)
