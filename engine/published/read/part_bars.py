"""Stage times of a file's records as a table in ms, and their means or medians for bars.

A part that was not timed, or was a placeholder, is absent, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from engine.palette import UNACCOUNTED
from engine.published.read.record_types import AnswerRecord, ResultFile
from engine.types import STAGES, StageName

if TYPE_CHECKING:
    import pandas as pd

Middle = Literal["mean", "median"]


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

    rows = []
    for record in file.corrected if corrected else file.records:
        time = record.ms("steps") or record.ms("decode")
        rate = 1000 * record.tokens / time if time and record.tokens else None
        row = {
            "sample": record.sample,
            "model": record.model,
            **{f"{name} (ms)": _spent(record, name) for name in STAGES},
            "total (ms)": record.ms("total"),
            "new tokens": record.tokens,
            "tok/s": rate,
            "context": record.context,
            "answer": record.text,
            "corrected for": ", ".join(sorted(record.marks)),
            "where": record.path,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _spent(record: AnswerRecord, stage: StageName) -> float | None:
    """The ms of a stage; decoding can be the sum of prefill and token steps."""
    spent = record.ms(stage)
    if stage == "load" and spent is None:
        spent = record.ms("load+preprocess")
    if stage == "decode" and spent is None:
        made = [ms for ms in (record.ms("prefill"), record.ms("steps")) if ms is not None]
        spent = sum(made) if made else None
    return spent


def bars(file: ResultFile, corrected: bool = True, middle: Middle = "mean") -> tuple[Bar, ...]:
    """The models that have any time, in the file's order."""
    table = frame(file, corrected)
    every = []
    for model in file.models:
        records = file.of(model, corrected)
        mine = table[table["model"] == model]
        times = mine[[f"{name} (ms)" for name in STAGES]].astype(float)
        whole = mine["total (ms)"].astype(float)
        rest = (whole - times.sum(axis=1))[[not record.lost for record in records]]
        middles = zip(STAGES, times.agg(middle).tolist(), strict=True)
        parts: dict[str, float] = {name: ms for name, ms in middles if ms == ms}
        total, tokens = whole.agg(middle), mine["new tokens"].astype(float).agg(middle)
        if total == total:
            known = rest.dropna()
            parts[UNACCOUNTED] = max(0.0, float(known.agg(middle))) if len(known) else 0.0
        if parts:
            every.append(
                Bar(
                    model=model,
                    n=len(records),
                    parts=parts,
                    total=float(total) if total == total else None,
                    tokens=float(tokens) if tokens == tokens else None,
                    notes=tuple(_notes(file, records, parts)),
                )
            )
    return tuple(every)


def _notes(
    file: ResultFile, records: tuple[AnswerRecord, ...], parts: Mapping[str, float]
) -> list[str]:
    known = {file.group.stages.get(key) for record in records for key in record.times}
    together = "load+preprocess" in known
    found = {
        "load includes preprocessing: both were timed together": together,
        "decode is the token steps only": "steps" in known and "prefill" not in known,
        "decode is the prefill only": "prefill" in known and not known & {"steps", "decode"},
    }
    absent = [stage for stage in STAGES if stage not in parts
              and not (together and stage == "preprocess")]  # fmt: skip
    found[f"not measured separately: {', '.join(absent)}"] = bool(absent)
    return [note for note, holds in found.items() if holds]
