"""Reads HDF5 recordings: DSEC's, and those with the arrays x, y, t and p in a group.

Format of DSEC (dsec.ifi.uzh.ch/data-format): events/{p,t,x,y}, `t_offset` that is added to t, and
`ms_to_idx` with the first event of each millisecond (without the offset).  A `rectify_map.h5` in
the same folder says where each pixel is seen without the lens's distortion, [H, W, 2] as (x, y).
Other files: the arrays in any one group or in one compound array, under the usual names.

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
import numpy.typing as npt

from engine.errors import MediaError
from engine.media.event_columns import MAX_SIDE, MAX_US, Columns, Numbers, Times, refuse_many
from engine.media.media_files import large
from engine.media.readers.column_names import MICROSECONDS, UNITS, known, microseconds
from engine.media.readers.column_names import unit as known_unit
from engine.media.recording import BLOCK, ByPosition, Recording
from engine.quoting import listed, quoted

RECTIFY_MAP = "rectify_map"
DSEC_SIZE = (640, 480)
EDGE = 1 << 14  # events at either end that decide the unit
MAX_UNIT = 64  # bytes of the attribute
MAX_DEPTH = 4
MAX_NODES = 512
MAX_CHUNK = 64 << 20  # bytes
CACHE = 16 << 20  # bytes of decoded chunks per array
ECF = 0x8ECF  # Prophesee's filter, of which no free decoder is packaged
USED = "events"  # the group that is read if several hold events
ADVICE = "give one with the arrays x, y, t and p in one group"


@dataclass(frozen=True)
class Clock:
    """Microseconds of a stored time: value * factor + offset."""

    factor: float = 1.0
    offset: int = 0
    note: str = ""
    floats: bool = False  # whole numbers as floats, without a unit


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    with file_of(path, name) as file:
        table = table_of(file, name)
        if not table.count:
            raise MediaError(f"{name} holds 0 events: pick another recording.")
        offset, index = _offset(file, name), child(file, "ms_to_idx", name)
        size = _size(file, table)
        if offset is None and index is None:
            yield _Hdf5(table, _clock(table, name), size, name)
            return
        if index is not None:
            index = plain(index, "ms_to_idx", name)
        if not table.fields and (stated := _unit(table.arrays["t"], name)) not in ("", "us"):
            raise MediaError(
                f"{name} has the form of DSEC, but states its times in {stated}: give microseconds."
            )
        if table.read("t", 0, 0).dtype.kind not in "iu":
            raise MediaError(
                f"{name} has the form of DSEC, but times with fractions: give microseconds."
            )
        rectify = _rectify_map(path.with_name(f"{RECTIFY_MAP}.h5"), name)
        if size is None and rectify is None:  # others use DSEC's layout with larger sensors too
            largest = (int(table.read(column, 0, EDGE).max()) for column in "xy")
            fits = all(most < side for most, side in zip(largest, DSEC_SIZE, strict=True))
            size = DSEC_SIZE if fits else None
        yield _Hdf5(table, Clock(offset=offset or 0), size, name, index, rectify)


class _Hdf5(ByPosition):
    """Events of a table by number, with DSEC's index and map where given."""

    def __init__(
        self,
        table: Table,
        clock: Clock,
        size: tuple[int, int] | None,
        name: str,
        index: Any = None,
        rectify: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self._table, self._clock, self._sides, self._name = table, clock, size, name
        usable = index is not None and index.ndim == 1 and index.dtype.kind in "iu"
        self._index = index if usable else None
        self._rectify = rectify
        self.floats = clock.floats
        chunks = table.arrays["t"].chunks
        super().__init__(name, table.count, max(int(chunks[0]), 1) if chunks else BLOCK)

    def columns(self, first: int, last: int) -> Columns:
        refuse_many(last - first, self._name)
        x, y, t, p = (self._table.read(column, first, last) for column in "xytp")
        # Times without an offset stay as they are, so that overflows of a counter are noticed.
        plain = self._clock.factor == 1 and not self._clock.offset
        width, height = self._sides or (None, None)
        notes = (self._clock.note,) if self._clock.note else ()
        found = Columns(x, y, t if plain else self._us(t), p, width, height, notes)
        return found if self._rectify is None else _rectified(found, self._rectify, self._name)

    def times(self, first: int, last: int) -> Times:
        return self._us(self._table.read("t", first, last))

    def bracket(self, time: int) -> tuple[int, int]:
        """DSEC's index: the first event of this millisecond and that of the next."""
        at = (time - self._clock.offset) // 1000
        if self._index is None or not 0 <= at < len(self._index) - 1:
            return super().bracket(time)
        low, high = (int(place) for place in self._index[at : at + 2])
        return low, high

    def _us(self, raw: Numbers) -> Times:
        if raw.dtype.kind in "iub" and self._clock.factor == 1:
            return raw.astype(np.int64) + self._clock.offset
        return microseconds(raw, self._clock.factor, self._name)


def _clock(table: Table, name: str) -> Clock:
    """The unit of the times, by their `unit` attribute, else by their type and values."""
    stated = "" if table.fields else _unit(table.arrays["t"], name)
    if stated:
        return Clock(MICROSECONDS[stated], note=f"{name} states its times in {stated}.")
    edges = [table.read("t", 0, EDGE), table.read("t", max(table.count - EDGE, 0), table.count)]
    ends = np.concatenate(edges)
    if ends.dtype.kind == "f" and (ends != np.trunc(ends)).any():
        return Clock(1e6, note=f"The times of {name} have fractions and are taken as seconds.")
    note = f"The times of {name} are whole numbers and taken as microseconds."
    return Clock(note=note, floats=ends.dtype.kind == "f")


def _unit(array: Any, name: str) -> str:
    """The attribute `unit` of an array: "s", "ms", "us" or "ns"; "" without one."""
    for key in ("unit", "units"):
        if key not in array.attrs:
            continue
        small = array.attrs.get_id(key).get_storage_size() <= MAX_UNIT
        value = array.attrs[key] if small else f"more than {MAX_UNIT} bytes"
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        found = known_unit(text) if isinstance(text, str) else ""
        if not found:
            # A wrong unit makes times wrong by a factor of 1,000, so none is guessed.
            raise MediaError(
                f"{name} states its times in {quoted(text)}, which is no known unit: set the "
                f"attribute `{key}` to {UNITS}."
            )
        return found
    return ""


def _offset(file: Any, name: str) -> int | None:
    """DSEC's offset of the times, at the top of the file; None without one."""
    array = child(file, "t_offset", name)
    if array is None:
        return None
    if getattr(array, "size", 0) != 1 or array.dtype.kind not in "iu":
        raise MediaError(f"{name} has a t_offset that is not one whole number: copy it again.")
    value = int(np.asarray(plain(array, "t_offset", name)[()]).reshape(-1)[0])
    if abs(value) > MAX_US:
        raise MediaError(f"{name} has a t_offset of {value:,}: give microseconds.")
    return value


def _size(file: Any, table: Table) -> tuple[int, int] | None:
    """The sensor's width and height, if the file or the group of the events states them."""
    for place in (table.arrays["t"].parent, file):
        found = list[int]()
        for key in ("width", "height"):
            if key in place.attrs and place.attrs.get_id(key).get_storage_size() <= 8:
                value = np.asarray(place.attrs[key])
                if value.size == 1 and value.dtype.kind in "iu":
                    found.append(int(value.reshape(-1)[0]))
        if len(found) == 2:
            return found[0], found[1]
    return None


def _rectify_map(path: Path, name: str) -> npt.NDArray[np.float64] | None:
    """The map [H, W, 2] beside a recording, None without one."""
    if not path.exists():
        return None
    called = f"{RECTIFY_MAP}.h5 beside {name}"
    with file_of(path, called) as file:
        array = child(file, RECTIFY_MAP, called)
        shape: tuple[int, ...] = getattr(array, "shape", ())
        if len(shape) != 3 or shape[2] != 2 or not all(0 < side <= MAX_SIDE for side in shape):
            raise MediaError(
                f"{called} has no array {RECTIFY_MAP!r} of shape [height, width, 2] (found: "
                f"{quoted(shape)}): copy it again, or remove it to read the events as recorded."
            )
        return np.asarray(plain(array, RECTIFY_MAP, called)[()], np.float64)


def _rectified(events: Columns, rectify: npt.NDArray[np.float64], name: str) -> Columns:
    """The events at the pixels of the map, rounded; those outside the sensor are dropped."""
    height, width = rectify.shape[:2]
    for column, values, side in (("x", events.x, width), ("y", events.y, height)):
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) < side:
            wrong = int(values.max()) if int(values.max()) >= side else int(values.min())
            raise MediaError(
                f"{name} has an event at {column} = {wrong:,}, and its {RECTIFY_MAP}.h5 is for "
                f"{width:,} x {height:,} pixels: give the map of this recording."
            )
    places = np.rint(rectify[events.y, events.x])
    column, row = places.T
    # Comparisons with NaN, a pixel that the map does not show, are False.
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    x, y = places[inside].astype(np.uint16).T
    note = (
        f"The events of {name} are rectified by the {RECTIFY_MAP}.h5 beside it; "
        f"{int((~inside).sum()):,} of {len(inside):,} lie outside the sensor then and are left out."
    )
    notes = (*events.notes, note)
    return Columns(x, y, events.t[inside], events.p[inside], width, height, notes)


# Where a file has its arrays.
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
def file_of(path: Path, name: str) -> Iterator[Any]:
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


def table_of(file: Any, name: str) -> Table:
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
