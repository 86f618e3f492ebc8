"""Runs on disk: one folder per run, written by one process at a time, read by any number.

    run.json         plan, dataset, models, code and machine: written once (Header)
    results.jsonl    one object per sample, model and repeat, locked by the process that appends
    journal.jsonl    events: started, resumed, paused, given up, stopped, finished, verdict
    summary.json     figures for other programs, written when the run is finished
    marks.jsonl      users' notes and thumbs (annotations.py)
    explanations.jsonl  which parts of the input answers rest on (explanations.py)
    details.json     the name and tags that users gave the run (annotations.py)

Every failure is a StoreError of one sentence.  The wall clock is used for names and dates only.
"""

import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from engine import plain_files
from engine.errors import StoreError
from engine.plain_files import Name
from engine.quoting import count, quoted, shown
from engine.storage import json_lines
from engine.storage import run_header as headers
from engine.storage.json_lines import Appender, DamagedLines
from engine.storage.plan import Plan, Task
from engine.storage.result_rows import ResultRow
from engine.storage.run_header import HEADER, Header, now

RESULTS, JOURNAL = "results.jsonl", "journal.jsonl"
SUMMARY = "summary.json"
RunState = Literal["running", "finished", "stopped", "unreadable"]
Stamp = tuple[tuple[str, int, int], ...]  # (file, size, time of last change)


class Event(msgspec.Struct):
    event: Name
    at: str = ""
    text: str = ""
    tasks: list[Any] | None = None


@dataclass(frozen=True)
class Run:
    """A run folder for reading; results are read on demand."""

    folder: Path
    header: Header
    state: RunState
    journal: tuple[Mapping[str, Any], ...] = ()
    lost: int = 0  # results that its summary counts, and that are gone
    damage: DamagedLines = field(default_factory=DamagedLines)
    journal_damage: DamagedLines = field(default_factory=DamagedLines)

    @property
    def id(self) -> str:
        return self.header.id

    def results(self) -> Iterator[tuple[int, ResultRow]]:
        """(offset, row) of each planned result, once, in order; `damage` has skipped lines."""
        self.damage.clear()
        with _guard(self.folder, "be read"):
            parse = _planned(self.header.plan)
            yield from json_lines.read(self.folder / RESULTS, parse, self.damage)

    def row(self, offset: int) -> ResultRow:
        """One full result with token ids and times; StoreError if none begins at this offset."""
        with _guard(self.folder, "be read"):
            found = json_lines.at(self.folder / RESULTS, offset, ResultRow.parse)
        if found is None:
            raise StoreError(f"{self.folder} has no result at byte {offset:,}: open the run again.")
        return found

    @property
    def problems(self) -> tuple[str, ...]:
        found = []
        if self.damage.torn and self.state != "running":
            found.append("The last line of results.jsonl is incomplete and is left out.")
        if self.lost:
            gone = f"{count(self.lost, 'result')} of this finished run"
            found.append(f"At least {gone} are gone from {RESULTS}: resume it to get them again.")
        clauses = (self.damage.summary(RESULTS), self.journal_damage.summary(JOURNAL))
        found += [f"{clause}; what cannot be used is left out." for clause in clauses if clause]
        return tuple(found)


@dataclass(frozen=True)
class RunInfo:
    """A line of the list of runs.  `results` includes warm-up rows; `labels` are the models' names
    for people; `settings` is Plan.settings."""

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
    labels: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


