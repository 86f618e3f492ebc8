"""Runs on disk: a folder per run, written by one process at a time, read by any number.

    run.json         what was asked, of what, with what: written once (Header)
    results.jsonl    one object per sample, model and repeat, appended when it is done
    journal.jsonl    what happened: started, resumed, paused, given up, stopped, finished
    summary.json     figures, once nothing is left to do
    marks.jsonl      notes and thumbs of readers (marks.py)
    run.lock         held by the process that appends

Boundary: files and their state; what a row says is result_rows.py's, what a run does is the
benchmark room's.
Every failure is a StoreError of one sentence.  The wall clock names and dates a run; no duration
is computed from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from engine import plain_files
from engine.errors import StoreError
from engine.quoting import quoted, shown
from engine.storage import json_lines
from engine.storage import run_header as headers
from engine.storage.file_lock import FileLock, held
from engine.storage.json_lines import Appender, Damage
from engine.storage.plan import Task
from engine.storage.result_rows import ResultRow
from engine.storage.run_header import HEADER, Header, now
from engine.storage.schemas import Event, checked

RESULTS, JOURNAL = "results.jsonl", "journal.jsonl"
SUMMARY, LOCK = "summary.json", "run.lock"
RunState = Literal["running", "finished", "stopped", "unreadable"]


@dataclass(frozen=True)
class Run:
    """A run folder as it can be read; results are read when they are asked for."""

    folder: Path
    header: Header
    state: RunState
    journal: tuple[Mapping[str, Any], ...] = ()
    damage: Damage = field(default_factory=Damage)
    journal_damage: Damage = field(default_factory=Damage)

    @property
    def id(self) -> str:
        return self.header.id

    def results(self) -> Iterator[tuple[int, ResultRow]]:
        """(offset, row) of each readable result in order; `damage` then says what was left out."""
        self.damage.clear()
        with _guard(self.folder, "be read"):
            yield from json_lines.read(self.folder / RESULTS, ResultRow.parse, self.damage)

    def row(self, offset: int) -> ResultRow:
        """One whole result again, token ids and times included; StoreError if none begins there."""
        with _guard(self.folder, "be read"):
            found = json_lines.at(self.folder / RESULTS, offset, ResultRow.parse)
        if found is None:
            raise StoreError(f"{self.folder} has no result at byte {offset:,}: open the run again.")
        return found

    @property
    def problems(self) -> tuple[str, ...]:
        """What reading the results left out, as sentences."""
        found = []
        if self.damage.torn and self.state != "running":
            found.append("The last line of results.jsonl was torn and is left out.")
        told = (self.damage.told(RESULTS), self.journal_damage.told(JOURNAL))
        found += [f"{words}: they are left out." for words in told if words]
        return tuple(found)


@dataclass(frozen=True)
class RunInfo:
    """A line of the list of runs.  `results` counts warm-up rows too."""

    id: str
    folder: Path
    state: RunState
    created: str = ""
    models: tuple[str, ...] = ()
    dataset: str = ""
    samples: int = 0
    planned: int = 0
    results: int = 0
    problem: str = ""


class Writer:
    """The one process that appends to a run.  `done` holds the tasks that have a row.

    `problem` says what of an earlier sitting cannot be read and is done again, or nothing.
    """

    def __init__(self, folder: Path, header: Header, lock: FileLock) -> None:
        self.folder, self.header = folder, header
        self.done: set[Task] = set()
        self.problem = ""
        self._lock = lock
        self._results = Appender(folder / RESULTS)
        self._journal = Appender(folder / JOURNAL)

    def append(self, row: ResultRow) -> None:
        """Keeps one result; StoreError (a full disk) leaves those before it whole."""
        with _guard(self.folder, "take the result"):
            self._results.append(row.as_dict())

    def note(self, event: str, text: str = "", **more: Any) -> None:
        """One line of the journal."""
        with _guard(self.folder, "take a line of its journal"):
            self._journal.append({"at": now(), "event": event, "text": text, **more})

    def begin(self) -> None:
        """The run is at work again: an earlier summary no longer tells the whole."""
        with _guard(self.folder, "be written"):
            (self.folder / SUMMARY).unlink(missing_ok=True)

    def finish(self, summary: dict[str, Any]) -> None:
        with _guard(self.folder, "take its summary"):
            _write_json(self.folder / SUMMARY, summary)

    def close(self) -> None:
        self._results.close()
        self._journal.close()
        self._lock.release()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def recover(self) -> None:
        """After an end that may have been sudden: torn lines dropped, the kept tasks read."""
        with _guard(self.folder, "be read"):
            dropped = self._results.cut_torn_line()
            self._journal.cut_torn_line()
            damage = Damage()
            found = json_lines.read(self.folder / RESULTS, ResultRow.parse, damage)
            self.done = {row.task for _, row in found}
        if dropped:
            self.note("torn", f"The torn last line of results.jsonl ({dropped:,} bytes) dropped.")
        if words := damage.told(RESULTS):
            self.problem = f"{words}: what they were about is run again."
            self.note("torn", self.problem)


def create(header: Header, folder: Path) -> Writer:
    """A new run in a folder that is absent or empty."""
    with _guard(folder, "be made"):
        folder.mkdir(parents=True, exist_ok=True)
        taken = [path.name for path in folder.iterdir() if path.name != LOCK]
    if taken:
        raise StoreError(
            f"{folder} holds {min(taken)} already: name a folder that is not there yet, or go on "
            f"with its run by --resume."
        )
    lock = _lock(folder)
    try:
        with _guard(folder, "be written"):
            _write_json(folder / HEADER, headers.as_json(header))
            return Writer(folder, header, lock)
    except StoreError:
        lock.release()
        raise


def reopen(folder: Path) -> Writer:
    """A run that goes on; StoreError if it is no run, of another version, or at work elsewhere."""
    header = headers.read(folder)
    lock = _lock(folder)
    try:
        with _guard(folder, "be written"):
            writer = Writer(folder, header, lock)
        writer.recover()
    except StoreError:
        lock.release()
        raise
    return writer


def read(folder: Path) -> Run:
    """A run as it stands; it may be at work in another process."""
    header = headers.read(folder)
    with _guard(folder, "be read"):
        damage = Damage()
        found = json_lines.read(folder / JOURNAL, partial(checked, form=Event), damage)
        journal = tuple(entry for _, entry in found)
    return Run(folder, header, _state(folder), journal, journal_damage=damage)


def listing(base: Path) -> tuple[RunInfo, ...]:
    """Every run below a folder, the newest first; one that cannot be read says why."""
    try:
        folders = [path.parent for path in base.glob(f"*/{HEADER}")]
    except OSError as error:
        raise StoreError(f"The runs in {base} cannot be listed ({error.strerror}).") from error
    found = [_info(folder) for folder in folders]
    return tuple(sorted(found, key=lambda info: (info.created, info.id), reverse=True))


def find(text: str, base: Path) -> Path:
    """The folder of a run: a path, or the name of one below `base`; StoreError if there is none."""
    folders = [base / Path(text).name]
    with suppress(RuntimeError):  # the home of an unknown user
        folders.insert(0, Path(text).expanduser())
    for folder in folders:
        with suppress(OSError, ValueError):  # too long, a null byte, or a folder nobody may enter
            (folder / HEADER).lstat()
            return folder
    raise StoreError(
        f"{quoted(text)} is no run: give its folder, or the name of one in {shown(base)}."
    )


def _lock(folder: Path) -> FileLock:
    lock = FileLock(folder / LOCK)
    with _guard(folder, "be locked"):
        if not lock.acquire():
            raise StoreError(
                f"{folder} is being written by another process: wait for it, or stop it."
            )
    return lock


def _state(folder: Path) -> RunState:
    if held(folder / LOCK):
        return "running"
    return "finished" if (folder / SUMMARY).is_file() else "stopped"


def _info(folder: Path) -> RunInfo:
    try:
        header = headers.read(folder)
        with _guard(folder, "be read"):
            results = json_lines.count(folder / RESULTS)
    except StoreError as error:
        return RunInfo(folder.name, folder, "unreadable", problem=str(error))
    plan = header.plan
    return RunInfo(
        id=header.id,
        folder=folder,
        state=_state(folder),
        created=header.created,
        models=plan.models,
        dataset=header.dataset.root,
        samples=len(plan.samples),
        planned=plan.planned,
        results=results,
    )


def _write_json(path: Path, value: dict[str, Any]) -> None:
    plain_files.write_whole(path, json.dumps(value, indent=1, allow_nan=False).encode())


@contextmanager
def _guard(folder: Path, verb: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        name = f"{Path(error.filename).name[:40]}: " if isinstance(error.filename, str) else ""
        raise StoreError(
            f"The run folder {shown(folder)} cannot {verb} ({name}{plain_files.reason(error)}): "
            "make room or mend the folder; what it holds is kept, and --resume goes on from there."
        ) from error
