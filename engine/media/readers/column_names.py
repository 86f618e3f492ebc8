"""The columns x, y, t and p under the names that event files use, and the units in names.

Boundary: names in, names out; no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SPELLINGS = {
    "x": ("x", "xs", "x_coordinate", "x_coordinates"),
    "y": ("y", "ys", "y_coordinate", "y_coordinates"),
    "t": ("t", "ts", "time", "times", "timestamp", "timestamps"),
    "p": ("p", "ps", "pol", "pols", "polarity", "polarities", "on"),
}
MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_UNIT = re.compile(
    r"(?P<name>[a-z]+)(?:[_ ](?P<plain>s|ms|us|ns)|\s*[\[(](?P<boxed>s|ms|us|ns)[\])])"
)


def known(names: Iterable[str]) -> dict[str, str]:
    """x, y, t and p to the first name that is a spelling of it; those without one are left out."""
    found: dict[str, str] = {}
    for name in names:
        for column, spellings in SPELLINGS.items():
            if name.lower() in spellings:
                found.setdefault(column, name)
    return found


def with_unit(name: str) -> tuple[str, str]:
    """The name and the unit behind it, as in t_us, t[us] and "time (us)"; "" without one."""
    text = (
        name.strip()
        .lower()
        .replace("\N{MICRO SIGN}", "u")
        .replace("\N{GREEK SMALL LETTER MU}", "u")
    )
    match = _UNIT.fullmatch(text)
    if match is None or match["name"] not in SPELLINGS["t"]:
        return text, ""
    return match["name"], match["plain"] or match["boxed"]
