"""Reads files and folders into the common form.

A bad file does not stop the others: a file of another kind is "unknown", with its keys in a
message; a run that only failed is "failed" and has no figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.published.read import corrected, parsing, unread_models, who_answered
from engine.published.read.cells import brief, settings
from engine.published.read.file_forms import FAILED, NO_ROWS, UNKNOWN, form_of
from engine.published.read.file_reading import FileReading
from engine.published.read.parsing import RecordsError, parse, shown
from engine.published.read.record_types import ResultFile

Progress = Callable[[int, int, str], None]
OTHER = "choose a result file of the benchmark"
LIMIT_ROWS = 200_000  # the longest published list has 2,220
SHOWN_KEYS, SHOWN_ROW_KEYS = 3, 8


def read(paths: Iterable[Path], progress: Progress | None = None) -> tuple[ResultFile, ...]:
    """Each given file and each *.json below each given folder, in the common form.

    progress(done, all, name) is called before each file.  RecordsError if there is nothing to read:
    no path, an empty folder, or too many files.
    """
    return tuple(iterate(parsing.find(paths), progress))


def iterate(
    found: list[tuple[str, Path]], progress: Progress | None = None
) -> Iterator[ResultFile]:
    """The files one by one, so that the caller may stop in between."""
    for number, (name, path) in enumerate(found):
        if progress:
            progress(number, len(found), name)
        try:
            data = parsing.read(path, name)
        except RecordsError as error:
            yield unreadable(name, str(error))
        else:
            yield read_bytes(name, data)


def read_bytes(name: str, data: bytes) -> ResultFile:
    """A file's bytes in the common form; no content raises an exception."""
    title = shown(name)
    try:
        value = parse(data, title)
    except RecordsError as error:
        return unreadable(title, str(error), len(data))
    return read_value(title, value, len(data))


def unreadable(name: str, message: str, size: int = 0) -> ResultFile:
    """A file that could not be read, with the reason."""
    return ResultFile(name, UNKNOWN, "unknown", message, bytes=size)


def read_value(name: str, value: Any, size: int = 0) -> ResultFile:
    """A parsed JSON value in the common form."""
    rows = _most_rows(value)
    if rows > LIMIT_ROWS:
        limit = f"result files may have at most {LIMIT_ROWS:,}"
        return unreadable(name, f"{name} has a list of {rows:,} rows: {limit}.", size)
    known = form_of(value)
    if known is None:
        return unreadable(name, f"{name} is of another kind ({_keys(value)}): {OTHER}.", size)
    form, place = known
    reading = FileReading(form)
    reading.read(value, place)
    if form not in (FAILED, NO_ROWS):
        unread_models.name(value, reading)
    config = settings(value.get("config") if isinstance(value, dict) else None)
    failures = reading.cells.failures(value.get("errors") if isinstance(value, dict) else None)
    identities = who_answered.identities(reading.models, reading.claimed, reading.records, config)
    untimed = form.group.letter == "F" and not any(record.times for record in reading.records)
    common = ResultFile(
        name,
        form.group,
        unit="-" if untimed else form.unit,
        failures=failures,
        figures=tuple(reading.figures),
        claims=tuple(reading.claims),
        config=config,
        problems=tuple(reading.cells.problems),
        bytes=size,
    )
    if not reading.records:
        if form is NO_ROWS:
            why = f"{name} has no rows: its run wrote no result. Run it again."
        elif not failures:
            why = f"{name} has no usable result: check how it was written."
        else:
            every = f"all of its {len(failures):,} samples" if len(failures) > 1 else (
                "its only sample")  # fmt: skip
            why = f"{name} has no result: {every} failed. First message: {failures[0].message}."
        return replace(common, status="failed", message=why)
    return replace(
        common,
        models=tuple(reading.models),
        records=tuple(reading.records),
        corrected=corrected.corrected(reading.records, identities),
        identities=identities,
        draft=reading.draft,
        target=reading.target,
    )


def _most_rows(value: Any, depth: int = 2) -> int:
    """The length of the longest list that may contain the rows."""
    if isinstance(value, list):
        return len(value)
    inner = value.values() if isinstance(value, dict) and depth else ()
    return max((_most_rows(one, depth - 1) for one in inner), default=0)


def _keys(value: Any) -> str:
    """The keys of a file of another kind, and those of its first row, which show the models."""
    if isinstance(value, list):
        first = next((item for item in value if isinstance(item, dict)), None)
        return f"a list; {_keys(first)}" if first else "a list without known objects"
    if not isinstance(value, dict):
        kinds = {str: "text", bool: "a single true or false", type(None): "only null"}
        return kinds.get(type(value), "a single number")
    more = len(value) - SHOWN_KEYS
    rest = f" and {more:,} more" if more > 0 else ""
    description = (
        f"unknown: keys {_quoted(value, SHOWN_KEYS)}{rest}" if value else "an empty object"
    )
    for name in ("results", "samples"):
        rows = value.get(name)
        some = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        if some and some[0]:
            dots = ", ..." * (len(some[0]) > SHOWN_ROW_KEYS)
            return f"{description}; rows with {_quoted(some[0], SHOWN_ROW_KEYS)}{dots}"
    return description


def _quoted(value: dict[str, Any], most: int) -> str:
    """The first keys in quotes, to separate them from the message."""
    return ", ".join(f"'{shown(brief(key, 40))}'" for key in list(value)[:most])
