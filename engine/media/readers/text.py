"""Reads events from text: one event per line, and a line before them that names the columns.

Format: names in any order and spelling of column_names.py, as in "t,x,y,p", also in a comment
("# t x y p"); lines that begin with # or % before them are skipped.  Commas, semicolons, tabs or
spaces separate the values.  The unit of times stands behind their name (t_s, t[us]); without one
they are microseconds.  "x@640" (faery) states the sensor's width.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from engine.errors import MediaError
from engine.media import media_files
from engine.media.event_columns import Columns, Numbers, Times
from engine.media.readers.column_names import MICROSECONDS, UNITS, known, microseconds, with_unit
from engine.media.recording import Ascending, Recording
from engine.plain_files import reason
from engine.quoting import count as counted
from engine.quoting import listed, quoted

HEAD = 1 << 16  # bytes in which the names are looked for
MAX_LINE = 4096  # bytes
COUNTED = 8 << 20  # bytes whose lines are counted one by one
MAX_COLUMNS = 64
MAX_DIGITS = 19  # of a whole number in 64 bits
_SIDE = re.compile(r"([xy])@([0-9]{1,5})")


@dataclass(frozen=True)
class Layout:
    """Where the lines of events begin, and what their fields are."""

    start: int
    separator: str  # "" for spaces
    places: Mapping[str, int]
    fields: int
    unit: str
    sides: Mapping[str, int]


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    data = media_files.large(path, None)
    with media_files.opened(data) as file:
        layout = _layout(file.read(HEAD), name)
        yield _Text(file, layout, len(data), name).ordered()


class _Text(Ascending):
    """Events by the position of a byte behind the line of names."""

    piece = 4 << 20

    def __init__(self, file: BinaryIO, layout: Layout, size: int, name: str) -> None:
        self._file, self._layout, self.name = file, layout, name
        self.size = size - layout.start
        tail = self._bytes(max(self.size - HEAD, 0), self.size)
        self.size -= len(tail) - len(tail.rstrip())
        if not layout.unit:
            self.notes = (f"The times of {name} have no unit and are taken as microseconds.",)
        if len(layout.sides) == 2:
            self.sensor = layout.sides["x"], layout.sides["y"]
        super().__init__(name, self.size)

    def place(self, position: int) -> int:
        """The position of the first line that begins there or later and is not empty."""
        if position <= 0:
            return 0
        before = self._bytes(position - 1, min(position + MAX_LINE, self.size))
        at = before.find(b"\n")
        if at < 0:
            if len(before) > MAX_LINE:
                raise self._wrong(f"a line of more than {MAX_LINE:,} bytes")
            return self.size
        return position + at + len(before[at + 1 :]) - len(before[at + 1 :].lstrip(b"\r\n"))

    def count(self, first: int, last: int) -> int:
        """Exact up to 8 MB.  Above, the length of lines in 16 samples gives the number."""
        begin, end = self.place(first), self.place(last)
        if end - begin <= COUNTED:
            return self._bytes(begin, end).count(b"\n") + (begin < end == self.size)
        piece = COUNTED // 128
        starts = np.linspace(begin, end - piece, 16).astype(int).tolist()
        lines = sum(self._bytes(at, at + piece).count(b"\n") for at in starts)
        return round((end - begin) * lines / (16 * piece))

    def times(self, first: int, last: int) -> Times:
        layout, times = self._layout, list[int | float]()
        for line in self._bytes(self.place(first), self.place(last)).split(b"\n"):
            fields = line.decode("latin-1").strip().split(layout.separator or None)
            if not line.strip():
                continue
            self._check_fields(len(fields))
            stored = fields[layout.places["t"]].strip()
            try:
                whole = stored.lstrip("-").isdigit() and len(stored) < MAX_DIGITS
                times.append(int(stored) if whole else float(stored))
            except ValueError:
                raise self._wrong(f"t = {quoted(stored)} in a line of events") from None
        found = np.array(times)
        self.floats |= not layout.unit and found.dtype.kind == "f"
        return self._us(found).astype(np.int64)

    def columns(self, first: int, last: int) -> Columns:
        import pandas as pd  # takes longer than opening a file

        layout = self._layout
        try:
            table = pd.read_csv(
                io.BytesIO(self._bytes(first, last)),
                sep=layout.separator or r"\s+",
                header=None,
                index_col=False,
                na_filter=False,
                float_precision="round_trip",
                low_memory=False,
                skipinitialspace=True,
                quoting=3,  # csv.QUOTE_NONE
                encoding="latin-1",
            )
        except ValueError as error:  # pandas' own errors are ValueErrors
            wrong = f"a line that does not fit its columns ({reason(error)})"
            raise self._wrong(wrong) from error
        self._check_fields(table.shape[1])
        x, y, t, p = (self._numbers(table[layout.places[key]].to_numpy(), key) for key in "xytp")
        return Columns(x, y, self._us(t), p)

    def _numbers(self, values: Numbers, key: str) -> Numbers:
        """The values of a column, in few bytes; MediaError if one is no number."""
        if values.dtype.kind == "O":
            import pandas as pd

            numbers = pd.to_numeric(pd.Series(values), errors="coerce").to_numpy(np.float64)
            worst = np.where(np.isnan(numbers), np.inf, np.abs(numbers)).argmax()
            value = quoted(str(values[int(worst)]))
            raise self._wrong(f"{key} = {value} in a line of events")
        small = values.astype(np.int32) if values.dtype.kind == "i" and key != "t" else values
        return small if np.array_equal(small, values) else values

    def _us(self, values: Numbers) -> Numbers:
        unit = self._layout.unit
        if values.dtype.kind in "iu" and unit in ("", "us"):
            return values
        if not unit and (values != np.trunc(values)).any():
            raise MediaError(
                f"{self.name} has times with fractions and no unit for them: name the column t_s "
                "if they are seconds, or t_us."
            )
        return microseconds(values, MICROSECONDS[unit or "us"], self.name)

    def _check_fields(self, count: int) -> None:
        if count != self._layout.fields:
            names = counted(self._layout.fields, "column")
            raise self._wrong(f"a line of {counted(count, 'value')} and names {names}")

    def _wrong(self, what: str) -> MediaError:
        return MediaError(
            f"{self.name} has {what}: give every event a line with a number of up to {MAX_DIGITS} "
            "digits for each column."
        )

    def _bytes(self, first: int, last: int) -> bytes:
        self._file.seek(self._layout.start + first)
        return self._file.read(max(last - first, 0))


def _layout(head: bytes, name: str) -> Layout:
    """The names of the columns; MediaError if no line gives them."""
    if b"\0" in head:
        raise MediaError(f"{name} is not text: give a file with one event per line.")
    names, row, start = "", "", 0
    for line in head.splitlines(keepends=True):
        text = line.decode("utf-8-sig" if not start else "utf-8", "replace").strip()
        if re.match(r"[-+0-9.]", text):
            row = text
            break
        start += len(line)
        names = text.lstrip("#% ") or names
        if text and text[0] not in "#%":
            break
    # "t [us]" is one name, also where spaces separate names.
    joined = re.sub(r"\s+([\[(])", r"\1", names.lower())
    fields = [field.strip("\"' ") for field in joined.split(_separator(joined) or None)]
    sides = {one[1]: int(one[2]) for field in fields if (one := _SIDE.fullmatch(field))}
    plain = [with_unit(_SIDE.sub(r"\1", field)) for field in fields]
    order = [field for field, _ in plain]
    columns = known(order)
    missing = [key for key in "txyp" if key not in columns]
    if missing or len(fields) > MAX_COLUMNS:
        raise MediaError(
            f"{name} does not name its columns {', '.join(missing)} (found: "
            f"{listed(fields) or 'no line'}): write a first line such as t,x,y,p that names them."
        )
    places = {key: order.index(field) for key, field in columns.items()}
    unit = plain[places["t"]][1]
    if unit and unit not in MICROSECONDS:
        raise MediaError(
            f"{name} states its times in {quoted(unit)}, which is no known unit: give {UNITS}."
        )
    return Layout(start, _separator(row or joined), places, len(fields), unit, sides)


def _separator(line: str) -> str:
    return next((mark for mark in (";", "\t", ",") if mark in line), "")
