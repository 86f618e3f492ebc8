"""The name and tags that users give a run, and the baseline, which other runs are compared with.

    details.json     in a run's folder: name and tags
    baseline.json    in the runs folder: the name of the baseline's folder

A damaged file counts as absent and is reported in one sentence.
"""

import os
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from engine import plain_files
from engine.errors import BadInput, StoreError
from engine.quoting import shown
from engine.storage.run_header import HEADER

DETAILS, BASELINE = "details.json", "baseline.json"
MAX_NAME_CHARS, MAX_TAG_CHARS, MAX_TAGS = 80, 30, 8
MAX_BYTES = 2**16
WRITABLE = "make its folder writable"
S = TypeVar("S", bound=Struct)


class RunDetails(Struct, frozen=True):
    """What users call a run; an empty name means that it has none."""

    name: Annotated[str, Meta(max_length=MAX_NAME_CHARS)] = ""
    tags: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=MAX_TAG_CHARS)], ...],
        Meta(max_length=MAX_TAGS),
    ] = ()


NONE = RunDetails()


class _Baseline(Struct, frozen=True):
    run: Annotated[str, Meta(min_length=1, max_length=255)]


def read(folder: Path) -> tuple[RunDetails, str]:
    """A run's details, and a sentence if their file cannot be used."""
    found, problem = _read(folder / DETAILS, RunDetails)
    return found or NONE, problem


def cleaned(name: str, tags: tuple[str, ...]) -> RunDetails:
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


def put(folder: Path, details: RunDetails) -> None:
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
        raise plain_files.not_written(base / BASELINE, error, WRITABLE) from error


def _plain(text: str) -> str:
    return " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())


def _read(path: Path, form: type[S]) -> tuple[S | None, str]:
    if not os.path.lexists(path):
        return None, ""
    try:
        what, error = "The file", StoreError
        return plain_files.read_json(path, MAX_BYTES, what, form, links=False, error=error), ""
    except StoreError as problem:
        return None, f"{problem} It is ignored until then."


def _write(path: Path, value: Struct) -> None:
    try:
        plain_files.write_whole(path, msgspec.json.encode(value))
    except OSError as error:
        raise plain_files.not_written(path, error, WRITABLE) from error
