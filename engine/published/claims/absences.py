"""Why a file has no evidence for a published claim.

Boundary: a ResultFile without both times in, a short reason out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.published.claims.claim_times import CLAIM_TIMES
from engine.published.read.record_types import ResultFile
from engine.published.read.who_answered import speaks_of_eventgpt

WHAT = {"overall": "a total", "decoding": "decoding", "loading": "loading"}


@dataclass(frozen=True)
class Without:
    """Files without evidence for a claim, for one reason."""

    reason: str
    files: tuple[str, ...]


def without(files: Sequence[ResultFile], name: str) -> tuple[Without, ...]:
    """The files grouped by reason."""
    found: dict[str, list[str]] = {}
    for file in files:
        found.setdefault(reason(file, name), []).append(file.name)
    return tuple(Without(why, tuple(names)) for why, names in found.items())


def reason(file: ResultFile, name: str) -> str:
    """Why this file lacks the two times of a claim ("overall", "decoding" or "loading")."""
    if file.status == "failed":
        return "the run failed: there is no result" if file.failures else "has no usable result"
    if file.status == "unknown":
        return "not usable: another kind of file, or damaged"
    if not file.draft:
        return "has times of the target alone and with drafts, but no rows of EventGPT"
    if not all(file.of(model) for model in (file.draft, file.target)):
        return "has answers of one model only"
    if not speaks_of_eventgpt(file):
        return "a model other than EventGPT or its comparison models answered"
    if not any(record.times for record in file.records):
        return "has no times"
    return _untimed(file, name)


def _untimed(file: ResultFile, name: str) -> str:
    claim_time = CLAIM_TIMES[name]
    timed = [
        any(claim_time(record) is not None for record in file.of(model))
        for model in (file.draft, file.target)
    ]
    if all(timed):
        return f"no sample has {WHAT[name]} of both models"
    if any(timed):
        return f"{WHAT[name]} is timed for one model only"
    if name == "overall":
        return "its totals do not include loading" if _has(file, "total") else "has no totals"
    if name == "loading" and _has(file, "load+preprocess"):
        return "loading is timed together with preprocessing"
    if name == "decoding" and _has(file, "total"):
        return "only whole answers are timed, decoding not separately"
    return f"{WHAT[name]} is not timed"


def _has(file: ResultFile, part: str) -> bool:
    keys = {key for record in file.records for key in record.times}
    return any(file.group.stages.get(key) == part for key in keys)
