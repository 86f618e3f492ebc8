"""Whether times can be in their file's unit: milliseconds read as seconds are 1,000 times too long.

The models of published rows have seven billion parameters.  No device reads 3.5 GB of 4-bit weights
in under 0.1 ms for a token, or multiplies them with some 600 positions in under 1 ms; 5 s for a
token or 30 s for a prefill is not plausible either.  If the times of a file's two models differ by
a factor of 100, they are in different units.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from engine.published.read.record_types import AnswerRecord, ResultFile

TOKEN_MS = (0.1, 5_000.0)
PREFILL_MS = (1.0, 30_000.0)
APART = 100.0
MEANS = "stage_timing"  # means of both models, in files without their rows


@dataclass(frozen=True)
class Doubt:
    """Why the times of a model cannot be in the file's unit.

    model: its name in the file, or the path of its means.  what: "a token" or "a prefill"; ms: the
    median time; low and high: the possible range.
    """

    model: str
    what: str
    ms: float
    low: float
    high: float


@dataclass(frozen=True)
class Apart:
    """The times of draft and target, in ms, that are possible alone but too far from each other.

    what: "a token", "a prefill", or "an answer" if neither is known for both.
    """

    what: str
    draft_ms: float
    target_ms: float


_KNOWN: WeakKeyDictionary[ResultFile, tuple[Doubt, ...]] = (
    WeakKeyDictionary()
)  # several rules use it


def doubts(file: ResultFile) -> tuple[Doubt, ...]:
    """The models whose times are impossible in the file's unit, at most one doubt each."""
    if file not in _KNOWN:
        every = [*((model, _middles(file, model)) for model in file.models), *_means(file)]
        _KNOWN[file] = tuple(doubt for model, found in every if (doubt := _doubt(model, found)))
    return _KNOWN[file]


def doubts_times(file: ResultFile, model: str) -> bool:
    """Whether this model's times are not usable: they, or those of the model compared with it, are
    in another unit."""
    if apart(file) is not None and model in (file.draft, file.target):
        return True
    return any(doubt.model == model for doubt in doubts(file))


def apart(file: ResultFile) -> Apart | None:
    """Draft and target, if their times differ by a factor of 100 and each is possible alone."""
    if not file.draft or doubts(file):
        return None
    mine, other = _middles(file, file.draft), _middles(file, file.target)
    both = [what for what in mine if what in other]
    for what in both[:-1] or both:
        if not 1 / APART < mine[what] / other[what] < APART:
            return Apart(what, mine[what], other[what])
    return None


def is_doubtful(file: ResultFile) -> bool:
    """Whether ratios of the file's two models are not usable."""
    compared = {file.draft, file.target, f"{MEANS}.eventgpt", f"{MEANS}.videollava"}
    return apart(file) is not None or any(doubt.model in compared for doubt in doubts(file))


def _doubt(model: str, found: dict[str, float]) -> Doubt | None:
    for what, (low, high) in (("a token", TOKEN_MS), ("a prefill", PREFILL_MS)):
        if what in found and not low <= found[what] <= high:
            return Doubt(model, what, found[what], low, high)
    return None


def _middles(file: ResultFile, model: str) -> dict[str, float]:
    """The median ms of a token, a prefill and an answer, as far as known, in this order."""
    records = file.of(model, corrected=True)
    found = {
        "a token": [_per_token(record) for record in records],
        "a prefill": [record.ms("prefill") for record in records],
        "an answer": [one[1] if (one := record.decoding()) else None for record in records],
    }
    known = {what: [ms for ms in values if ms] for what, values in found.items()}
    return {what: statistics.median(values) for what, values in known.items() if values}


def _per_token(record: AnswerRecord) -> float | None:
    spent = record.decoding()
    return spent[1] / record.tokens if spent and record.tokens else None


def _means(file: ResultFile) -> Iterator[tuple[str, dict[str, float]]]:
    """The mean decode time per token that a file states for models without rows."""
    stated = {claim.path: claim.stated for claim in file.claims if claim.path.startswith(MEANS)}
    for model in ("eventgpt", "videollava"):
        place = f"{MEANS}.{model}"
        spent, tokens = (stated.get(f"{place}.{key}") for key in ("decode_ms", "avg_tokens"))
        if spent and tokens:
            yield place, {"a token": spent / tokens}
