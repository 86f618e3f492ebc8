"""Finds the arrays of events in an HDF5 file, without leaving the file.

A file may link to other files, keep its numbers in them, or declare types and sizes that cost
memory.  Only arrays that are part of the file itself, of plain numbers and in chunks of limited
size are accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import MediaError
from engine.media.media_files import large
from engine.media.readers.column_names import known
from engine.quoting import listed, quoted

MAX_DEPTH = 4
MAX_NODES = 512
MAX_CHUNK = 64 << 20  # bytes
CACHE = 16 << 20  # bytes of decoded chunks per array
ECF = 0x8ECF  # Prophesee's filter, of which no free decoder is packaged
USED = "events"  # the group that is read if several hold events
ADVICE = "give one with the arrays x, y, t and p in one group"


@dataclass(frozen=True, eq=False)
class Table:
    """The columns x, y, t and p in one place of a file: arrays, or the fields of one array."""

    place: str
    count: int
    arrays: Mapping[str, Any]
    fields: Mapping[str, str]

    def read(self, column: str, first: int, last: int) -> np.ndarray[Any, np.dtype[Any]]:
        found = self.arrays[column][first:last]
        return np.ascontiguousarray(found[self.fields[column]]) if self.fields else found

    def dtype(self, column: str) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.arrays[column].dtype
        return dtype[self.fields[column]] if self.fields else dtype

    def block(self) -> int:
        chunks = self.arrays["t"].chunks
        return max(int(chunks[0]), 1) if chunks else 4096


def library(name: str, file_name: str) -> Any:
    """A library of the extra `events`; MediaError with the line that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MediaError(
            f"{file_name} needs the library {name}, which cannot be imported: run "
            "`pip install -r requirements-events.txt`."
        ) from error


@contextmanager
def opened(path: Path, name: str) -> Iterator[Any]:
    """The file as an h5py.File; its errors are raised as MediaError until it is closed."""
    h5py = library("h5py", name)
    library("hdf5plugin", name)  # registers Blosc and others with h5py
    large(path, None)
    how = {"rdcc_nbytes": CACHE, "locking": False}
    with _readable(name, OSError, RuntimeError), h5py.File(path, "r", **how) as file:
        yield file


@contextmanager
def _readable(name: str, *faults: type[Exception]) -> Iterator[None]:
    try:
        yield
    except faults as error:
        raise MediaError(
            f"{name} could not be read as HDF5: it is damaged or cut off, copy it again."
        ) from error


def table(file: Any, name: str) -> Table:
    """The events of a file; MediaError if it has none, or several recordings."""
    seen: list[str] = []
    with _readable(name, KeyError, TypeError, ValueError):  # of damaged names and types
        places = list(_places(file, "", 0, seen, name))
    chosen = [place for place in places if place.place.split("/")[0] == USED] or places
    if not chosen:
        links = [path for path in seen if type(file.get(path, getlink=True)).__name__ != "HardLink"]
        if links:  # behind which the events may be
            raise MediaError(
                f"{name} has links to another place ({listed(links)}), which are not followed: "
                "write the arrays x, y, t and p themselves."
            )
        found = f"found: {listed(seen)}" if seen else "it is empty"
        raise MediaError(f"{name} has no group with the arrays x, y, t and p ({found}): {ADVICE}.")
    if len(chosen) > 1:
        found = listed(place.place or "/" for place in chosen)
        raise MediaError(
            f"{name} holds {len(chosen)} recordings ({found}): write one to a file of its own."
        )
    return chosen[0]


def child(group: Any, key: str, name: str) -> Any:
    """A member of a group that is part of this file; None without one."""
    link = group.get(key, getlink=True)
    if link is None:
        return None
    if type(link).__name__ != "HardLink":
        raise MediaError(
            f"{name} has a link to another place at {quoted(key)}, which is not followed: copy it "
            "with `h5repack` or write the arrays themselves."
        )
    return group[key]


def plain(array: Any, key: str, name: str) -> Any:
    """The array itself, if it is of plain numbers and stored in this file."""
    if not hasattr(array, "is_virtual"):
        raise MediaError(f"{name} has no array at {quoted(key)}, but something else: {ADVICE}.")
    what = f"{name} has the array {quoted(key)}"
    if array.is_virtual or array.external:
        raise MediaError(f"{what} in another file, which is not read: write its numbers here.")
    properties = array.id.get_create_plist()
    for number in range(properties.get_nfilters()):
        code = int(properties.get_filter(number)[0])
        if code == ECF:
            raise MediaError(
                f"{name} is a Prophesee .hdf5 recording (ECF compression), which is not read: "
                "give the .raw it was made from, or convert it to .raw, .dat or CSV with "
                "Prophesee's Metavision SDK."
            )
        if not library("h5py", name).h5z.filter_avail(code):
            raise MediaError(
                f"{what} in an unknown compression (filter {code}): use Blosc or gzip."
            )
    fields = array.dtype.names
    types = [array.dtype[field] for field in fields] if fields else [array.dtype]
    if any(one.kind not in "biuf" or one.subdtype or one.itemsize > 8 for one in types):
        raise MediaError(f"{what} of type {quoted(str(array.dtype))}: give plain numbers.")
    chunk = int(np.prod(array.chunks or (1,), dtype=np.float64)) * array.dtype.itemsize
    if chunk > MAX_CHUNK:
        raise MediaError(
            f"{what} in chunks of {chunk:,} bytes: write chunks of at most {MAX_CHUNK:,} bytes."
        )
    if array.size and not array.id.get_storage_size() and properties.get_layout():
        raise MediaError(f"{what} of {array.size:,} values, but none was written: copy it again.")
    return array


def _places(group: Any, place: str, depth: int, seen: list[str], name: str) -> Iterator[Table]:
    """All places that hold events, below a group; `seen` collects every name."""
    members = {key: None for _, key in zip(range(MAX_NODES), group, strict=False)}
    columns = known(members)
    if len(columns) == 4:
        arrays = {
            column: _of_one_axis(child(group, key, name), f"{place}/{key}".lstrip("/"), name)
            for column, key in columns.items()
        }
        lengths = {key: len(array) for key, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            sizes = ", ".join(f"{key} {length:,}" for key, length in sorted(lengths.items()))
            raise MediaError(f"{name} has columns of different lengths ({sizes}): record it again.")
        yield Table(place, lengths["t"], arrays, {})
        return
    for key in members:
        seen.append(path := f"{place}/{key}".lstrip("/"))
        if len(seen) > MAX_NODES:
            raise MediaError(f"{name} has more than {MAX_NODES} groups and arrays: {ADVICE}.")
        if type(group.get(key, getlink=True)).__name__ != "HardLink":
            continue  # refused only where it is needed
        member = group[key]
        if hasattr(member, "keys") and depth < MAX_DEPTH:
            yield from _places(member, path, depth + 1, seen, name)
        elif (
            len(columns := known(getattr(getattr(member, "dtype", None), "names", None) or ())) == 4
        ):
            array = _of_one_axis(member, path, name)
            yield Table(path, len(array), dict.fromkeys("xytp", array), columns)


def _of_one_axis(array: Any, key: str, name: str) -> Any:
    found = plain(array, key, name)
    if found.ndim != 1:
        raise MediaError(
            f"{name} has {quoted(key)} of shape {quoted(found.shape)}: give one value per event."
        )
    return found
