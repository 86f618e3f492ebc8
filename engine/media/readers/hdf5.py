"""Reads HDF5 recordings: DSEC's, and those with the arrays x, y, t and p in a group.

Format of DSEC (dsec.ifi.uzh.ch/data-format): events/{p,t,x,y}, `t_offset` that is added to t, and
`ms_to_idx`, which is not needed.  A `rectify_map.h5` in the same folder says where each pixel is
seen without the lens's distortion, [H, W, 2] as (x, y).  Other files: the arrays in any one group
or in one compound array, under the usual names.

A file may link to other files, keep its numbers in them, or declare types and sizes that cost
memory.  Only arrays that are part of the file itself, of plain numbers and in chunks of limited
size are accepted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import event_columns
from engine.media.event_columns import MAX_SIDE, MAX_US, MICROSECONDS, Columns, Numbers, Times
from engine.media.media_files import large
from engine.media.recording import Ascending, Recording
from engine.quoting import listed, quoted

RECTIFY_MAP = "rectify_map"
DSEC_SIZE = (640, 480)
EDGE = 1 << 14  # events at either end that decide the unit
MAX_UNIT = 64  # bytes of an attribute
MAX_NODES = 512
MAX_CHUNK = 64 << 20  # bytes
CACHE = 16 << 20  # bytes of decoded chunks per array
ECF = 0x8ECF  # Prophesee's filter, of which no free decoder is packaged
USED = "events"  # the group that is read if several hold events
ADVICE = "give one with the arrays x, y, t and p in one group"


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    with file_of(path, name) as file:
        yield _Hdf5(file, path, name).ordered()


class _Hdf5(Ascending):
    def __init__(self, file: Any, path: Path, name: str) -> None:
        group, self._arrays = columns_of(file, name)
        self.name, stated, offset = name, _unit(self._arrays["t"], name), _offset(file, name)
        self.sensor = _size(group) or _size(file)
        self._rectify: npt.NDArray[np.float64] | None = None
        self._factor, self._offset = MICROSECONDS[stated or "us"], offset or 0
        count = len(self._arrays["t"])
        places = (slice(EDGE), slice(max(count - EDGE, 0), count))
        ends = np.concatenate([self._arrays["t"][place] for place in places])
        if offset is not None or file.get("ms_to_idx", getlink=True) is not None:
            if stated not in ("", "us") or ends.dtype.kind not in "iu":
                raise MediaError(
                    f"{name} has the form of DSEC, but states its times in "
                    f"{stated or 'fractions'}: give microseconds."
                )
            self._rectify = _rectify_map(path.with_name(f"{RECTIFY_MAP}.h5"), name)
            if self.sensor is None and self._rectify is None and len(ends):
                # Others use DSEC's layout with larger sensors too.
                largest = (int(self._arrays[column][:EDGE].max()) for column in "xy")
                fits = all(most < side for most, side in zip(largest, DSEC_SIZE, strict=True))
                self.sensor = DSEC_SIZE if fits else None
        elif stated:
            self.notes = (f"{name} states its times in {stated}.",)
        elif ends.dtype.kind == "f" and (ends != np.trunc(ends)).any():
            self._factor = MICROSECONDS["s"]
            self.notes = (f"The times of {name} have fractions and are taken as seconds.",)
        else:
            self.floats = ends.dtype.kind == "f"
            self.notes = (f"The times of {name} are whole numbers and taken as microseconds.",)
        super().__init__(name, count)

    def columns(self, first: int, last: int) -> Columns:
        x, y, t, p = (self._arrays[column][first:last] for column in "xytp")
        # Times without an offset stay as they are, so that overflows of a counter are noticed.
        return Columns(x, y, t if self._factor == 1 and not self._offset else self._us(t), p)

    def times(self, first: int, last: int) -> Times:
        return self._us(self._arrays["t"][first:last])

    def finished(self, columns: Columns) -> Columns:
        """Moves events to the pixels of the map, rounded; those outside the sensor are dropped."""
        events, rectify, name = super().finished(columns), self._rectify, self.name
        if rectify is None:
            return events
        height, width = rectify.shape[:2]
        for values, side in ((events.x, width), (events.y, height)):
            if len(values) and not 0 <= int(values.min()) <= int(values.max()) < side:
                raise MediaError(
                    f"{name} has events outside of {width:,} x {height:,} pixels, for which its "
                    f"{RECTIFY_MAP}.h5 is: give the map of this recording."
                )
        places = np.rint(rectify[events.y, events.x])
        column, row = places.T
        # Comparisons with NaN, a pixel that the map does not show, are False.
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        x, y = places[inside].astype(np.uint16).T
        note = (
            f"The events of {name} are rectified by the {RECTIFY_MAP}.h5 beside it; "
            f"{int((~inside).sum()):,} of {len(inside):,} lie outside the sensor then and are left "
            "out."
        )
        t, p, notes = events.t[inside], events.p[inside], (*events.notes, note)
        return replace(events, x=x, y=y, t=t, p=p, width=width, height=height, notes=notes)

    def _us(self, raw: Numbers) -> Times:
        if raw.dtype.kind in "iub" and self._factor == 1:
            return raw.astype(np.int64) + self._offset
        return event_columns.microseconds(raw, self._factor, self.name)


def _unit(array: Any, name: str) -> str:
    """The attribute `unit` of an array: "s", "ms", "us" or "ns"; "" without one."""
    attributes: Any = getattr(array, "attrs", {})  # a field of an array has none
    for key in ("unit", "units"):
        if key not in attributes:
            continue
        small = attributes.get_id(key).get_storage_size() <= MAX_UNIT
        value = attributes[key] if small else f"more than {MAX_UNIT} bytes"
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        found = event_columns.unit(text) if isinstance(text, str) else ""
        if not found:
            # A wrong unit makes times wrong by a factor of 1,000, so none is guessed.
            raise MediaError(
                f"{name} states its times in {quoted(text)}, which is no known unit: set the "
                f"attribute `{key}` to {event_columns.UNITS}."
            )
        return found
    return ""


def _offset(file: Any, name: str) -> int | None:
    """DSEC's offset of the times, at the top of the file; None without one."""
    array = child(file, "t_offset", name)
    if array is None:
        return None
    whole = getattr(array, "size", 0) == 1 and array.dtype.kind in "iu"
    value = int(np.ravel(plain(array, "t_offset", name)[()])[0]) if whole else MAX_US + 1
    if abs(value) > MAX_US:
        raise MediaError(f"{name} has a t_offset that is no microseconds: copy it again.")
    return value


