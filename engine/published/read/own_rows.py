"""The project's own result rows as a ResultFile, so that two models of a run can be compared as
draft and target."""

from __future__ import annotations

from collections.abc import Sequence

from engine.published.read.file_forms import Form, Part
from engine.published.read.record_types import AnswerRecord, ResultFile
from engine.storage.result_rows import ResultRow
from engine.types import STAGES

# The order in which the parts are listed.
_PARTS: tuple[Part, ...] = (*STAGES[:-1], "prefill", "steps", STAGES[-1], "total")
RUNS = Form("own runs of this project", stages={f"{name}_ms": name for name in _PARTS})


def from_rows(rows: Sequence[ResultRow], name: str, draft: str, target: str) -> ResultFile:
    """The answers of one run to compare these two models; rows of failed runs are left out."""
    records = []
    for index, row in enumerate(rows):
        if row.error:
            continue
        times = {f"{part}_ms": span.ms for part, span in row.spans.items() if span is not None}
        record = AnswerRecord(
            model=row.model,
            sample=row.sample,
            path=f"[{index}]",
            group=RUNS,
            question=row.prompt or "",
            times=times if row.total_ms is None else times | {"total_ms": row.total_ms},
            tokens=row.new_tokens,
            ids=row.token_ids,
            text=row.text,
        )
        records.append(record)
    return ResultFile(
        name=name,
        group=RUNS,
        unit="ms",
        models=tuple(dict.fromkeys(record.model for record in records)),
        records=tuple(records),
        corrected=tuple(records),
        draft=draft,
        target=target,
    )