class Writer(AbstractContextManager["Writer"]):
    """Writes to a run; only one process may.  `done` holds the tasks that have a row.  `problem`
    names rows of an earlier session that cannot be read and are computed again, or ""."""

    def __init__(self, folder: Path, header: Header, results: Appender) -> None:
        self.folder, self.header = folder, header
        self.done: set[Task] = set()
        self.problem = ""
        self._results = results
        self._journal = Appender(folder / JOURNAL)

    def append(self, row: ResultRow) -> None:
        """Saves one result; after a StoreError (full disk) earlier results are intact."""
        self._check()
        with _guard(self.folder, "take the result"):
            self._results.append(row.as_dict())

    def note(self, event: str, text: str = "", **more: Any) -> None:
        with _guard(self.folder, "take a line of its journal"):
            self._journal.append({"at": now(), "event": event, "text": text, **more})

    def begin(self) -> None:
        """Removes an earlier summary, because the run continues."""
        with _guard(self.folder, "be written"):
            (self.folder / SUMMARY).unlink(missing_ok=True)

    def finish(self, summary: dict[str, Any]) -> None:
        """Writes the summary; StoreError if results were removed meanwhile."""
        self._check()
        with _guard(self.folder, "take its summary"):
            identity = {"format": headers.FORMAT, "version": headers.VERSION, "id": self.header.id}
            _write_json(self.folder / SUMMARY, identity | summary)

    def close(self) -> None:
        self._results.close()
        self._journal.close()

    def _check(self) -> None:
        if not self._results.intact():
            raise StoreError(
                f"{shown(self.folder / RESULTS)} was removed, replaced or changed while the run "
                "wrote to it: move it back if you can; --resume computes what is missing."
            )

    def __exit__(self, *exc: object) -> None:
        self.close()

    def recover(self) -> None:
        """Repairs the files: drops incomplete last lines and results that cannot be read, which are
        computed again; reads the saved tasks."""
        with _guard(self.folder, "be read"):
            dropped = self._results.cut_torn_line()
            self._journal.cut_torn_line()
            damage = DamagedLines()
            found = json_lines.read(self.folder / RESULTS, ResultRow.parse, damage)
            self.done = {row.task for _, row in found}
            if damage.broken:
                self._results.close()  # Windows replaces no open file
                json_lines.leave_out(self.folder / RESULTS, set(damage.broken))
                self._results = _locked(self.folder)
        if dropped:
            self.note(
                "torn", f"Dropped the incomplete last line of results.jsonl ({dropped:,} bytes)."
            )
        if clause := damage.summary(RESULTS):
            self.problem = f"{clause}; what is missing is computed again."
            self.note("torn", self.problem)


def create(header: Header, folder: Path) -> Writer:
    """A new run in a folder that is absent or empty."""
    with _guard(folder, "be made"):
        folder.mkdir(parents=True, exist_ok=True)
    refuse_taken(folder)
    results = _locked(folder)
    try:
        with _guard(folder, "be written"):
            _write_json(folder / HEADER, headers.as_json(header))
            return Writer(folder, header, results)
    except StoreError:
        results.close()
        raise


def refuse_taken(folder: Path) -> None:
    """StoreError if the folder for a new run contains anything."""
    with _guard(folder, "be read"):
        taken = [path.name for path in folder.iterdir()] if folder.exists() else []
    if HEADER in taken:
        raise StoreError(f"{folder} already contains a run: name a new folder, or resume that run.")
    if taken:
        raise StoreError(f"{folder} already contains {min(taken)}: name a new or an empty folder.")


def reopen(folder: Path) -> Writer:
    """A run to continue; StoreError if it is not a run, of another version, or being written."""
    header = headers.read(folder)
    results = _locked(folder)
    with ExitStack() as undo:
        undo.callback(results.close)
        with _guard(folder, "be written"):
            writer = Writer(folder, header, results)
        undo.callback(writer.close)
        writer.recover()
        undo.pop_all()
    return writer


def read(folder: Path) -> Run:
    """A run in its current state, possibly while another process writes to it."""
    header = headers.read(folder)
    with _guard(folder, "be read"):
        damage = DamagedLines()
        found = json_lines.read(folder / JOURNAL, partial(plain_files.checked, form=Event), damage)
        journal = tuple(entry for _, entry in found)
        summary = _summary(folder, header)
        state, told, lost = _state(folder, summary), summary.get("results"), 0
        if state == "finished" and isinstance(told, int):
            lost = max(0, told - json_lines.count(folder / RESULTS))
    return Run(folder, header, state, journal, lost, journal_damage=damage)


def listing(base: Path) -> tuple[RunInfo, ...]:
    """All runs below a folder, the newest first; unreadable ones with the reason."""
    try:
        folders = [path.parent for path in base.glob(f"*/{HEADER}")]
    except OSError as error:
        raise StoreError(f"The runs in {base} cannot be listed ({error.strerror}).") from error
    found = []
    for folder in folders:
        try:
            header = headers.read(folder)
            with _guard(folder, "be read"):
                results = json_lines.count(folder / RESULTS)
        except StoreError as error:
            found.append(RunInfo(folder.name, folder, "unreadable", problem=str(error)))
            continue
        plan = header.plan
        found.append(
            RunInfo(
                id=header.id,
                folder=folder,
                state=_state(folder, _summary(folder, header)),
                created=header.created,
                models=plan.models,
                dataset=header.dataset.root,
                samples=len(plan.samples),
                planned=plan.planned,
                results=results,
                labels=tuple(model.label for model in header.models),
                settings=plan.settings,
            )
        )
    return tuple(sorted(found, key=lambda info: (info.created, info.id), reverse=True))