def _size(group: Any) -> tuple[int, int] | None:
    """The sensor's width and height, if the group states them."""
    sides = list[int]()
    for key in ("width", "height"):
        if key in group.attrs and group.attrs.get_id(key).get_storage_size() <= 8:
            value = np.ravel(group.attrs[key])
            sides += value.tolist() if len(value) == 1 and value.dtype.kind in "iu" else []
    return (sides[0], sides[1]) if len(sides) == 2 else None


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


# Where a file has its arrays.
@contextmanager
def file_of(path: Path, name: str) -> Iterator[Any]:
    """The file as an h5py.File; its errors are raised as MediaError until it is closed."""
    try:
        h5py, _ = map(import_module, ("h5py", "hdf5plugin"))  # which registers Blosc and others
    except ImportError as error:
        raise MediaError(
            f"{name} needs libraries that cannot be imported: run `pip install h5py hdf5plugin`."
        ) from error
    large(path, whole=False)
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


def columns_of(file: Any, name: str) -> tuple[Any, dict[str, Any]]:
    """The group with the events of a file, and their x, y, t and p: arrays, or the fields of one
    array.  MediaError if there are none, or several recordings."""
    seen: dict[str, Any] = {"": file}

    def note(path: str, member: Any) -> bool | None:
        seen[path] = member
        return len(seen) > MAX_NODES or None

    places = dict[str, tuple[Any, dict[str, Any]]]()
    with _readable(name, KeyError, TypeError, ValueError):  # of damaged names and types
        if file.visititems(note):  # which follows no links
            raise MediaError(f"{name} has more than {MAX_NODES} groups and arrays: {ADVICE}.")
        for path, member in seen.items():
            keys = member if hasattr(member, "keys") else getattr(member, "dtype", None)
            columns = event_columns.known(getattr(keys, "names", keys) or ())
            if len(columns) == 4:
                places[path] = _columns(path, member, columns, name)
    chosen = [path for path in places if path.split("/")[0] == USED] or [*places]
    if len(chosen) == 1:
        return places[chosen[0]]
    if chosen:
        several = listed(path or "/" for path in chosen)
        raise MediaError(
            f"{name} holds {len(chosen)} recordings ({several}): write one to a file of its own."
        )
    names = [*seen][1:]
    for path, group in seen.items():
        keys = group if hasattr(group, "keys") else ()
        links = (f"{path}/{key}".lstrip("/") for key in keys if _is_link(group, key))
        names += [f"{link} (a link, not followed)" for link in links]
    raise MediaError(
        f"{name} has no group with the arrays x, y, t and p (found: "
        f"{listed(names) or 'nothing'}): {ADVICE}."
    )


