"""Rules about times: warm-up, totals, stages that were never measured, units.

Boundary: each function yields what it found and says nothing otherwise.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from engine.audit.finding import Found, name_of
from engine.records import correct
from engine.records.correct import part_of, stage_sum
from engine.records.types import Claim, Record, ResultFile, milliseconds

MEAN_SHIFT = 0.05
TOLERANCE = 0.02
OWN_SLACK_MS = 0.5
UNIT_LOW, UNIT_HIGH = 300.0, 3000.0
UNIT_FROM = 3


def warm_up(file: ResultFile) -> Iterator[Found]:
    """The first record is a warm-up and stands in the mean."""
    records = [r for r in file.records if not (file.own and r.marks & {"cached"})]
    for path, stages in correct.cold_stages(records, file.group).items():
        record = next(one for one in records if one.path == path)
        if "cold" in record.marks:
            continue  # our own rows say so and stay out of means
        for key, usual in stages.items():
            yield from _warm_up(file, record, key, usual)


def _warm_up(file: ResultFile, record: Record, key: str, usual: float) -> Iterator[Found]:
    values = [one.times[key] for one in file.of(record.model) if key in one.times]
    mean, rest = sum(values) / len(values), sum(values[1:]) / (len(values) - 1)
    if mean < (1 + MEAN_SHIFT) * rest:
        return
    first = record.times[key]
    yield Found(
        f"{name_of(file, record.model)}: the first {key} took {_ms(key, first)}, the median of the "
        f"others is {_ms(key, usual)}: a warm-up makes the mean {mean / rest:.2f} times as long.",
        [record],
        {"first": first, "median_of_rest": usual, "mean": mean, "mean_without_first": rest},
        "The corrected mean of this stage leaves it out.",
        record.model,
    )


def _ms(key: str, value: float) -> str:
    return f"{milliseconds(key, value):,.4g} ms"


def totals(file: ResultFile) -> Iterator[Found]:
    """A record's total is not the sum of its stages."""
    for model in file.models:
        found = [record for record in file.of(model) if _gap(record, file)]
        if found:
            one = max(found, key=lambda record: abs(_gap(record, file)))
            total = part_of(one, file.group, "total")
            stages = stage_sum(one, file.group)
            if total is None or stages is None:
                continue
            yield Found(
                f"{name_of(file, model)}: {len(found):,} totals are not the sum of their stages; "
                f"{one.path} says {_ms(total[0], total[1])}, its stages make "
                f"{_ms(total[0], stages)}.",
                found,
                {"total": total[1], "stages": stages},
                "" if file.own else "A total that its stages exceed is replaced by their sum.",
                model,
            )


def _gap(record: Record, file: ResultFile) -> float:
    """How far a total is from its stages; 0 within what rounding and gaps allow."""
    total, stages = part_of(record, file.group, "total"), stage_sum(record, file.group)
    if total is None or stages is None or file.group.letter not in (*"ABCDE", "B'", "own"):
        return 0.0
    gap = total[1] - stages
    if file.own:
        rest = record.sizes.get("unaccounted_ms", gap)
        wrong = abs(gap - rest) > OWN_SLACK_MS or gap < -OWN_SLACK_MS
    else:
        wrong = abs(gap) > TOLERANCE * total[1]
    return gap if wrong else 0.0


def left_out(file: ResultFile) -> Iterator[Found]:
    """A summary's total is the sum of some stages only."""
    for claim in file.claims:
        model = next((one for one in file.models if f"{one}." in claim.path), "")
        if not claim.path.rsplit(".", 1)[-1].startswith("total_time") or not model:
            continue
        means = _stage_means(file, model)
        full = sum(means.values())
        missing = [key for key in means if _lacks(claim.stated, full, means[key])]
        if len(means) > 1 and missing:
            yield Found(
                f"{name_of(file, model)}: the stated total of {claim.stated:.4f} s leaves "
                f"{', '.join(missing)} out; the stages make {full:.4f} s.",
                figures={"stated": claim.stated, "stages": full},
                correction=f"The total is {full:.4f} s.",
                model=model,
                paths=(claim.path,),
            )


def _lacks(stated: float, full: float, mean: float) -> bool:
    """Whether a stated total is all stages but this one, which is not negligible."""
    return abs(stated - (full - mean)) < 0.005 * full and mean > 0.01 * full


def _stage_means(file: ResultFile, model: str) -> dict[str, float]:
    records = file.of(model)
    keys = [key for key, part in file.group.stages.items() if part != "total"]
    values = {key: [r.times[key] for r in records if key in r.times] for key in keys}
    return {key: sum(found) / len(found) for key, found in values.items() if found}


def placeholder(file: ResultFile) -> Iterator[Found]:
    """A stage that takes no time was never measured."""
    for model, keys in correct.placeholders(file.records, file.group).items():
        records = file.of(model)
        for key in keys:
            most = max(record.times[key] for record in records if key in record.times)
            yield Found(
                f"{name_of(file, model)}: {key} never takes more than "
                f"{1000 * milliseconds(key, most):.2g} microseconds: it is a placeholder, the "
                "stage was not measured.",
                records,
                {"longest": most},
                "It is shown as not measured, not as 0.",
                model,
            )
    for claim in file.claims:
        key = claim.path.rsplit(".", 1)[-1]
        if claim.rows is None and claim.stated == 0 and key in ("vision_ms", "vision_time"):
            yield Found(
                f"{claim.path} is 0: the stage was not measured there.",
                figures={"stated": 0.0},
                correction="It is shown as not measured, not as 0.",
                paths=(claim.path,),
            )


def units(file: ResultFile) -> Iterator[Found]:
    """Some records are a thousand times the others: two units are mixed."""
    for model in file.models:
        rated = [(record, rate) for record in file.of(model) if (rate := _rate(record, file))]
        if len(rated) < UNIT_FROM:
            continue
        usual = statistics.median(rate for _, rate in rated)
        found = [(r, rate / usual) for r, rate in rated if _thousandfold(rate / usual)]
        if found:
            yield Found(
                f"{name_of(file, model)}: {len(found):,} times are about a thousand times the "
                f"others' ({found[0][1]:,.4g}): seconds and milliseconds are mixed.",
                [record for record, _ in found],
                {"ratio": found[0][1]},
                model=model,
            )


def _thousandfold(ratio: float) -> bool:
    return any(UNIT_LOW < one < UNIT_HIGH for one in (ratio, 1 / ratio))


def _rate(record: Record, file: ResultFile) -> float | None:
    """Milliseconds in all per token, or in all where no tokens are counted."""
    total = part_of(record, file.group, "total")
    value = milliseconds(*total) if total else stage_sum(record, file.group)
    return value / max(record.tokens or 1.0, 1.0) if value else None


def summaries(file: ResultFile) -> Iterator[Found]:
    """A figure of the summary is not what its rows give."""
    said = {path for found in left_out(file) for path in found.paths}
    wrong = [claim for claim in file.claims if _contradicted(claim) and claim.path not in said]
    for claim in wrong[:20]:
        yield Found(
            f"{claim.path} is stated as {claim.stated:.6g}, but {claim.of} is {claim.rows:.6g}.",
            figures={"stated": claim.stated, "rows": float(claim.rows or 0.0)},
            correction="The figure of the rows is shown.",
            paths=(claim.path,),
        )


def _contradicted(claim: Claim) -> bool:
    if claim.rows is None:
        return False
    return abs(claim.stated - claim.rows) > max(0.005 * abs(claim.rows), 1e-6)
