"""Mean or median stage times of a file's models in ms, for bars.

A part that was not timed, or was a placeholder, is absent, never 0.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from engine.palette import UNACCOUNTED
from engine.published.read.file_forms import Part
from engine.published.read.record_types import AnswerRecord, ResultFile
from engine.types import STAGES

if TYPE_CHECKING:
    import pandas as pd

Middle = Literal["mean", "median"]
# The parts that a stage may be timed as, the first one that a record has.
PARTS: dict[str, tuple[Part, ...]] = {name: (name,) for name in STAGES}
PARTS["load"] = ("load", "load+preprocess")


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
            **{f"{name} (ms)": spent(record, name) for name in STAGES},
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


def bars(file: ResultFile, corrected: bool = True, middle: Middle = "mean") -> tuple[Bar, ...]:
    """The models that have any time, in the file's order."""
    every = (_bar(file, model, corrected, middle) for model in file.models)
    return tuple(bar for bar in every if bar.parts)


def _bar(file: ResultFile, model: str, corrected: bool, middle: Middle) -> Bar:
    records = file.of(model, corrected)
    of = statistics.median if middle == "median" else statistics.fmean
    stages = {name: [spent(record, name) for record in records] for name in STAGES}
    totals = [record.ms("total") for record in records]
    parts = {str(name): of(some) for name, values in stages.items() if (some := _known(values))}
    total, tokens = _known(totals), _known([record.tokens for record in records])
    if total:
        rest = [
            whole - math.fsum(_known(every))
            for record, whole, *every in zip(records, totals, *stages.values(), strict=True)
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


def spent(record: AnswerRecord, stage: str) -> float | None:
    """The ms of a stage; decoding can be the sum of prefill and token steps."""
    for part in PARTS[stage]:
        if (found := record.ms(part)) is not None:
            return found
    if stage != "decode":
        return None
    made = _known([record.ms("prefill"), record.ms("steps")])
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
