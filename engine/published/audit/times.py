"""Rules about times: warm-up, totals, stages that were never measured.

Boundary: each rule yields its findings, or nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from engine.analysis.number_text import count, precise_ms
from engine.published.audit import accepted, omissions
from engine.published.audit.finding import CheckResult, name_of, verb
from engine.published.read import corrected, plausible_units, stated_figures
from engine.published.read.corrected import is_whole, part_of, stage_sum, stages_of
from engine.published.read.record_types import AnswerRecord, Claim, ResultFile, milliseconds

TOLERANCE = 0.02
OWN_SLACK_MS = 0.5


def warm_up(file: ResultFile) -> Iterator[CheckResult]:
    """The first record includes a warm-up, which is in the mean."""
    records = [r for r in file.records if not (file.own and r.marks & {"cached"})]
    for place, stages in corrected.cold_stages(records, file.group).items():
        record = next(record for record in records if (record.model, record.path) == place)
        if "cold" in record.marks or plausible_units.doubts_times(file, record.model):
            continue  # own rows are marked as cold and are in no mean
        for key, usual in stages.items():
            values = [one.times[key] for one in records if one.model == record.model
                      and key in one.times]  # fmt: skip
            yield _warm_up(file, record, key, usual, values)


def _warm_up(
    file: ResultFile, record: AnswerRecord, key: str, usual: float, values: list[float]
) -> CheckResult:
    """values: of all records, the first record's value first."""
    first, mean, rest = values[0], statistics.fmean(values), statistics.fmean(values[1:])
    return CheckResult(
        f"{name_of(file, record.model)}: the first {key} took {_ms(key, first)}, the median of the "
        f"others is {_ms(key, usual)}. This warm-up makes the mean {mean / rest:.2f} times as "
        "long.",
        [record],
        {"first": first, "median_of_rest": usual, "mean": mean, "mean_without_first": rest},
        "The corrected mean of this stage does not include it.",
        record.model,
    )


def _ms(key: str, value: float) -> str:
    return precise_ms(milliseconds(key, value))


def totals(file: ResultFile) -> Iterator[CheckResult]:
    """A record's total is not the sum of its stages."""
    for model in file.models:
        if plausible_units.doubts_times(file, model):
            continue
        known = stages_of(file.of(model), file.group)
        explained = {
            record.path
            for omission in omissions.omissions(file, model)
            if file.group.stages.get(omission.key) == "total"
            for record in omission.records
        }
        found = [
            record
            for record in file.of(model)
            if record.path not in explained
            and (file.own or is_whole(record, file.group, known))
            and _gap(record, file)
        ]
        if found:
            one = max(found, key=lambda record: abs(_gap(record, file)))
            total = part_of(one, file.group, "total")
            stages = stage_sum(one, file.group)
            if total is None or stages is None:
                continue
            yield CheckResult(
                f"{name_of(file, model)}: {count(len(found), 'total')} "
                f"{verb(len(found), 'is not the sum of its', 'are not the sum of their')} stages; "
                f"{one.path} is {_ms(total[0], total[1])}, its stages sum to "
                f"{_ms(total[0], stages)}.",
                found,
                {"total": total[1], "stages": stages},
                "" if file.own else "A total below the sum of its stages is replaced by this sum.",
                model,
            )


def _gap(record: AnswerRecord, file: ResultFile) -> float:
    """Total minus stages; 0 if the difference is within the tolerance."""
    total, stages = part_of(record, file.group, "total"), stage_sum(record, file.group)
    if total is None or stages is None or not file.group.has_stage_times:
        return 0.0
    gap = total[1] - stages
    if gap > 0 and not file.own and _lacks_stage(record, file):
        return 0.0  # the rest may be the missing stage
    if file.own:
        rest = record.sizes.get("unaccounted_ms", gap)
        wrong = abs(gap - rest) > OWN_SLACK_MS or gap < -OWN_SLACK_MS
    else:
        wrong = abs(gap) > TOLERANCE * total[1]
    return gap if wrong else 0.0


def _lacks_stage(record: AnswerRecord, file: ResultFile) -> bool:
    """Whether the record lacks a part that its group times."""
    there = {file.group.stages.get(key) for key in record.times}
    return not there >= set(file.group.stages.values()) - {"total"}


def placeholder(file: ResultFile) -> Iterator[CheckResult]:
    """A stage of 0 ms, or nearly, was never measured."""
    for model, keys in corrected.placeholders(file.records, file.group).items():
        if plausible_units.doubts_times(file, model):
            continue
        records = file.of(model)
        for key in keys:
            most = max(record.times[key] for record in records if key in record.times)
            longest = f"never takes more than {1000 * milliseconds(key, most):.2g} microseconds"
            yield CheckResult(
                f"{name_of(file, model)}: {key} {longest if most else 'is always 0'}: this is a "
                "placeholder. The stage was not measured.",
                records,
                {"longest": most},
                "It is shown as not measured, not as 0.",
                model,
            )
    for claim in file.claims:
        key = claim.path.rsplit(".", 1)[-1]
        if claim.rows is None and claim.stated == 0 and key in ("vision_ms", "vision_time"):
            yield CheckResult(
                f"{claim.path} is 0: the stage was not measured there.",
                figures={"stated": 0.0},
                correction="It is shown as not measured, not as 0.",
                paths=(claim.path,),
            )


def summaries(file: ResultFile) -> Iterator[CheckResult]:
    """A figure of the summary does not follow from its rows."""
    explained = {path for found in omissions.left_out(file) for path in found.paths}
    wrong = [claim for claim in file.claims if _contradicted(claim) and claim.path not in explained
             and accepted.judged(file, claim.path)]  # fmt: skip
    for claim in wrong[:20]:
        yield CheckResult(
            f"{claim.path} is stated as {claim.stated:.6g}, but {claim.of} is {claim.rows:.6g}.",
            figures={"stated": claim.stated, "rows": float(claim.rows or 0.0)},
            correction="The figure from the rows is shown.",
            paths=(claim.path,),
        )


def _contradicted(claim: Claim) -> bool:
    return claim.rows is not None and not stated_figures.close(claim.stated, claim.rows)
