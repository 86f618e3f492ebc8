"""What an explanation costs before it runs, from this process's own measurements.

Boundary: counts and times; no torch.  A time is per changed input: making its pixels, encoding and
scoring it.
"""

from __future__ import annotations

from math import ceil
from threading import Lock

from engine.attribution import cells
from engine.attribution.explained import ExplainOptions
from engine.storage.explanations import Cost

_measured: dict[str, float] = {}  # model -> milliseconds per changed input, newest
_lock = Lock()


def counted(
    options: ExplainOptions, pictures: int, raw: bool, batched: bool, model: str = ""
) -> Cost:
    """The cost for a sample with so many pictures; `raw`: they are drawn from raw events.

    `batched`: whether the model takes several inputs at once.  The seconds are known once the
    model was measured in this process.
    """
    first = len(cells.coarse(options))
    moments = pictures * (2 if raw else 1) if options.time and pictures > 1 else 0
    groups = (1, first, cells.count(options) - first, moments)  # computed one after another
    encodings = sum(groups)
    passes = sum(ceil(size / options.batch) for size in groups) if batched else encodings
    each = measured(model)
    return Cost(encodings, passes, None if each is None else encodings * each / 1000)


def measured(model: str) -> float | None:
    """Milliseconds per changed input; None if this process has not measured the model."""
    with _lock:
        return _measured.get(model)


def remember(model: str, ms: float) -> None:
    with _lock:
        _measured[model] = ms
