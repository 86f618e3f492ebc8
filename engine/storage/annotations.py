"""What users say of a run and of its answers, stored with the run; and which run they compare with.

    marks.jsonl      notes and thumbs; the last entry for an answer counts
    votes.jsonl      votes between two answers; of each visit the last one counts
    details.json     name and tags
    baseline.json    in the runs folder: the folder of the run that others are compared with

The first two are appended, also of a run that is being written.  A damaged one of the last two
counts as absent and is reported in one sentence.
"""

import os
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
from engine.plain_files import Name, Repeat, advice, not_written, read_json, reason, write_whole
from engine.quoting import shown
from engine.storage import json_lines
from engine.storage.json_lines import Appender, DamagedLines
from engine.storage.plan import Phase, Task
from engine.storage.run_header import HEADER, now

MARKS, VOTES = "marks.jsonl", "votes.jsonl"
DETAILS, BASELINE = "details.json", "baseline.json"
LOCK_S = 5.0  # seconds to wait for another session that writes a line
MAX_NOTE_CHARS = 4000
MAX_VOTES = 100_000  # lines that are read
MAX_VOTES_BYTES = 32 * 2**20
MAX_NAME_CHARS, MAX_TAG_CHARS, MAX_TAGS = 80, 30, 8
MAX_DETAILS_BYTES = 2**16
WRITABLE = "make its folder writable"
Thumb = Literal["up", "down", ""]
Choice = Literal["first", "second", "both", "neither"]  # of a vote
T = TypeVar("T")
S = TypeVar("S", bound=Struct)


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


class RunDetails(Struct, frozen=True):
    """What users call a run; an empty name means that it has none."""

    name: Annotated[str, Meta(max_length=MAX_NAME_CHARS)] = ""
    tags: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=MAX_TAG_CHARS)], ...],
        Meta(max_length=MAX_TAGS),
    ] = ()


NO_DETAILS = RunDetails()


class _Baseline(Struct, frozen=True):
    run: Annotated[str, Meta(min_length=1, max_length=255)]


def details(folder: Path) -> tuple[RunDetails, str]:
    """A run's details, and a sentence if their file cannot be used."""
    found, problem = _read(folder / DETAILS, RunDetails)
    return found or NO_DETAILS, problem


def cleaned_details(name: str, tags: tuple[str, ...]) -> RunDetails:
    """Details without characters that cannot be printed and without repeated tags; BadInput if they
    are too many or too long."""
    name, tags = _plain(name), tuple(dict.fromkeys(filter(None, map(_plain, tags))))
    if len(name) > MAX_NAME_CHARS:
        raise BadInput(f"The name has {len(name):,} characters: shorten it to {MAX_NAME_CHARS}.")
    if len(tags) > MAX_TAGS:
        raise BadInput(f"{len(tags):,} tags are too many: a run has at most {MAX_TAGS}.")
    if long := [tag for tag in tags if len(tag) > MAX_TAG_CHARS]:
        raise BadInput(
            f"The tag {shown(long[0])} has {len(long[0]):,} characters: shorten it to "
            f"{MAX_TAG_CHARS}."
        )
    return RunDetails(name, tags)


def put_details(folder: Path, details: RunDetails) -> None:
    """Replaces a run's details; StoreError if they cannot be written."""
    _write(folder / DETAILS, details)


def baseline(base: Path) -> tuple[str, str]:
    """The folder name of the baseline or "", and a sentence if the file cannot be used."""
    found, problem = _read(base / BASELINE, _Baseline)
    return found.run if found else "", problem


def pin(base: Path, name: str) -> None:
    """Makes the run in the folder `name` the only baseline."""
    if Path(name).name != name or not (base / name / HEADER).is_file():
        raise StoreError(f"{shown(name)} is not a run in {shown(base)}: choose one of the list.")
    _write(base / BASELINE, _Baseline(name))


def unpin(base: Path) -> None:
    try:
        (base / BASELINE).unlink(missing_ok=True)
    except OSError as error:
        raise not_written(base / BASELINE, error, WRITABLE) from error


def _plain(text: str) -> str:
    return " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())


def _read(path: Path, form: type[S]) -> tuple[S | None, str]:
    if not os.path.lexists(path):
        return None, ""
    try:
        what, error = "The file", StoreError
        return read_json(path, MAX_DETAILS_BYTES, what, form, links=False, error=error), ""
    except StoreError as problem:
        return None, f"{problem} It is ignored until then."


def _write(path: Path, value: Struct) -> None:
    try:
        write_whole(path, msgspec.json.encode(value))
    except OSError as error:
        raise not_written(path, error, WRITABLE) from error
