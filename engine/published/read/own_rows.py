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
    records = tuple(
        AnswerRecord(
            model=row.model,
            sample=row.sample,
            path=f"[{index}]",
            group=RUNS,
            question=row.prompt or "",
            times={f"{part}_ms": ms for part, ms in (("total", row.total_ms), *(
                (part, span.ms) for part, span in row.spans.items() if span)) if ms is not None},
            tokens=row.new_tokens,
            ids=row.token_ids,
            text=row.text,
        )
        for index, row in enumerate(rows)
        if not row.error
    )  # fmt: skip
    models = tuple(dict.fromkeys(record.model for record in records))
    return ResultFile(name, RUNS, unit="ms", models=models, records=records, corrected=records,
                      draft=draft, target=target)  # fmt: skip
