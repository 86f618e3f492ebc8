"""Users' feedback on answers: notes, thumbs, and votes between two answers, stored with the run.
Two files are appended, also of a run that is being written; the last entry for an answer counts,
and of each visit the last vote between two answers."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from engine.errors import BadInput, StoreError
from engine.plain_files import Name, Repeat, advice, reason
from engine.quoting import shown
from engine.storage import json_lines
from engine.storage.json_lines import Appender, DamagedLines
from engine.storage.plan import Phase, Task
from engine.storage.run_header import now

MARKS, VOTES = "marks.jsonl", "votes.jsonl"
LOCK_S = 5.0  # seconds to wait for another session that writes a line
MAX_NOTE_CHARS = 4000
MAX_VOTES = 100_000  # lines that are read
MAX_VOTES_BYTES = 32 * 2**20
Thumb = Literal["up", "down", ""]
Choice = Literal["first", "second", "both", "neither"]  # of a vote
T = TypeVar("T")


@dataclass(frozen=True)
class Feedback:
    """The feedback on one answer; an empty thumb and note mean none."""

    thumb: Thumb = ""
    note: str = ""


class Annotation(Struct, frozen=True):
    """A line of marks.jsonl: a user's thumb and note on an answer."""

    model: Name
    sample: Name
    repeat: Repeat
    phase: Phase
    thumb: Thumb
    note: str

    @property
    def task(self) -> Task:
        return Task(self.model, self.sample, self.repeat, self.phase)


class VotedAnswer(Struct, frozen=True, order=True):
    """An answer of a vote: the run's id, the model and the repeat; the vote has the sample."""

    run: Name
    model: Name
    repeat: Repeat


class Vote(Struct, frozen=True):
    """A line of votes.jsonl: which of two answers about a sample a visitor prefers.  `blind`: the
    names were hidden when the visitor chose.  `visit`: a number of the session."""

    sample: Name
    answers: tuple[VotedAnswer, VotedAnswer]  # in their own order, not that of the screen
    choice: Choice
    blind: bool
    visit: Annotated[int, Meta(ge=0, lt=2**32)]


def read(folder: Path, damage: DamagedLines | None = None) -> dict[Task, Feedback]:
    """The feedback of a run by task; StoreError if it cannot be read."""
    found = {
        line.task: Feedback(line.thumb, line.note[:MAX_NOTE_CHARS])
        for line in lines(folder, MARKS, "notes", Annotation, damage)
    }
    return {task: feedback for task, feedback in found.items() if feedback != Feedback()}


def votes(folder: Path, damage: DamagedLines | None = None) -> tuple[Vote, ...]:
    """The votes of a run; StoreError if they cannot be read.  Of each visit the last one per sample
    and pair of answers, blind and open votes apart."""
    every = islice(lines(folder, VOTES, "votes", Vote, damage), MAX_VOTES)
    found = {(vote.visit, vote.blind, vote.sample, vote.answers): vote for vote in every}
    return tuple(found.values())


def problem(folder: Path) -> str:
    """Sentences about notes or votes that cannot be read, or ""."""
    return " ".join(filter(None, (of_file(folder, MARKS, read), of_file(folder, VOTES, votes))))


def of_file(folder: Path, name: str, reader: Callable[[Path, DamagedLines], object]) -> str:
    """A sentence about what `reader` cannot read of a file, or ""."""
    damage = DamagedLines()
    try:
        reader(folder, damage)
    except StoreError as error:
        return str(error)
    clause = damage.summary(name)
    return f"{clause}; what cannot be used is left out." if clause else ""


def put(folder: Path, task: Task, feedback: Feedback) -> None:
    """Replaces the feedback on one answer; BadInput for a note that is too long."""
    if (size := len(feedback.note)) > MAX_NOTE_CHARS:
        raise BadInput(f"The note has {size:,} characters: shorten it to {MAX_NOTE_CHARS:,}.")
    line = {**task._asdict(), "thumb": feedback.thumb, "note": feedback.note}
    append(folder, MARKS, "note", line)


def put_vote(folder: Path, vote: Vote) -> None:
    """Adds a vote, or replaces this visit's vote."""
    append(folder, VOTES, "vote", msgspec.to_builtins(vote), MAX_VOTES_BYTES)


def append(folder: Path, name: str, what: str, line: Mapping[str, Any], most: float = inf) -> None:
    """Appends a line while no other session does; StoreError if it cannot be saved, or if the file
    has more than `most` bytes."""
    path = folder / name
    try:
        if path.exists() and (size := path.stat().st_size) > most:
            raise StoreError(
                f"{shown(path)} has {size:,} bytes, and at most {most:,} are used: move it away "
                "to start again."
            )
        with closing(Appender(path)) as appender:
            if not appender.lock(LOCK_S):
                raise StoreError(f"Another session is writing to {shown(path)}: try again.")
            appender.end_torn_line()
            appender.append({"at": now(), **line})
    except OSError as error:
        raise StoreError(
            f"The {what} cannot be saved in {shown(error.filename or folder)} ({reason(error)}): "
            f"{advice(error, 'make it a regular file that can be written')} and try again."
        ) from error


def lines(
    folder: Path, name: str, what: str, form: type[T], damage: DamagedLines | None = None
) -> Iterator[T]:
    """The lines of a run's file; StoreError if it cannot be read."""
    parse = msgspec.json.Decoder(form).decode
    try:
        yield from (line for _, line in json_lines.read(folder / name, parse, damage))
    except OSError as error:
        raise StoreError(
            f"The {what} in {shown(folder / name)} cannot be read ({reason(error)}): move this "
            "file away, or restore it from a copy."
        ) from error
