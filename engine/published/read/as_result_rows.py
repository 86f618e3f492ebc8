"""Records of published files in the form of the project's own result rows.

Boundary: the shape of engine.storage.result_rows with source "recorded"; times are milliseconds.
Missing values are None, never 0.
"""

from __future__ import annotations

from typing import Any

from engine.published.read.corrected import part_of
from engine.published.read.record_types import EOS, AnswerRecord, Part, ResultFile, milliseconds
from engine.published.read.who_answered import shown


def rows(file: ResultFile, corrected: bool = True) -> list[dict[str, Any]]:
    """One row per sample and model, with its recorded values, unit and path."""
    source = file.corrected if corrected else file.records
    return [
        row(file, record, original, corrected)
        for record, original in zip(source, file.records, strict=True)
    ]


def row(
    file: ResultFile, record: AnswerRecord, original: AnswerRecord, corrected: bool = True
) -> dict[str, Any]:
    """One record as a row; original: the same record as recorded."""
    identity = file.identities.get(record.model)
    prefill, steps = (_stage(file, record, part) for part in ("prefill", "steps"))
    total = _ms(file, record, "total")
    tokens = record.tokens
    return {
        "model": record.model,
        "family": identity.family if identity else None,
        "checkpoint": None,
        "claimed": identity.claimed if identity else record.model,
        "evidence": identity.evidence if identity else "",
        "shown_as": shown(identity, corrected) if identity else record.model,
        "sample": record.sample,
        "prompt": record.question or None,
        "text": record.text,
        "token_ids": list(record.ids) if record.ids is not None else None,
        "new_tokens": tokens,
        "stop": _stop(record),
        "context_tokens": record.context,
        "mode": "recorded elsewhere",
        "cold": "cold" in record.marks,
        "stages": {
            "load": _stage(file, record, "load") or _stage(file, record, "load+preprocess"),
            "preprocess": _stage(file, record, "preprocess"),
            "vision": _stage(file, record, "vision"),
            "decode": _decode(file, record),
        },
        "prefill": prefill,
        "steps": steps,
        "total_ms": total,
        "tokens_per_s": _rate(file, record),
        "notes": sorted(record.marks),
        "error": None,
        "source": {"file": file.name, "path": record.path, "unit": file.unit},
        "recorded": {
            "new_tokens": original.tokens,
            "context_tokens": original.context,
            "times": dict(original.times),
            "total_ms": _ms(file, original, "total"),
        },
    }


def _ms(file: ResultFile, record: AnswerRecord, part: Part) -> float | None:
    found = part_of(record, file.group, part)
    return milliseconds(*found) if found else None


def _stage(file: ResultFile, record: AnswerRecord, part: Part) -> dict[str, Any] | None:
    """A stage; its source is "derived" if the mean of other records replaces a warm-up."""
    found = part_of(record, file.group, part)
    if found is None:
        return None
    source = "derived" if f"cold:{found[0]}" in record.marks else "recorded"
    return {"ms": milliseconds(*found), "source": source, "original_ms": None}


def _decode(file: ResultFile, record: AnswerRecord) -> dict[str, Any] | None:
    """Decoding including prefill; the sum if the file separates them."""
    whole = _stage(file, record, "decode")
    prefill, steps = _ms(file, record, "prefill"), _ms(file, record, "steps")
    if whole or (prefill is None and steps is None):
        return whole
    return {"ms": (prefill or 0.0) + (steps or 0.0), "source": "derived", "original_ms": None}


def _rate(file: ResultFile, record: AnswerRecord) -> float | None:
    """Tokens per second of decoding; these files have no time to the first token."""
    spent = _ms(file, record, "steps") or _ms(file, record, "decode")
    return 1000 * record.tokens / spent if spent and record.tokens else None


def _stop(record: AnswerRecord) -> str | None:
    if not record.ids:
        return None
    return "eos" if record.ids[-1] == EOS else "length"
