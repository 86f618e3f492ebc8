"""Reads untrusted files and folders into the common form.  A bad file does not stop the others: one
of another kind is "unknown", with its keys in a message, and a run that only failed is "failed"."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import plain_files
from engine.errors import BadInput
from engine.published.read import corrected, who_answered
from engine.published.read.cells import MOST, brief, is_number, quoted
from engine.published.read.file_forms import NO_ROWS, UNKNOWN, flat, form_of
from engine.published.read.file_reading import FileReading
from engine.published.read.record_types import Identity, ResultFile
from engine.quoting import one_line

Progress = Callable[[int, int, str], None]
Found = tuple[str, Path]  # the shown name and the path of a file
MEGABYTE = 2**20
LIMIT_BYTES = 64 * MEGABYTE  # the largest published file has 3 MB
LIMIT_FILES = 5_000
LIMIT_ROWS = 200_000  # the longest published list has 2,220
SHOWN_KEYS = 6
_HALF = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")  # of a surrogate pair in JSON


class RecordsError(BadInput):
    """A result file cannot be read."""


def read(found: Iterable[Found], progress: Progress | None = None) -> Iterator[ResultFile]:
    """The files in the common form, one by one; progress(done, all, name) is called before each."""
    every = list(found)
    for number, (name, path) in enumerate(every):
        if progress:
            progress(number, len(every), name)
        try:
            yield read_bytes(name, data_of(path, name))
        except RecordsError as error:
            yield unreadable(name, str(error))


def find(paths: Iterable[Path]) -> list[Found]:
    """Each given file, and each *.json below each given folder, sorted.  Links are not followed out
    of a folder.  RecordsError for a folder without JSON files."""
    found: dict[Path, str] = {}
    for path in paths:
        try:
            is_folder = path.is_dir()
        except OSError:  # a name that no file can have; reading it says why
            is_folder = False
        if not is_folder:
            found.setdefault(path, shown(str(path)))
            continue
        files = [Path(base, file) for base, _, names in sorted(os.walk(path, followlinks=False))
                 for file in sorted(names) if file.lower().endswith(".json")]  # fmt: skip
        inside = [file for file in files if not file.is_symlink()]
        if not inside:
            raise RecordsError(f"{shown(str(path))} holds no .json file: choose another folder.")
        for file in inside:
            found.setdefault(file, shown(str(file.relative_to(path))))
    if len(found) > LIMIT_FILES:
        what = f"{len(found):,} files are more than {LIMIT_FILES:,}"
        raise RecordsError(f"{what}: choose a smaller folder.")
    return [(name, path) for path, name in found.items()]


def data_of(path: Path, name: str) -> bytes:
    """The bytes of a regular file, or RecordsError; a file over the limit is not opened."""
    try:
        _check_size(path.stat().st_size, name)
        return plain_files.read_limited(path, LIMIT_BYTES)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        reason = plain_files.reason(error)
        raise RecordsError(f"{name} cannot be read ({reason}): check the path.") from error


def _check_size(size: int, name: str) -> None:
    if size > LIMIT_BYTES:
        limit = f"result files of at most {LIMIT_BYTES // MEGABYTE} MB are read"
        raise RecordsError(f"{name} has {size / MEGABYTE:,.0f} MB: {limit}.")


def shown(name: str, most: int = 120) -> str:
    """A name to show: only its last part if it is absolute or has "..", no control characters."""
    text = name.replace("\\", "/")
    if ".." in text.split("/") or text.startswith("/"):
        text = text.rsplit("/", 1)[-1]
    return one_line(text)[-most:] or "file"


def read_bytes(name: str, data: bytes) -> ResultFile:
    """A file's bytes in the common form; no content raises an exception."""
    title = shown(name)
    try:
        return _read(title, _parsed(data, title))
    except RecordsError as error:
        return unreadable(title, str(error))


def unreadable(name: str, message: str) -> ResultFile:
    return ResultFile(name, UNKNOWN, "unknown", message)


def _parsed(data: bytes, name: str) -> Any:
    """The JSON value in these bytes, or RecordsError.  NaN and Infinity become floats; a lone half
    of a surrogate pair, which no page can contain, becomes the replacement character."""
    _check_size(len(data), name)
    try:
        value = json.loads(data)
        if _HALF.search(data) or b"\0" in data[:4]:  # UTF-16 or UTF-32: the pattern cannot match
            text = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
            value = json.loads(text.decode("utf-16-le", "replace"))
    except (ValueError, RecursionError) as error:
        why = plain_files.reason(error) if data.strip() else "it is empty"
        raise RecordsError(f"{name} is not JSON ({why}): copy the whole file again.") from error
    return value


def _read(name: str, value: Any) -> ResultFile:
    rows = _most_rows(value)
    if rows > LIMIT_ROWS:
        limit = f"result files may have at most {LIMIT_ROWS:,}"
        raise RecordsError(f"{name} has a list of {rows:,} rows: {limit}.")
    known = form_of(value)
    if known is None:
        kind = f"of another kind ({_keys(value)})"
        raise RecordsError(f"{name} is {kind}: choose a result file of the benchmark.")
    form, place = known
    reading = FileReading(form)
    reading.read(value, place)
    top = value if isinstance(value, dict) else {}
    config = {
        key: quoted(one) if is_number(one) and not abs(one) < MOST else one
        for key, one in flat(top.get("config")).items()
        if not isinstance(one, (list, dict))
    }
    timed = any(record.times for record in reading.records) or not reading.records
    failures = reading.cells.failures(top.get("errors"))
    file = ResultFile(
        name,
        form,
        unit=form.unit if timed else "-",
        failures=failures,
        figures=tuple(reading.figures),
        claims=tuple(reading.claims),
        config=config,
        problems=tuple(reading.cells.problems.values()),
    )
    if not reading.records:
        why = "no usable result: check how it was written"
        if form is NO_ROWS:
            why = "no rows: its run wrote no result. Run it again"
        elif failures:
            every = f"all of its {len(failures):,} samples" if failures[1:] else "its only sample"
            why = f"no result: {every} failed. First message: {failures[0].message}"
        return replace(file, status="failed", message=f"{name} has {why}.")
    models, claimed = reading.models, reading.claimed
    identities = {one: Identity(one, "the form of the file is unknown") for one in models}
    if form.is_known:
        identities = who_answered.identities(models, claimed, reading.records, config)
    return replace(
        file,
        models=tuple(models),
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


def _keys(value: Any, rows: bool = True) -> str:
    """The keys of a file of another kind, and those of its first row, which show the models."""
    if isinstance(value, list) and value and rows:
        return f"a list with {_keys(value[0], False)}"
    if not isinstance(value, dict) or not value:
        return "an empty object" if value == {} else f"only {quoted(value)}"
    names = [f"'{shown(brief(key, 40))}'" for key in value]
    more = f" and {len(names) - SHOWN_KEYS:,} more" if len(names) > SHOWN_KEYS else ""
    listed, first = value.get("results") or value.get("samples"), ""
    if rows and isinstance(listed, list) and listed:
        first = f"; rows with {_keys(listed[0], False)}"
    return f"keys {', '.join(names[:SHOWN_KEYS])}{more}{first}"
