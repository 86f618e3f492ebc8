"""Reads events from text: one event per line, and a line before them that names the columns.

Format: names in any order and spelling of event_columns.py, as in "t,x,y,p", also in a comment
("# t x y p"); lines that begin with # or % before them are skipped.  Commas, semicolons, tabs or
spaces separate the values.  The unit of times stands behind their name (t_s, t[us]); without one
they are microseconds.  "x@640" (faery) states the sensor's width.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from engine.errors import MediaError
from engine.media import event_columns, media_files
from engine.media.event_columns import MAX_ZERO, MICROSECONDS, UNITS, Columns, Numbers
from engine.media.recording import SLACK_US, STEPS_BACK, Indexed, Recording, Whole, late
from engine.quoting import count as counted
from engine.quoting import listed, quoted

HEAD = 1 << 16  # bytes in which the names are looked for
MAX_LINE = 4096  # bytes
PIECE = 4 << 20  # bytes that are parsed at once
KEPT = 1 << 24  # events that are read at once: about 1 GB
MAX_COLUMNS = 64
MORE = "more"  # a column for values behind the last one
MAX_DIGITS = 19  # of a whole number in 64 bits
_SIDE = re.compile(r"([xy])@([0-9]{1,5})")


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    with media_files.opened(media_files.large(path, whole=False)) as file:
        yield _Text(file, name).ordered()


class _Text(Indexed):
    """One block, the file, read line by line; beyond KEPT events it is parsed for each window."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name, self.most = file, name, KEPT
        self._read_head(file.read(HEAD))
        self._kept, total, back, floats = list[Columns](), 0, 0, False
        self.first, self.last = 2**62, -(2**62)
        for part in self.blocks(0, 1):
            total += len(part.t)
            self._kept = [*self._kept, part] if total <= KEPT else []
            low = int(part.t.min())
            back = max(back, late(part.t), self.last - low)
            self.first, self.last = min(self.first, low), max(self.last, int(part.t.max()))
            floats |= part.t.dtype.kind == "f"
        if not total:
            raise MediaError(f"{name} holds 0 events: pick another recording.")
        if total > KEPT:
            event_columns.refuse_other_units(total, self.duration_us(), floats, name)
            if back > SLACK_US:  # or a counter that overflows
                raise MediaError(f"{name} {STEPS_BACK}")
        self.low, self.high = np.array([[self.first], [self.last]])

    def _read_head(self, head: bytes) -> None:
        """Where events begin, and what their fields are; MediaError if no line names them."""
        if b"\0" in head:
            raise MediaError(f"{self.name} is not text: give a file with one event per line.")
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
        plain = [event_columns.with_unit(_SIDE.sub(r"\1", field)) for field in fields]
        order = [field for field, _ in plain]
        columns = event_columns.known(order)
        missing = [key for key in "txyp" if key not in columns]
        if missing or len(fields) > MAX_COLUMNS:
            raise MediaError(
                f"{self.name} does not name its columns {', '.join(missing)} (found: "
                f"{listed(fields) or 'no line'}): write a first line such as t,x,y,p that names "
                "them."
            )
        self._places = {key: order.index(field) for key, field in columns.items()}
        self._unit = unit = plain[self._places["t"]][1]
        if unit and unit not in MICROSECONDS:
            raise MediaError(
                f"{self.name} states its times in {quoted(unit)}, which is no known unit: give "
                f"{UNITS}."
            )
        self._start, self._separator, self._fields = start, _separator(row or joined), len(fields)
        if len(sides) == 2:
            self.sensor = sides["x"], sides["y"]

    def ordered(self) -> Recording:
        return Whole(self.finished(Columns.joined(self._kept)), self.name) if self._kept else self

    def blocks(self, first: int, stop: int) -> Iterator[Columns]:
        at, total, lost, example = self._start, 0, 0, ""
        while data := self._lines(at):
            part, others = self._parsed(data)
            at, total, lost = at + len(data), total + len(part.t), lost + len(others)
            if lost and not example:
                row = others.iloc[0].dropna()
                separator = self._separator or " "
                example = quoted(separator.join(map(str, row)).rstrip(separator))
            what = f"{counted(lost, 'line')} without an event, such as {example}"
            if lost > MAX_ZERO * (total + lost):
                raise MediaError(
                    f"{self.name} has {what}: give every event a line with a number of up to "
                    f"{MAX_DIGITS} digits for each of its {self._fields} columns."
                )
            if len(part.t):
                yield part
        unit = f"The times of {self.name} have no unit and are taken as microseconds."
        self.notes = () if self._unit else (unit,)
        self.notes += (f"Left out of {self.name}: {what}.",) if lost else ()

    def _lines(self, at: int) -> bytes:
        """The next whole lines of the file, from a place on."""
        self._file.seek(at)
        data, rest = self._file.read(PIECE), self._file.readline(MAX_LINE + 1)
        if len(rest) > MAX_LINE:
            raise MediaError(
                f"{self.name} has a line of more than {MAX_LINE:,} bytes: give every event a line."
            )
        return data + rest

    def _parsed(self, data: bytes) -> tuple[Columns, Any]:
        """The events of whole lines, and a table of the lines that are neither events nor blank.
        An event has a finite number for each column."""
        import pandas as pd  # takes longer than opening a file

        extra = self._fields
        # pandas drops values behind the last column without a word.  A line in front with one
        # value too many gives them a column, which is empty in the lines of events.
        front = (self._separator or " ").join("0" * (extra + 1)).encode() + b"\n"
        table = pd.read_csv(
            io.BytesIO(front + data.replace(b"\0", b"?")),  # a zero byte would end a value
            engine="c",
            sep=self._separator or r"\s+",
            header=None,
            names=[*map(str, range(extra)), MORE],
            usecols=[*self._places.values(), extra],
            index_col=False,
            keep_default_na=False,
            na_values={MORE: [""]},
            float_precision="round_trip",
            low_memory=False,
            skipinitialspace=True,
            quoting=3,  # csv.QUOTE_NONE
            encoding="latin-1",
        ).iloc[1:]
        words = {"True": "1", "False": "0"}
        columns = {key: table[str(self._places[key])].replace(words) for key in "xytp"}
        whole = table[MORE].isna()
        for column in columns.values():
            whole &= pd.to_numeric(column, errors="coerce").abs() < 2**62
        x, y, t, p = (
            pd.to_numeric(column[whole], downcast=None if key == "t" else "integer").to_numpy()
            for key, column in columns.items()
        )
        return Columns(x, y, self._us(t), p), table[~whole].astype(object)

    def _us(self, values: Numbers) -> Numbers:
        unit = self._unit
        if values.dtype.kind in "biu" and unit in ("", "us"):
            return values.astype(np.int64)
        if unit:
            return event_columns.microseconds(values, MICROSECONDS[unit], self.name)
        if (values != np.trunc(values)).any():
            raise MediaError(
                f"{self.name} has times with fractions and no unit for them: name the column t_s "
                "if they are seconds, or t_us."
            )
        return values


def _separator(line: str) -> str:
    return next((mark for mark in (";", "\t", ",") if mark in line), "")
