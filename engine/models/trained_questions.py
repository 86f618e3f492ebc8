"""The questions that a checkpoint declares it was trained on.

A small checkpoint lists its few questions in `trained_questions.json` in its folder.  Most
checkpoints have no such file and accept any question.

Boundary: reads that one file; ModelInfo says whether a question is among them.
"""

from __future__ import annotations

from pathlib import Path

from engine.errors import ModelUnavailable
from engine.models.checkpoint_files import read_json
from engine.prompts import plain_question

FILE = "trained_questions.json"


def declared(folder: Path, name: str) -> frozenset[str] | None:
    """The trained questions as plain_question() gives them, None for a folder without the file.

    Each counts as written and in lower case, because training uses both.
    """
    path = folder / FILE
    if not path.exists():
        return None
    found = read_json(path, name).get("questions")
    if not isinstance(found, list) or not found or not all(isinstance(q, str) for q in found):
        raise ModelUnavailable(
            f"{name}: {path} has no list of texts under 'questions': copy it again."
        )
    return frozenset(plain_question(form) for q in found for form in (q, q.lower()))
