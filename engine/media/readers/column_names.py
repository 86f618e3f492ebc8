"""The columns x, y, t and p under the names that event files use, and the units in names."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from engine.errors import MediaError
from engine.media.event_columns import MAX_US, Numbers, Times

SPELLINGS = {
    "x": ("x", "xs", "x_coordinate", "x_coordinates"),
    "y": ("y", "ys", "y_coordinate", "y_coordinates"),
    "t": ("t", "ts", "time", "times", "timestamp", "timestamps"),
    "p": ("p", "ps", "pol", "pols", "polarity", "polarities", "on"),
}
MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
UNITS = "s, ms, us or ns"
_UNIT = re.compile(r"(s|sec|seconds?)|(ms|milliseconds?)|(us|microseconds?)|(ns|nanoseconds?)")
_NAME = re.compile(rf"([a-z]+)(?:[_ ]({_UNIT.pattern})|\s*[\[(]([^\])]+)[\])])")


def known(names: Iterable[str]) -> dict[str, str]:
    """x, y, t and p to the first name that is a spelling of it; those without one are left out."""
    found: dict[str, str] = {}
    for name in names:
        for column, spellings in SPELLINGS.items():
            if name.lower() in spellings:
                found.setdefault(column, name)
    return found


def with_unit(name: str) -> tuple[str, str]:
    """The name and the unit behind it, as in t_us, t[us] and "time (us)"; "" without one.  A unit
    in brackets that is not known is given as it stands."""
    text = _lower(name)
    match = _NAME.fullmatch(text)
    if match is None or match[1] not in SPELLINGS["t"]:
        return text, ""
    stated = match[2] or match[match.re.groups]
    return match[1], unit(stated) or stated


def unit(text: str) -> str:
    """The key of MICROSECONDS that a text means, in any case; "" for an unknown one."""
    match = _UNIT.fullmatch(_lower(text))
    return list(MICROSECONDS)[(match.lastindex or 0) - 1] if match else ""


def _lower(text: str) -> str:
    plain = text.strip().lower()
    return plain.replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u")


def microseconds(values: Numbers, factor: float, name: str) -> Times:
    """The times in whole microseconds; MediaError for one that is too large or no number."""
    scaled = np.rint(values.astype(np.float64) * factor)
    bad = ~(np.abs(scaled) < MAX_US)
    if bad.any():
        raise MediaError(f"{name} has a time of {values[bad][0]}: give microseconds.")
    return scaled.astype(np.int64)
