"""The questions that a checkpoint declares it was trained on.

A small checkpoint that knows few questions says so in `trained_questions.json` in its folder.  Most
checkpoints have no such file and may be asked anything.

Boundary: reads that one file; whether a question is among them is ModelInfo's to say.
"""

from __future__ import annotations

from pathlib import Path

from engine.errors import ModelUnavailable
from engine.models.checkpoint_files import read_json
from engine.prompts import plain_question

FILE = "trained_questions.json"


def declared(folder: Path, name: str) -> frozenset[str] | None:
    """The trained questions as plain_question() gives them, None for a folder without the file.

    Each counts as it is written and in lower case, which is how training varies them.
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
