"""Reads events from text: one event per line, and a line before them that names the columns.

Format: names in any order and spelling of event_columns.py, as in "t,x,y,p", also in a comment
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
from engine.media.event_columns import Columns, Numbers, Times, refuse_many
from engine.media.readers.column_names import MICROSECONDS, UNITS, known, microseconds, with_unit
from engine.media.recording import NEVER, ByPosition, Recording
from engine.plain_files import reason
from engine.quoting import count as counted
from engine.quoting import listed, quoted

HEAD = 1 << 16  # bytes in which the names are looked for
EDGE = 1 << 16  # bytes whose times are compared at either end
MAX_LINE = 4096  # bytes
PIECE = 4 << 20  # bytes that are parsed at once
COUNTED = 8 << 20  # bytes whose lines are counted one by one
MAX_COLUMNS = 64
MAX_DIGITS = 19  # of a whole number in 64 bits
_SIDE = re.compile(r"([xy])@([0-9]{1,5})")
_EACH = "give every event a line with a value for each column."
_ADVICE = "write a first line such as t,x,y,p that names the columns"


@dataclass(frozen=True)
class Layout:
    """Where the lines of events begin, and what their fields are."""

    start: int
    separator: str  # "" for spaces
    places: Mapping[str, int]
    fields: int
    unit: str = ""
    width: int | None = None
    height: int | None = None


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    data = media_files.large(path, None)
    with media_files.opened(data) as file:
        layout = _layout(file.read(HEAD), name)
        yield _Text(file, layout, len(data), name)


class _Text(ByPosition):
    """Events by the position of a byte behind the line of names."""

    def __init__(self, file: BinaryIO, layout: Layout, size: int, name: str) -> None:
        self._file, self._layout, self._name, self.edge = file, layout, name, EDGE
        self.size = size - layout.start
        tail = self._bytes(max(self.size - HEAD, 0), self.size)
        self.size -= len(tail) - len(tail.rstrip())
        super().__init__(name, self.size)

    def columns(self, first: int, last: int) -> Columns:
        at, end, count = self._line(first), self._line(last), 0
        parts = [] if at < end else [{key: np.empty(0, np.int64) for key in "xytp"}]
        while at < end:
            after = end if end - at <= PIECE else self._line(at + PIECE)
            parts.append(self._parsed(self._bytes(at, after)))
            count += len(parts[-1]["t"])
            refuse_many(count, self._name)
            at = after
        x, y, t, p = (np.concatenate([part[key] for part in parts]) for key in "xytp")
        notes = (f"The times of {self._name} have no unit and are taken as microseconds.",)
        layout = self._layout
        return Columns(x, y, t, p, layout.width, layout.height, () if layout.unit else notes)

    def times(self, first: int, last: int) -> Times:
        begin, end = self._line(first), self._line(last)
        lines = [line for line in self._bytes(begin, end).split(b"\n") if line.strip()]
        found = np.array([self._time(line) for line in lines])
        self.floats |= not self._layout.unit and found.dtype.kind == "f"
        return self._us(found).astype(np.int64)

    def time(self, position: int) -> int:
        begin = self._line(position)
        return NEVER if begin >= self.size else int(self.times(begin, begin + 1)[0])

    def _time(self, line: bytes) -> int | float:
        fields = line.decode("latin-1").strip().split(self._layout.separator or None)
        self._check_fields(len(fields))
        stored = fields[self._layout.places["t"]].strip()
        try:
            whole = stored.lstrip("-").isdigit() and len(stored) < MAX_DIGITS
            return int(stored) if whole else float(stored)
        except ValueError:
            raise self._no_number("t", stored) from None

    def _no_number(self, key: str, value: str) -> MediaError:
        return MediaError(
            f"{self._name} has {key} = {quoted(value)} in a line of events: give numbers of up to "
            f"{MAX_DIGITS} digits."
        )

    def count(self, first: int, last: int) -> int:
        """Exact up to 8 MB.  Above, the length of lines in 16 samples gives the number."""
        begin, end = self._line(first), self._line(last)
        if end - begin <= COUNTED:
            return self._bytes(begin, end).count(b"\n") + (begin < end == self.size)
        samples = [
            self._bytes(at, at + COUNTED // 128)
            for at in np.linspace(begin, end - COUNTED // 128, 16).astype(int).tolist()
        ]
        lines, size = sum(one.count(b"\n") for one in samples), sum(map(len, samples))
        return round((end - begin) * lines / size)

    def _line(self, position: int) -> int:
        """The position of the first line that begins there or later and is not empty."""
        if position <= 0:
            return 0
        before = self._bytes(position - 1, min(position + MAX_LINE, self.size))
        at = before.find(b"\n")
        if at < 0:
            if len(before) > MAX_LINE:
                long = f"a line of more than {MAX_LINE:,} bytes"
                raise MediaError(f"{self._name} has {long}: give one event per line.")
            return self.size
        return position + at + len(before[at + 1 :]) - len(before[at + 1 :].lstrip(b"\r\n"))

    def _parsed(self, lines: bytes) -> dict[str, Numbers]:
        import pandas as pd  # takes longer than opening a file

        try:
            table = pd.read_csv(
                io.BytesIO(lines),
                sep=self._layout.separator or r"\s+",
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
            raise MediaError(
                f"{self._name} has a line that does not fit its columns ({reason(error)}): {_EACH}"
            ) from error
        self._check_fields(table.shape[1])
        places = self._layout.places
        found = {key: self._numbers(table[places[key]].to_numpy(), key) for key in "xytp"}
        found["t"] = self._us(found["t"])
        return found

    def _check_fields(self, count: int) -> None:
        if count != self._layout.fields:
            raise MediaError(
                f"{self._name} has a line of {counted(count, 'value')} and names "
                f"{counted(self._layout.fields, 'column')}: {_EACH}"
            )

    def _numbers(self, values: Numbers, key: str) -> Numbers:
        """The values of a column, in few bytes; MediaError if one is no number."""
        if values.dtype.kind == "O":
            import pandas as pd

            numbers = pd.to_numeric(pd.Series(values), errors="coerce").to_numpy(np.float64)
            worst = np.where(np.isnan(numbers), np.inf, np.abs(numbers)).argmax()
            raise self._no_number(key, str(values[int(worst)]))
        small = values.astype(np.int32) if values.dtype.kind == "i" and key != "t" else values
        return small if np.array_equal(small, values) else values

    def _us(self, values: Numbers) -> Numbers:
        unit = self._layout.unit
        if values.dtype.kind in "iu" and unit in ("", "us"):
            return values
        if not unit:
            bad = values != np.trunc(values)
            if bad.any():
                raise MediaError(
                    f"{self._name} has the time {values[bad][0]} and no unit for it: name the "
                    "column t_s if times are seconds, or t_us."
                )
        return microseconds(values, MICROSECONDS[unit or "us"], self._name)

    def _bytes(self, first: int, last: int) -> bytes:
        self._file.seek(self._layout.start + first)
        return self._file.read(max(last - first, 0))


def _layout(head: bytes, name: str) -> Layout:
    """The names of the columns; MediaError if no line gives them."""
    if b"\0" in head:
        raise MediaError(f"{name} is not text: give a file with one event per line.")
    named, start = "", 0
    for line in head.splitlines(keepends=True):
        text = line.decode("utf-8-sig" if not start else "utf-8", "replace").strip()
        if text and text[0] not in "#%":
            if re.match(r"[-+0-9.]", text):
                return _of_names(named, text, start, name)
            return _of_names(text, "", start + len(line), name)
        named = text.lstrip("#% ") or named
        start += len(line)
    raise MediaError(f"{name} has no line of events: {_ADVICE}.")


def _of_names(names: str, row: str, start: int, name: str) -> Layout:
    """The layout by the line of names; `row` is the first line of events if the names are a
    comment."""
    # "t [us]" is one name, also where spaces separate names.
    joined = re.sub(r"\s+([\[(])", r"\1", names.lower())
    fields = [field.strip("\"' ") for field in joined.split(_separator(joined) or None)]
    if not 0 < len(fields) <= MAX_COLUMNS:
        raise MediaError(f"{name} does not name its columns: {_ADVICE}.")
    sides = {one[1]: int(one[2]) for field in fields if (one := _SIDE.fullmatch(field))}
    plain = [with_unit(_SIDE.sub(r"\1", field)) for field in fields]
    columns = known(field for field, _ in plain)
    missing = [key for key in "txyp" if key not in columns]
    if missing:
        raise MediaError(
            f"{name} does not name its columns {', '.join(missing)} (found: {listed(fields)}): "
            f"{_ADVICE}."
        )
    order = [field for field, _ in plain]
    places = {key: order.index(field) for key, field in columns.items()}
    unit = plain[places["t"]][1]
    if unit and unit not in MICROSECONDS:
        raise MediaError(
            f"{name} states its times in {quoted(unit)}, which is no known unit: give {UNITS}."
        )
    separator = _separator(row or joined)
    return Layout(start, separator, places, len(fields), unit, sides.get("x"), sides.get("y"))


def _separator(line: str) -> str:
    return next((mark for mark in (";", "\t", ",") if mark in line), "")
