"""Reads a dataset's own lists within limits, and makes samples of event files.

Boundary: shared by the layouts of a dataset; opens JSON and CSV files, no media.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import BadInput, DatasetError, MediaError
from engine.media.media_files import place
from engine.media.roots import Root
from engine.plain_files import read_bytes, reason
from engine.quoting import quoted
from engine.types import Sample

MAX_LIST_BYTES = 64 << 20
MAX_RECORDS = 500_000
_EVENTS_ONLY = "It is a recording of events only: pick another sample for {} models."


@dataclass(frozen=True)
class Dataset:
    """The samples of one root in file order; clips[i] is the clip name "seq/000000" of
    samples[i].  `file` is the first list of samples, or the root of a folder without one."""

    root: Path
    samples: tuple[Sample, ...]
    file: Path
    problems: tuple[str, ...] = ()
    clips: tuple[str, ...] = ()


def text_of(file: Path) -> str:
    """The text of a list; DatasetError if it is too large or not UTF-8."""
    try:
        return _bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{place(file)} is not UTF-8 (byte {error.start:,}): save it as UTF-8."
        ) from error


def json_of(file: Path) -> Any:
    """The value in a JSON file, or DatasetError."""
    try:
        return json.loads(text_of(file))
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"{place(file)} is not readable JSON ({reason(error)}): build it again."
        ) from error


def records_of(file: Path, value: Any) -> list[Any]:
    """The records of a JSON file's list; DatasetError if it is no list, or empty, or too long."""
    name = place(file)
    if not isinstance(value, list):
        raise DatasetError(
            f"{name} holds {kind_of(value)} instead of a list of records: build it again."
        )
    if not value:
        raise DatasetError(f"{name} holds an empty list: build it again or pick another root.")
    if len(value) > MAX_RECORDS:
        raise DatasetError(
            f"{name} holds {len(value):,} records: split it into files of at most {MAX_RECORDS:,}."
        )
    return value


def kind_of(value: object) -> str:
    """What a value of a JSON file is, in words."""
    words = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number"}
    return "nothing" if value is None else words.get(type(value), "true or false")


def _bytes(file: Path) -> bytes:
    try:
        return read_bytes(file, MAX_LIST_BYTES, "The dataset file")
    except BadInput as error:
        raise DatasetError(str(error)) from error
    except OSError as error:
        raise DatasetError(
            f"{place(file)} cannot be read ({reason(error)}): restore it."
        ) from error


def unused(
    wanted: str | None, number: int, used: Set[str], problems: list[str], where: str = ""
) -> str:
    """The record's own id if it has one that is free, else one made from its number.

    `where`: how the problem names the record, if not by this number.
    """
    if wanted is not None and wanted not in used:
        return wanted
    made = f"record-{number}"
    while made in used:
        made += "+"
    has = "no usable id" if wanted is None else f"the id {quoted(wanted)} of an earlier record"
    called = where or f"Record {number:,}"
    problems.append(f"{called} has {has} and is called {made}: give it a unique id.")
    return made


def event_sample(
    root: Root,
    name: str,
    sequence: str,
    paths: Sequence[Path],
    problems: Iterable[str] = (),
    wrong: str = "",
    refused: str = "",
    **fields: Any,
) -> Sample:
    """The sample of an event file: the first of `paths` that exists and lies inside the root.

    `wrong`: why the sample cannot be shown; a problem, as those of the file are.
    `refused`: why its question cannot be asked, so that no model is shown it.
    """
    found = [*problems, *filter(None, [refused])]
    events, why = (None, wrong) if wrong else _first(root, paths)
    missing = {kind: refused or _EVENTS_ONLY.format(kind) for kind in ("video", "image")}
    if why:
        found.append(why)
    if why or refused:
        missing["events"] = refused or why
    return Sample(name, sequence, events=events, missing=missing, problems=tuple(found), **fields)


def _first(root: Root, paths: Sequence[Path]) -> tuple[Path | None, str]:
    """The first file that exists, or why it, or else the first name, cannot be used."""
    if not paths:
        return None, "The record names no event file: add it."
    path = next((path for path in paths if root.has(path)), paths[0])
    try:
        return root.file(path), ""
    except MediaError as error:
        return None, str(error)
