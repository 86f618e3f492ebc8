"""Whether times can be in their file's unit: milliseconds read as seconds are 1,000 times too long.

The models of published rows have seven billion parameters.  No device reads 3.5 GB of 4-bit weights
in under 0.1 ms for a token, or multiplies them with some 600 positions in under 1 ms; 5 s for a
token or 30 s for a prefill is not plausible either.  If the times of a file's two models differ by
a factor of 100, they are in different units.
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

from engine.published.read.record_types import ResultFile

POSSIBLE_MS = {"a token": (0.1, 5_000.0), "a prefill": (1.0, 30_000.0)}
APART = 100.0
MEANS = "stage_timing"  # means of both models, in files without their rows
_OF_MEANS = (f"{MEANS}.eventgpt", f"{MEANS}.videollava")


class Doubt(NamedTuple):
    """Why the times of a model cannot be in the file's unit.

    model: its name in the file, or the path of its means.  what: "a token" or "a prefill"; ms: the
    median time; low and high: the possible range.
    """

    model: str
    what: str
    ms: float
    low: float
    high: float


class Apart(NamedTuple):
    """The times of draft and target, in ms, that are possible alone but too far from each other.

    what: "a token", "a prefill", or "an answer" if neither is known for both.
    """

    what: str
    draft_ms: float
    target_ms: float


def doubts(file: ResultFile) -> list[Doubt]:
    """The models whose times are impossible in the file's unit, at most one doubt each."""
    every = {model: _middles(file, model) for model in file.models}
    stated = {claim.path: claim.stated for claim in file.claims}
    for place in _OF_MEANS:  # models without rows
        spent, tokens = (stated.get(f"{place}.{key}") for key in ("decode_ms", "avg_tokens"))
        if spent and tokens:
            every[place] = {"a token": spent / tokens}
    found: dict[str, Doubt] = {}
    for model, times in every.items():
        for what, (low, high) in POSSIBLE_MS.items():
            if what in times and not low <= times[what] <= high:
                found.setdefault(model, Doubt(model, what, times[what], low, high))
    return list(found.values())


def doubts_times(file: ResultFile, model: str) -> bool:
    """Whether this model's times are not usable: they, or those of the model compared with it, are
    in another unit."""
    compared = model in (file.draft, file.target) and apart(file) is not None
    return compared or any(doubt.model == model for doubt in doubts(file))


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
    compared = {file.draft, file.target, *_OF_MEANS}
    return apart(file) is not None or any(doubt.model in compared for doubt in doubts(file))


def _middles(file: ResultFile, model: str) -> dict[str, float]:
    """The median ms of a token, a prefill and an answer, as far as known, in this order."""
    if ("middles", model) not in file.computed:
        records = [(record, record.decoding()) for record in file.of(model, corrected=True)]
        times = {
            "a token": [found[1] / r.tokens for r, found in records if found and r.tokens],
            "a prefill": [ms for record, _ in records if (ms := record.ms("prefill"))],
            "an answer": [found[1] for _, found in records if found],
        }
        middles = {what: statistics.median(ms) for what, ms in times.items() if ms}
        file.computed["middles", model] = middles
    known: dict[str, float] = file.computed["middles", model]
    return known