def stamp(folder: Path, *more: str) -> Stamp:
    """Changes with the run's files, and those with these names; missing files are left out."""
    found = []
    for name in (HEADER, RESULTS, JOURNAL, SUMMARY, *more):
        with suppress(OSError):
            stat = (folder / name).stat()
            found.append((f"{folder}/{name}", stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def stamps(base: Path, *more: str) -> tuple[Stamp, ...]:
    return tuple(stamp(path.parent, *more) for path in sorted(base.glob(f"*/{HEADER}")))


def find(text: str, base: Path) -> Path:
    """The folder of a run, given by path or by name below `base`; StoreError if there is none."""
    folders = [base / Path(text).name]
    with suppress(RuntimeError):  # the home of an unknown user
        folders.insert(0, Path(text).expanduser())
    for folder in folders:
        if os.path.lexists(folder / HEADER):
            return folder
    raise StoreError(
        f"{quoted(text)} is not a run: give its folder, or the name of one in {shown(base)}."
    )


def delete(folder: Path, base: Path) -> None:
    """Removes a run for good.  StoreError if the folder is not a run directly below `base`, is a
    link, or is being written; links inside it are removed, not followed."""
    if folder.parent != base or folder.is_symlink() or not folder.is_dir():
        raise StoreError(f"{shown(folder)} is not a folder in {shown(base)}: nothing was deleted.")
    headers.read(folder)  # refuses what is not a run
    results = _locked(folder)
    try:
        try:
            (folder / HEADER).unlink()  # from now on no process takes it for a run
        finally:
            results.close()
        shutil.rmtree(folder)
    except OSError as error:
        raise StoreError(
            f"{shown(folder)} cannot be deleted ({plain_files.reason(error)}): delete what is left "
            "of this folder by hand."
        ) from error


def _locked(folder: Path) -> Appender:
    """The run's results, open and locked; StoreError if another process writes them."""
    with _guard(folder, "be locked"):
        results = Appender(folder / RESULTS)
        if not results.lock():
            results.close()
            raise StoreError(
                f"{folder} is being written by another process: wait for it, or stop it."
            )
    return results


def _summary(folder: Path, header: Header) -> dict[str, Any]:
    """The run's summary; {} without one, for a damaged one, or for that of another run."""
    try:
        data = plain_files.read_limited(folder / SUMMARY, headers.MAX_BYTES)
        found: dict[str, Any] = msgspec.json.decode(data, type=dict)
    except (OSError, *plain_files.JSON_FAULTS):
        return {}
    return found if found.get("id") == header.id else {}


def finished(folder: Path, header: Header) -> bool:
    return bool(_summary(folder, header))


def _state(folder: Path, summary: Mapping[str, Any]) -> RunState:
    if json_lines.held(folder / RESULTS):
        return "running"
    return "finished" if summary else "stopped"


def _planned(plan: Plan) -> Callable[[bytes], ResultRow]:
    """A parser of the rows that the plan asks for, each once; ValidationError for others."""
    samples, seen = set(plan.samples), set[Task]()

    def parse(line: bytes) -> ResultRow:
        row = ResultRow.parse(line)
        task = row.task
        repeats = plan.repeat if task.phase == "measured" else math.inf  # warm-ups go on counting
        if task.model not in plan.models or task.sample not in samples or task.repeat >= repeats:
            name = f"{task.model}, sample {task.sample}, repeat {task.repeat:,}"
            raise msgspec.ValidationError(f"the plan has no {quoted(name)}")
        if task in seen:
            raise msgspec.ValidationError("it repeats an earlier line")
        seen.add(task)
        return row

    return parse


def _write_json(path: Path, value: dict[str, Any]) -> None:
    plain_files.write_whole(path, json.dumps(value, indent=1, allow_nan=False).encode())


@contextmanager
def _guard(folder: Path, verb: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        name = f"{Path(error.filename).name[:40]}: " if isinstance(error.filename, str) else ""
        todo = plain_files.advice(error, "choose or repair the folder")
        if verb != "be made":
            todo += "; existing results are safe, --resume continues"
        raise StoreError(
            f"The run folder {shown(folder)} cannot {verb} ({name}{plain_files.reason(error)}): "
            f"{todo}."
        ) from error
