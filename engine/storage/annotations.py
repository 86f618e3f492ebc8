"""Users' feedback on answers: a note, a thumb up or down, stored with the run.

Boundary: one file of a run folder, appended; the last entry for an answer counts.  Works also for a
run that is finished or is being written by another process.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import BadInput, StoreError
from engine.plain_files import reason
from engine.quoting import shown
from engine.storage import json_lines
from engine.storage.json_lines import Appender, DamagedLines
from engine.storage.plan import Task
from engine.storage.run_header import now
from engine.storage.schemas import Annotation

MARKS = "marks.jsonl"
MAX_NOTE_CHARS = 4000
Thumb = Literal["up", "down", ""]


@dataclass(frozen=True)
class Feedback:
    """The feedback on one answer; an empty thumb and note mean none."""

    thumb: Thumb = ""
    note: str = ""


def read(folder: Path, damage: DamagedLines | None = None) -> dict[Task, Feedback]:
    """The feedback of a run by task; StoreError if it cannot be read."""
    found: dict[Task, Feedback] = {}
    try:
        for _, line in json_lines.read(folder / MARKS, Annotation.parse, damage):
            found[line.task] = Feedback(line.thumb, line.note[:MAX_NOTE_CHARS])
    except OSError as error:
        raise StoreError(
            f"The notes in {shown(folder / MARKS)} cannot be read ({reason(error)}): move this "
            "file away, or restore it from a copy."
        ) from error
    return {task: feedback for task, feedback in found.items() if feedback != Feedback()}


def problem(folder: Path) -> str:
    """A sentence about notes that cannot be read, or ""."""
    damage = DamagedLines()
    try:
        read(folder, damage)
    except StoreError as error:
        return str(error)
    clause = damage.summary(MARKS)
    return f"{clause}: they are left out." if clause else ""


def put(folder: Path, task: Task, feedback: Feedback) -> None:
    """Replaces the feedback on one answer; BadInput for a note that is too long."""
    if len(feedback.note) > MAX_NOTE_CHARS:
        raise BadInput(
            f"The note has {len(feedback.note):,} characters: shorten it to {MAX_NOTE_CHARS:,}."
        )
    try:
        appender = Appender(folder / MARKS)
        try:
            appender.end_torn_line()
            appender.append(
                {"at": now(), **task._asdict(), "thumb": feedback.thumb, "note": feedback.note}
            )
        finally:
            appender.close()
    except OSError as error:
        raise StoreError(
            f"The note cannot be saved in {shown(folder)} ({reason(error)}): free disk space and "
            "try again."
        ) from error
