"""The answers of runs to multiple-choice questions as one JSON list, for other programs.

Neither EvQA nor EventBench defines a file to hand in (docs/accuracy.md), so this form is
StageScope's own: an object per question and model with

    id      the sample
    task    the question's task, "" if it has none
    model   the model's label as in other reports
    answer  the letter that was read from the answer; "" if it is unreadable or there is no answer
    raw     the answer as given; null if the model gave none

Of several repeats the first one with an answer counts.  The right options are not in the file.

Boundary: runs in, text out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.analysis.results_table import frame
from engine.errors import BadInput
from engine.storage.run_store import Run

if TYPE_CHECKING:
    import pandas as pd


def pieces(runs: Sequence[Run]) -> Iterator[str]:
    """The file, an object per line; BadInput for runs without multiple-choice questions."""
    found = entries(frame(runs))
    if not found:
        raise BadInput(
            "These runs have no multiple-choice questions: a submission needs records with choices."
        )
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in found)
    yield f"[\n{lines}\n]\n"


def entries(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The objects, by model in the order of the questions."""
    asked = table[(table["choices"] > 0) & (table["phase"] == "measured")]
    ordered = asked.assign(no_answer=asked["error"] != "").sort_values("no_answer", kind="stable")
    first = ordered.drop_duplicates(["label", "sample"]).sort_index()
    return [
        {
            "id": line["sample"],
            "task": line["question_task"],
            "model": line["label"],
            "answer": line["choice"],
            "raw": None if line["error"] else line["text"],
        }
        for line in first.to_dict("records")
    ]
