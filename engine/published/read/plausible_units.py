"""Whether times can be in their file's unit: milliseconds read as seconds are a thousandfold.

Published rows are of models of seven billion parameters.  No device reads 3.5 GB of 4-bit weights
in under 0.1 ms for a token, or multiplies them with some 600 positions in under 1 ms; and nobody
waited 5 s for each token or 30 s for a prefill.  Two models of one file that differ a hundredfold
are in two units.

Boundary: arithmetic over a ResultFile.  Own runs are not looked at: their times are taken by one
clock, and neither a demo model's nor a slow processor's are wrong.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from engine.published.read.answer_pairs import decoding
from engine.published.read.corrected import part_of
from engine.published.read.record_types import AnswerRecord, ResultFile, milliseconds

TOKEN_MS = (0.1, 5_000.0)
PREFILL_MS = (1.0, 30_000.0)
APART = 100.0
MEANS = "stage_timing"  # of both models, where a file has no rows of them


@dataclass(frozen=True)
class Doubt:
    """Why the times of a model cannot be in the file's unit.

    model: its name in the file, or the place of its means.  what: "a token" or "a prefill"; ms:
    what it takes in the middle of the records, low and high: what is possible.
    """

    model: str
    what: str
    ms: float
    low: float
    high: float


@dataclass(frozen=True)
class Apart:
    """Both models are possible alone, and too far from each other: the draft's and target's ms.

    what: "a token", "a prefill", or "an answer" where neither is known of both.
    """

    what: str
    draft_ms: float
    target_ms: float


_KNOWN: WeakKeyDictionary[ResultFile, tuple[Doubt, ...]] = WeakKeyDictionary()  # many rules ask


def doubts(file: ResultFile) -> tuple[Doubt, ...]:
    """The models whose times are impossible in the file's unit, at most one doubt of each."""
    if file.own:
        return ()
    if file not in _KNOWN:
        every = [*((model, _middles(file, model)) for model in file.models), *_means(file)]
        _KNOWN[file] = tuple(doubt for model, found in every if (doubt := _doubt(model, found)))
    return _KNOWN[file]


def doubts_times(file: ResultFile, model: str) -> bool:
    """Whether no time of this model can be told: it, or one of the two compared, is in another
    unit."""
    if apart(file) is not None and model in (file.draft, file.target):
        return True
    return any(doubt.model == model for doubt in doubts(file))


def apart(file: ResultFile) -> Apart | None:
    """The draft and the target, where they differ a hundredfold and neither is impossible."""
    if file.own or not file.draft or doubts(file):
        return None
    mine, other = _middles(file, file.draft), _middles(file, file.target)
    both = [what for what in mine if what in other]
    for what in both[:-1] or both:
        if not 1 / APART < mine[what] / other[what] < APART:
            return Apart(what, mine[what], other[what])
    return None


def is_doubtful(file: ResultFile) -> bool:
    """Whether no ratio of the file's two models can be believed."""
    compared = {file.draft, file.target, f"{MEANS}.eventgpt", f"{MEANS}.videollava"}
    return apart(file) is not None or any(doubt.model in compared for doubt in doubts(file))


def _doubt(model: str, found: dict[str, float]) -> Doubt | None:
    for what, (low, high) in (("a token", TOKEN_MS), ("a prefill", PREFILL_MS)):
        if what in found and not low <= found[what] <= high:
            return Doubt(model, what, found[what], low, high)
    return None


def _middles(file: ResultFile, model: str) -> dict[str, float]:
    """The median ms of a token, a prefill and an answer, where the file has them, in this order."""
    records = file.of(model, corrected=True)
    prefills = (part_of(record, file.group, "prefill") for record in records)
    found = {
        "a token": [_per_token(file, record) for record in records],
        "a prefill": [milliseconds(*one) if one else None for one in prefills],
        "an answer": [one[1] if (one := decoding(record, file)) else None for record in records],
    }
    known = {what: [ms for ms in values if ms] for what, values in found.items()}
    return {what: statistics.median(values) for what, values in known.items() if values}


def _per_token(file: ResultFile, record: AnswerRecord) -> float | None:
    spent = decoding(record, file)
    return spent[1] / record.tokens if spent and record.tokens else None


def _means(file: ResultFile) -> Iterator[tuple[str, dict[str, float]]]:
    """Means of decoding that a file states for models of which it has no rows."""
    stated = {claim.path: claim.stated for claim in file.claims if claim.path.startswith(MEANS)}
    for model in ("eventgpt", "videollava"):
        place = f"{MEANS}.{model}"
        spent, tokens = (stated.get(f"{place}.{key}") for key in ("decode_ms", "avg_tokens"))
        if spent and tokens:
            yield place, {"a token": spent / tokens}