def _columns(path: str, member: Any, keys: dict[str, str], name: str) -> tuple[Any, dict[str, Any]]:
    if not hasattr(member, "keys"):
        array = plain(member, path, name, axes=1)
        return array.parent, {column: array.fields(key) for column, key in keys.items()}
    arrays = {
        column: plain(child(member, key, name), f"{path}/{key}".lstrip("/"), name, axes=1)
        for column, key in keys.items()
    }
    event_columns.refuse_lengths(dict(sorted(arrays.items())), name)
    return member, arrays


def _is_link(group: Any, key: str) -> bool:
    """Whether a member is a link to another place; reading it could read another file."""
    return type(group.get(key, getlink=True)).__name__ != "HardLink"


def child(group: Any, key: str, name: str) -> Any:
    """A member of a group that is part of this file; None without one."""
    if group.get(key, getlink=True) is None:
        return None
    if _is_link(group, key):
        raise MediaError(
            f"{name} has a link to another place at {quoted(key)}, which is not followed: copy it "
            "with `h5repack` or write the arrays themselves."
        )
    return group[key]


def plain(array: Any, key: str, name: str, axes: int | None = None) -> Any:
    """The array itself, if it is of plain numbers and stored in this file."""
    if not hasattr(array, "is_virtual"):
        raise MediaError(f"{name} has no array at {quoted(key)}, but something else: {ADVICE}.")
    properties = array.id.get_create_plist()
    filters = [int(properties.get_filter(n)[0]) for n in range(properties.get_nfilters())]
    if ECF in filters:
        raise MediaError(
            f"{name} is a Prophesee .hdf5 recording (ECF compression), which is not read: "
            "give the .raw it was made from, or convert it to .raw, .dat or CSV with "
            "Prophesee's Metavision SDK."
        )
    unknown = [code for code in filters if not import_module("h5py").h5z.filter_avail(code)]
    fields = array.dtype.names
    types = [array.dtype[field] for field in fields] if fields else [array.dtype]
    chunk = int(np.prod(array.chunks or (1,), dtype=np.float64)) * array.dtype.itemsize
    wrong = ""
    if array.is_virtual or array.external:
        wrong = "in another file"
    elif unknown:
        wrong = f"in an unknown compression (filter {unknown[0]})"
    elif any(one.kind not in "biuf" or one.subdtype or one.itemsize > 8 for one in types):
        wrong = f"of type {quoted(str(array.dtype))}"
    elif chunk > MAX_CHUNK:
        wrong = f"in chunks of {chunk:,} bytes (the limit is {MAX_CHUNK:,})"
    elif array.size and not array.id.get_storage_size() and properties.get_layout():
        wrong = f"of {array.size:,} values, but none was written"
    elif array.chunks and array.id.get_num_chunks() * np.prod(array.chunks) < array.size:
        raise MediaError(
            f"{name} has the array {quoted(key)}, of which a part was never written: copy this "
            "file again, or record it again."
        )
    elif axes not in (None, array.ndim):
        wrong = f"of shape {quoted(array.shape)}, not one value per event"
    if wrong:
        raise MediaError(
            f"{name} has the array {quoted(key)} {wrong}: write plain numbers into this file, "
            "with Blosc or gzip."
        )
    return array
