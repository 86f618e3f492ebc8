"""The project's own result rows in the common form, so that the same rules look at them.

Boundary: reads rows as engine.storage.result_rows writes them; rows of failed runs become failures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.published.read.record_types import (
    AnswerRecord,
    FailedSample,
    Group,
    Identity,
    ResultFile,
)
from engine.published.read.who_answered import family_of

RUNS = Group(
    "own_runs",
    "runs of this project",
    {
        "load_ms": "load",
        "preprocess_ms": "preprocess",
        "vision_ms": "vision",
        "prefill_ms": "prefill",
        "steps_ms": "steps",
        "decode_ms": "decode",
        "total_ms": "total",
    },
    has_stage_times=True,
)
Row = Mapping[str, Any]


def from_rows(rows: Sequence[Row], name: str = "own runs") -> ResultFile:
    """Rows of one run or many; the first two models are its draft and target."""
    answered = [(index, row) for index, row in enumerate(rows) if not row.get("error")]
    records = tuple(_record(row, f"[{index}]") for index, row in answered)
    models = tuple(dict.fromkeys(record.model for record in records))
    first = {str(row["model"]): row for _, row in reversed(answered)}
    return ResultFile(
        name=name,
        group=RUNS,
        status="ok" if records else "failed",
        message="" if records else f"{name} holds no answer: run it again.",
        unit="ms",
        models=models,
        records=records,
        corrected=records,
        failures=tuple(
            FailedSample(str(row.get("sample", "")), f"[{index}]", str(row["error"]))
            for index, row in enumerate(rows)
            if row.get("error")
        ),
        identities={model: _identity(first[model]) for model in models},
        draft=models[0] if len(models) > 1 else "",
        target=models[1] if len(models) > 1 else "",
    )


def _record(row: Row, path: str) -> AnswerRecord:
    ids = row.get("token_ids")
    return AnswerRecord(
        model=str(row["model"]),
        sample=str(row["sample"]),
        path=path,
        question=str(row.get("prompt") or ""),
        times=_times(row),
        sizes=_sizes(row),
        tokens=row.get("new_tokens"),
        ids=tuple(ids) if ids is not None else None,
        text=row.get("text"),
        context=row.get("context_tokens"),
        marks=frozenset(_marks(row)),
    )


def _times(row: Row) -> dict[str, float]:
    found = {}
    stages = {**(row.get("stages") or {}), "prefill": row.get("prefill"), "steps": row.get("steps")}
    for name, stage in stages.items():
        if stage is not None:
            found[f"{name}_ms"] = float(stage["ms"])
    if row.get("total_ms") is not None:
        found["total_ms"] = float(row["total_ms"])
    return found


def _sizes(row: Row) -> dict[str, float]:
    found = {}
    decode = row.get("decode_config") or {}
    for source, keys in (
        (row, ("unaccounted_ms", "ttft_ms", "tpot_ms")),
        (decode, ("max_new_tokens", "temperature", "seed")),
    ):
        for key in keys:
            if isinstance(source.get(key), (int, float)):
                found[key] = float(source[key])
    for tensor in row.get("tensors") or ():
        if tensor["name"] in ("images", "pixels") and tensor["shape"]:
            # Pictures of several sizes have an entry for each size.
            found[tensor["name"]] = found.get(tensor["name"], 0.0) + float(tensor["shape"][0])
    return found


def _marks(row: Row) -> list[str]:
    stages = [stage for stage in (row.get("stages") or {}).values() if stage]
    flags = {
        "cold": row.get("cold"),
        "cached": any(stage.get("source") == "cached" for stage in stages),
        "verified": row.get("verified"),
        f"stop:{row.get('stop')}": row.get("stop"),
    }
    return [name for name, on in flags.items() if on]


def _identity(row: Row) -> Identity:
    """The family that ran, beside what its checkpoint's and its own name speak of."""
    family = str(row.get("family") or "") or None
    checkpoint = str(row.get("checkpoint") or "")
    spoken = [one for one in (family_of(checkpoint), family_of(str(row["model"]))) if one]
    digest = f", digest {str(row['digest'])[:12]}" if row.get("digest") else ""
    evidence = f"family {family} from {checkpoint}{digest}"
    agrees = None if not spoken or family is None else all(one == family for one in spoken)
    return Identity(str(row["model"]), evidence, family, agrees)
