"""The header of Prophesee's files: lines of text that begin with "% ", each a key and a value.

Format: docs.prophesee.ai, "RAW File Format" and "DAT File Format".  A line "% end" may close the
header; otherwise it ends before the first line that does not begin with "% ".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import MediaError
from engine.media.event_columns import MAX_SIDE
from engine.quoting import count, quoted

MAX_HEADER = 1 << 16
_LINE = re.compile(rb"% ?([\t\x20-\x7e\x80-\xff]{0,1000})\r?\n")
_PAIR = re.compile(r"([0-9]{1,9})\s*[xX]\s*([0-9]{1,9})")


@dataclass(frozen=True)
class Header:
    """The values by lower-case key, the options of "format", and where the header ends."""

    values: Mapping[str, str]
    options: Mapping[str, str]
    end: int

    @property
    def encoding(self) -> str:
        """The name that "format" or else "evt" gives, such as "EVT3" or "EVT2.1"; "" for none."""
        name = self.values.get("format", "").split(";")[0].strip().upper()
        version = self.values.get("evt", "").removesuffix(".0")
        return name or (f"EVT{version}" if version else "")


def parse(head: bytes, name: str) -> Header:
    """The header at the beginning of a file; MediaError if there is none."""
    values, at = dict[str, str](), 0
    while line := _LINE.match(head, at):
        key, _, value = line[1].decode("latin-1").strip().partition(" ")
        at = line.end()
        if key == "end":
            break
        values[key.lower()] = value.strip()
    if not values or at >= MAX_HEADER:
        raise MediaError(f"{name} has no header of Prophesee (lines with %): record it again.")
    pairs = (part.split("=", 1) for part in values.get("format", "").split(";") if "=" in part)
    return Header(values, {key.strip().lower(): value.strip() for key, value in pairs}, at)


def sensor(header: Header, name: str) -> tuple[int, int] | None:
    """(width, height) of the sensor, None if it is not stated; MediaError for an impossible one."""
    values = header.values
    sides = (header.options.get(side, values.get(side, "")) for side in ("width", "height"))
    text = values.get("geometry") or "x".join(sides)
    if text == "x":
        return None
    found = _PAIR.fullmatch(text)
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(1 <= side <= MAX_SIDE for side in size):
        raise MediaError(
            f"{name} states the sensor size {quoted(text)}: give a file with a width and a height "
            f"from 1 to {MAX_SIDE:,}."
        )
    return size


def notes(name: str, size: tuple[int, int] | None, rest: int) -> tuple[str, ...]:
    """What is to be known of a file without a sensor size, or with bytes of half an event."""
    found = [] if size else [f"{name} states no sensor size, so the events' own is taken."]
    if rest:
        found.append(
            f"{name} ends with {count(rest, 'byte')} of an incomplete event, which are left "
            "out; the file may have been cut short."
        )
    return tuple(found)
