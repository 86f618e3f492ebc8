"""Numbers, names and dates as a page shows them.

Boundary: values in, text out; no streamlit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from engine.types import Sample

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MARKDOWN = re.compile(r"([!-/:-@\[-`{-~])")


def escape(text: str) -> str:
    """The text on one line, with every punctuation mark escaped for Markdown."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def ms(value: float | None) -> str:
    """Milliseconds with three digits that mean something: 0.42, 8.15, 48.2, 1,204."""
    if value is None:
        return "–"
    size = abs(value)
    digits = 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:,.{digits}f} ms"


def rate(value: float | None) -> str:
    """Tokens in a second."""
    return "–" if value is None else f"{value:,.1f} tok/s" if value < 100 else f"{value:,.0f} tok/s"


def count(number: int, noun: str, several: str = "") -> str:
    """ "1 frame", "8 frames"; `several` where an s does not make a plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {several or noun + 's'}"


def name_of(sample: Sample) -> str:
    """A sample's sequence and id; a UUID is cut to its first 8 characters."""
    name = sample.id[:8] if _UUID.fullmatch(sample.id) else sample.id
    return f"{sample.sequence} · {name}" if sample.sequence else name


def names_of(samples: Sequence[Sample]) -> dict[str, str]:
    """id -> name; the whole id where several samples have the same short name."""
    taken = Counter(name_of(sample) for sample in samples)
    return {
        sample.id: name_of(sample) if taken[name_of(sample)] == 1 else _full(sample)
        for sample in samples
    }


def _full(sample: Sample) -> str:
    return f"{sample.sequence} · {sample.id}" if sample.sequence else sample.id


def duration(seconds: float) -> str:
    """ "42 s", "3 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def figure(value: float | None) -> str:
    """A number with three digits that mean something; "–" for none."""
    if value is None or value != value:
        return "–"
    size = abs(value)
    digits = 0 if size >= 100 or value == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"


def when(stamp: str) -> str:
    """The day and minute of a UTC time from run.json; other text is unchanged."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\+00:00", stamp)
    return f"{found[1]} {found[2]} UTC" if found else stamp


def queued(position: int, noun: str = "job") -> str:
    """The state of a queued job by its place in the queue; 0 is next."""
    return f"Queued: {count(position, noun)} ahead" if position else "Queued: next"
