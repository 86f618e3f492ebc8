"""The questions and inputs that a checkpoint declares it was trained on.

A small checkpoint lists its few questions in `trained_questions.json` in its folder, and what it
was shown ("inputs") if that was more than one thing.  Most checkpoints have no such file and accept
any question.

Boundary: reads that one file; ModelInfo says whether a question is among them.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from engine.errors import ModelUnavailable
from engine.models.checkpoint_files import read_if_there, read_json
from engine.prompts import plain_question
from engine.types import MediaKind

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


def inputs(folder: Path, name: str) -> frozenset[MediaKind]:
    """The inputs that the file lists; empty if it lists none."""
    listed = read_if_there(folder / FILE, name).get("inputs", [])
    return frozenset(kind for kind in get_args(MediaKind) if kind in listed)
