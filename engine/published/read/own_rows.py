"""Converts the project's own result rows to a ResultFile, so that the same rules check them.

Boundary: typed rows in, a ResultFile out; rows of failed runs become failures.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.published.read.record_types import (
    AnswerRecord,
    FailedSample,
    Group,
    Identity,
    Part,
    ResultFile,
)
from engine.published.read.who_answered import family_of
from engine.storage.result_rows import AnswerRow, Decoding
from engine.types import STAGES

# The order in which the parts are listed.
_PARTS: tuple[Part, ...] = (*STAGES[:-1], "prefill", "steps", STAGES[-1], "total")
RUNS = Group(
    "own_runs",
    "runs of this project",
    {f"{name}_ms": name for name in _PARTS},
    has_stage_times=True,
)


def from_rows(rows: Sequence[AnswerRow], name: str = "own runs") -> ResultFile:
    """Rows of one run or many; the first two models are its draft and target."""
    answered = [(index, row) for index, row in enumerate(rows) if not row.error]
    records = tuple(_record(row, f"[{index}]") for index, row in answered)
    models = tuple(dict.fromkeys(record.model for record in records))
    first = {row.model: row for _, row in reversed(answered)}
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
            FailedSample(row.sample, f"[{index}]", row.error)
            for index, row in enumerate(rows)
            if row.error
        ),
        identities={model: _identity(first[model]) for model in models},
        draft=models[0] if len(models) > 1 else "",
        target=models[1] if len(models) > 1 else "",
    )


def _record(row: AnswerRow, path: str) -> AnswerRecord:
    return AnswerRecord(
        model=row.model,
        sample=row.sample,
        path=path,
        question=row.prompt or "",
        times=_times(row),
        sizes=_sizes(row),
        tokens=row.new_tokens,
        ids=row.token_ids,
        text=row.text,
        context=row.context_tokens,
        marks=frozenset(_marks(row)),
    )


def _times(row: AnswerRow) -> dict[str, float]:
    found = {f"{name}_ms": span.ms for name, span in row.spans.items() if span is not None}
    return found if row.total_ms is None else found | {"total_ms": row.total_ms}


def _sizes(row: AnswerRow) -> dict[str, float]:
    how = row.decode_config or Decoding()
    known = {
        "unaccounted_ms": row.unaccounted_ms,
        "ttft_ms": row.ttft_ms,
        "tpot_ms": row.tpot_ms,
        "max_new_tokens": row.token_limit or how.max_new_tokens,
        "temperature": how.temperature,
        "seed": how.seed,
    }
    found = {name: float(value) for name, value in known.items() if value is not None}
    for tensor in row.tensors or ():
        if tensor.name in ("images", "pixels") and tensor.shape:
            # Pictures of several sizes have an entry for each size.
            found[tensor.name] = found.get(tensor.name, 0.0) + float(tensor.shape[0])
    return found


def _marks(row: AnswerRow) -> list[str]:
    flags = {
        "cold": row.cold,
        "cached": row.cached,
        "verified": row.verified,
        f"stop:{row.stop}": row.stop,
    }
    return [name for name, on in flags.items() if on]


def _identity(row: AnswerRow) -> Identity:
    """The family that ran, compared with the families in the names of checkpoint and model."""
    family, checkpoint = row.family or None, row.checkpoint or ""
    named = [one for one in (family_of(checkpoint), family_of(row.model)) if one]
    digest = f", digest {row.digest[:12]}" if row.digest else ""
    evidence = f"family {family} from {checkpoint}{digest}"
    agrees = None if not named or family is None else all(one == family for one in named)
    return Identity(row.model, evidence, family, agrees)
