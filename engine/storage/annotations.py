"""Users' feedback on answers: notes, thumbs, and votes between two answers, stored with the run.

Boundary: two files of a run folder, appended; the last entry for an answer counts, and of each
visit the last vote between two answers.  Works also for a run that is finished or is being written
by another process.  A lock keeps lines of several sessions apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from engine.errors import BadInput, StoreError
from engine.plain_files import reason
from engine.quoting import shown
from engine.storage import json_lines
from engine.storage.file_lock import FileLock
from engine.storage.json_lines import Appender, DamagedLines
from engine.storage.plan import Task
from engine.storage.run_header import now
from engine.storage.schemas import Annotation, Vote

MARKS, VOTES = "marks.jsonl", "votes.jsonl"
LOCK = "marks.lock"
LOCK_S = 5.0  # seconds to wait for another session that writes a line
MAX_NOTE_CHARS = 4000
MAX_VOTES = 100_000  # lines that are read
MAX_VOTES_BYTES = 32 * 2**20
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
        raise _unreadable("notes", folder / MARKS, error) from error
    return {task: feedback for task, feedback in found.items() if feedback != Feedback()}


def votes(folder: Path, damage: DamagedLines | None = None) -> tuple[Vote, ...]:
    """The votes of a run; StoreError if they cannot be read.

    Of each visit the last one per sample and pair of answers, blind and open votes apart.
    """
    found: dict[Any, Vote] = {}
    try:
        lines = json_lines.read(folder / VOTES, Vote.parse, damage)
        for _, vote in islice(lines, MAX_VOTES):
            found[(vote.seed, vote.blind, vote.sample, vote.answers)] = vote
    except OSError as error:
        raise _unreadable("votes", folder / VOTES, error) from error
    return tuple(found.values())


def problem(folder: Path) -> str:
    """Sentences about notes or votes that cannot be read, or ""."""
    return " ".join(filter(None, (_problem(folder, MARKS, read), _problem(folder, VOTES, votes))))


def _problem(folder: Path, name: str, reader: Callable[[Path, DamagedLines], object]) -> str:
    damage = DamagedLines()
    try:
        reader(folder, damage)
    except StoreError as error:
        return str(error)
    clause = damage.summary(name)
    return f"{clause}: they are left out." if clause else ""


def put(folder: Path, task: Task, feedback: Feedback) -> None:
    """Replaces the feedback on one answer; BadInput for a note that is too long."""
    _check_note(feedback.note)
    line = {**task._asdict(), "thumb": feedback.thumb, "note": feedback.note}
    append(folder, MARKS, "note", line)


def put_vote(folder: Path, vote: Vote) -> None:
    """Adds a vote, or replaces this visit's vote; BadInput for a note that is too long."""
    _check_note(vote.note)
    path = folder / VOTES
    if path.exists() and (size := path.stat().st_size) > MAX_VOTES_BYTES:
        raise StoreError(
            f"{shown(path)} has {size:,} bytes, and at most {MAX_VOTES_BYTES:,} are used: move it "
            "away to start again."
        )
    append(folder, VOTES, "vote", msgspec.to_builtins(vote))


def _check_note(note: str) -> None:
    if len(note) > MAX_NOTE_CHARS:
        raise BadInput(f"The note has {len(note):,} characters: shorten it to {MAX_NOTE_CHARS:,}.")


def append(folder: Path, name: str, what: str, line: Mapping[str, Any]) -> None:
    """Appends a line while no other session does; StoreError if it cannot be saved."""
    lock = FileLock(folder / LOCK)
    try:
        if not lock.acquire(LOCK_S):
            raise StoreError(f"Another session is writing to {shown(folder / name)}: try again.")
        try:
            appender = Appender(folder / name)
            try:
                appender.end_torn_line()
                appender.append({"at": now(), **line})
            finally:
                appender.close()
        finally:
            lock.release()
    except OSError as error:
        raise StoreError(
            f"The {what} cannot be saved in {shown(folder)} ({reason(error)}): free disk space and "
            "try again."
        ) from error


def _unreadable(what: str, path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"The {what} in {shown(path)} cannot be read ({reason(error)}): move this file away, or "
        "restore it from a copy."
    )
