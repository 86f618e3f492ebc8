"""Numbers, names and dates as a page shows them."""

import re
from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from engine.quoting import count, ms, rate
from engine.types import Sample

__all__ = ["count", "escape", "marked", "ms", "name_of", "names_of", "rate", "when"]

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MARKDOWN = re.compile(r"([!-/:-@\[-`{-~])")


def escape(text: str) -> str:
    """On one line, escaped for Markdown; brackets would end a badge, and become entities."""
    escaped = _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
    return escaped.replace("\\[", "&#91;").replace("\\]", "&#93;")


def marked(name: str, label: str, value: str) -> Markup:
    """A figure as HTML that says what it tells, so that a test finds it wherever it is told."""
    return Markup('<span data-figure="{}, {}">{}</span>').format(name, label, value)


def name_of(sample: Sample, whole: bool = False) -> str:
    """A sample's sequence and id; a UUID that is not wanted `whole` is cut to 8 characters."""
    name = sample.id[:8] if _UUID.fullmatch(sample.id) and not whole else sample.id
    return f"{sample.sequence} · {name}" if sample.sequence else name


def names_of(samples: Sequence[Sample]) -> dict[str, str]:
    """id -> name; the whole id where several samples have the same short name."""
    taken = Counter(map(name_of, samples))
    return {sample.id: name_of(sample, taken[name_of(sample)] > 1) for sample in samples}


def when(stamp: str) -> str:
    """The day and second of a UTC time from run.json; other text is unchanged."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\+00:00", stamp)
    return f"{found[1]} {found[2]} UTC" if found else stamp


def queued(position: int) -> str:
    """The state of a queued job by its place in the queue; 0 is next."""
    return f"Queued: {count(position, 'job')} ahead" if position else "Queued: next"
