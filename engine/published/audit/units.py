"""Rules about units: seconds and milliseconds mixed between records or between models.

Boundary: each rule yields its findings, or nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from engine.analysis.number_text import count
from engine.published.audit.finding import CheckResult, name_of, verb
from engine.published.read import plausible_units
from engine.published.read.corrected import is_whole, part_of, stage_sum, stages_of
from engine.published.read.record_types import NAMES, AnswerRecord, ResultFile, milliseconds
from engine.published.read.who_answered import KEY_FAMILY

UNIT_LOW, UNIT_HIGH = 300.0, 3000.0
UNIT_FROM = 3
DOUBTED = "Ratios of these times are not reliable."


def units(file: ResultFile) -> Iterator[CheckResult]:
    """Some times are a thousand times the others: two units are mixed."""
    for model in file.models:
        rated = _rated(file, model)
        if len(rated) < UNIT_FROM:
            continue
        usual = statistics.median(rate for _, rate in rated)
        found = [(r, rate / usual) for r, rate in rated if _thousandfold(rate / usual)]
        if found:
            less = "a thousandth of" if found[0][1] < 1 else "a thousand times"
            yield CheckResult(
                f"{name_of(file, model)}: {count(len(found), 'record')} "
                f"{verb(len(found), 'takes', 'take')} about {less} the others' time per token "
                f"({found[0][1]:,.4g} times): seconds and milliseconds are mixed.",
                [record for record, _ in found],
                {"ratio": found[0][1]},
                model=model,
            )


def _thousandfold(ratio: float) -> bool:
    return any(UNIT_LOW < one < UNIT_HIGH for one in (ratio, 1 / ratio))


def _rated(file: ResultFile, model: str) -> list[tuple[AnswerRecord, float]]:
    """(record, total ms per token), or the total ms if the model's tokens are not counted.

    Records without a count, or without a total and all stages, are left out.
    """
    records = file.of(model, corrected=True)
    known = stages_of(records, file.group)
    counted = any(record.tokens for record in records)
    found = []
    for record in records:
        total = part_of(record, file.group, "total")
        if total is None and not is_whole(record, file.group, known):
            continue
        value = milliseconds(*total) if total else _stages_ms(record, file)
        if value and (record.tokens or not counted):
            found.append((record, value / (record.tokens or 1.0)))
    return found


def _stages_ms(record: AnswerRecord, file: ResultFile) -> float | None:
    stages = stage_sum(record, file.group)
    return stages if stages is None or file.unit == "ms" else 1000 * stages


def implausible(file: ResultFile) -> Iterator[CheckResult]:
    """Times that no device can have: they are not in the file's unit."""
    for doubt in plausible_units.doubts(file):
        yield CheckResult(
            f"{_whose(file, doubt.model)}: {doubt.what} takes {_span(doubt.ms)} (median), but only "
            f"{_span(doubt.low)} to {_span(doubt.high)} is possible. The times are not in the "
            "file's unit.",
            file.of(doubt.model),
            {"ms": doubt.ms, "possible_from_ms": doubt.low, "possible_to_ms": doubt.high},
            DOUBTED,
            doubt.model if doubt.model in file.models else "",
            () if doubt.model in file.models else (f"{doubt.model}.decode_ms",),
        )
    found = plausible_units.apart(file)
    if found:
        yield CheckResult(
            f"{found.what.capitalize()} takes {_span(found.draft_ms)} for "
            f"{name_of(file, file.draft)} and {_span(found.target_ms)} for "
            f"{name_of(file, file.target)}: models of the same size do not differ by a factor of "
            "100, so one of the two is in another unit.",
            [*file.of(file.draft), *file.of(file.target)],
            {"draft_ms": found.draft_ms, "target_ms": found.target_ms},
            DOUBTED,
        )


def _whose(file: ResultFile, model: str) -> str:
    if model in file.models:
        return name_of(file, model)
    return f"{model} ({NAMES[KEY_FAMILY[model.rpartition('.')[2]]]})"


def _span(ms: float) -> str:
    """ "12 ms", "5 s", "0.02 ms"."""
    return f"{ms / 1000:,.4g} s" if ms >= 1000 else f"{ms:,.3g} ms"
