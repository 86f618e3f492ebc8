"""What readers say about answers: a note, a thumb up or down, kept with the run.

Boundary: one file of a run folder, appended; the last word about an answer counts.  A run that is
finished, or at work in another process, can be marked all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import BadInput, StoreError
from engine.plain_files import reason
from engine.quoting import shown
from engine.storage import json_lines
from engine.storage.json_lines import Appender, Damage
from engine.storage.plan import Task
from engine.storage.run_header import now
from engine.storage.schemas import Annotation

MARKS = "marks.jsonl"
MAX_NOTE_CHARS = 4000
Thumb = Literal["up", "down", ""]


@dataclass(frozen=True)
class Mark:
    """What stands at one answer; an empty thumb and an empty note are no mark."""

    thumb: Thumb = ""
    note: str = ""


def read(folder: Path, damage: Damage | None = None) -> dict[Task, Mark]:
    """The marks of a run, by the key of the answer they are about; StoreError."""
    found: dict[Task, Mark] = {}
    try:
        for _, line in json_lines.read(folder / MARKS, Annotation.parse, damage):
            found[line.task] = Mark(line.thumb, line.note[:MAX_NOTE_CHARS])
    except OSError as error:
        raise StoreError(
            f"The notes in {shown(folder / MARKS)} cannot be read ({reason(error)}): move this "
            "file away, or restore it from a copy."
        ) from error
    return {task: mark for task, mark in found.items() if mark != Mark()}


def problem(folder: Path) -> str:
    """What of a run's notes cannot be read, as a sentence, or nothing."""
    damage = Damage()
    try:
        read(folder, damage)
    except StoreError as error:
        return str(error)
    words = damage.told(MARKS)
    return f"{words}: they are left out." if words else ""


def put(folder: Path, task: Task, mark: Mark) -> None:
    """Replaces the mark of one answer; BadInput for a note that is too long."""
    if len(mark.note) > MAX_NOTE_CHARS:
        raise BadInput(
            f"The note has {len(mark.note):,} characters: shorten it to {MAX_NOTE_CHARS:,}."
        )
    try:
        appender = Appender(folder / MARKS)
        try:
            appender.end_torn_line()
            appender.append({"at": now(), **task._asdict(), "thumb": mark.thumb, "note": mark.note})
        finally:
            appender.close()
    except OSError as error:
        raise StoreError(
            f"The note cannot be kept in {shown(folder)} ({reason(error)}): make room and try "
            "again."
        ) from error
