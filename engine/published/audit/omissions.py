"""The rule about totals that do not include all stages, whatever their keys are called.

A stated total is compared with sums of a record's stages.  It omits stages if it equals the sum of
the same subset of stages in most records and the difference is more than rounding.

Boundary: each rule yields its findings, or nothing; stages in milliseconds.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from engine.analysis.number_text import precise_ms
from engine.published.audit.finding import CheckResult, name_of, share
from engine.published.read import corrected, plausible_units
from engine.published.read.corrected import is_whole, stages_of
from engine.published.read.file_reading import SHORT
from engine.published.read.record_types import AnswerRecord, Claim, ResultFile, milliseconds
from engine.published.read.who_answered import KEY_FAMILY

Stages = Mapping[str, float]  # a record's stages in ms by their keys
MOST = 0.8  # of the records have to agree
CLOSE = 0.002  # of a total: files round to three or four digits
FEW, EXACT = 3, 1e-4  # records below FEW have to agree to EXACT
LEAST = 0.01  # of all stages: what is missing has to be more
MEAN = 0.005  # of a stated mean, which may be over other records
MANY_STAGES = 8  # a file with more is not searched
# keys that name a part of a run, or no time: they are not expected to include all stages
_PART = re.compile(
    r"prefill|vision|load|prep|stage|draft|decod|generat|first|ttft|tpot|tok|step|length|cach|"
    r"infer|forward|gpu|model|compute|only|without|excl|mean|std|_mb$|_gb$|speed|rate|ratio|count"
)
_WHOLE = re.compile(r"total|e2e|end_?to_?end|wall|overall|elapsed|complete|latency|duration|^time$")
_SPREAD = re.compile(r"(^|_)(std|min|max|var|median|p\d+)(_|$)")


@dataclass(frozen=True)
class Omission:
    """A key of a model whose values omit stages, and the records concerned."""

    key: str
    missing: tuple[str, ...]
    records: tuple[AnswerRecord, ...]
    of: int


def left_out(file: ResultFile) -> Iterator[CheckResult]:
    """A total in records or in a summary is the sum of some stages only."""
    if file.own:
        return
    for model in file.models:
        if not plausible_units.doubts_times(file, model):
            yield from _of_records(file, model)
            yield from _of_claims(file, model)


def _of_records(file: ResultFile, model: str) -> Iterator[CheckResult]:
    for one in omissions(file, model):
        record = one.records[0]
        stages = stages_ms(file, record)
        stated, full = _stated(file, record, one.key), math.fsum(stages.values())
        yield CheckResult(
            f"{name_of(file, model)}: {one.key} does not include {', '.join(one.missing)} in "
            f"{share(len(one.records), one.of, 'record')}; the first states {precise_ms(stated)}, "
            f"its stages sum to {precise_ms(full)}.",
            one.records,
            {"stated_ms": stated, "stages_ms": full},
            f"The total of the first is {precise_ms(full)}.",
            model,
        )


def stages_ms(file: ResultFile, record: AnswerRecord) -> dict[str, float]:
    """A record's stages in ms, without stages that were never measured."""
    keys = stages_of([record], file.group)
    unmeasured = corrected.PLACEHOLDER_MS
    found = {key: milliseconds(key, record.times[key]) for key in file.group.stages if key in keys}
    return {key: value for key, value in found.items() if value > unmeasured}


def omissions(file: ResultFile, model: str) -> tuple[Omission, ...]:
    """The keys of a model's records that state the sum of some stages only."""
    records = file.of(model)
    known = stages_of(records, file.group)
    whole = [record for record in records if is_whole(record, file.group, known)]
    if file.own or not 2 <= len(known) <= MANY_STAGES:
        return ()
    keys = dict.fromkeys(key for r in whole for key in (*r.times, *r.sizes) if key not in known)
    every = (_omission(file, key, whole) for key in keys if not _PART.search(_named(key)))
    return tuple(one for one in every if one is not None)


def _named(key: str) -> str:
    """The last part of a key, which describes the time."""
    return key.rsplit(".", 1)[-1].lower()


def _omission(file: ResultFile, key: str, whole: Sequence[AnswerRecord]) -> Omission | None:
    rows = [(r, _stated(file, r, key), stages_ms(file, r)) for r in whole if _has(r, key)]
    slack = CLOSE if len(rows) >= FEW else EXACT
    single = file.group.stages.get(key) == "total" or bool(_WHOLE.search(_named(key)))
    votes: Counter[tuple[str, ...]] = Counter()
    for _, stated, stages in rows:
        if not _is(stated, math.fsum(stages.values()), slack):
            votes.update(_missing(stated, stages, slack, 1 if single else 2))
    for missing, count in sorted(votes.items(), key=lambda vote: (-vote[1], len(vote[0]))):
        found = tuple(r for r, stated, stages in rows if _fits(stated, stages, missing, slack))
        if count >= MOST * len(rows) and _is_large(found, file, missing):
            return Omission(key, missing, found, len(rows))
    return None


def _has(record: AnswerRecord, key: str) -> bool:
    return record.times.get(key, record.sizes.get(key, 0.0)) > 0


def _stated(file: ResultFile, record: AnswerRecord, key: str) -> float:
    """In ms; a number whose key names no time is in the file's unit."""
    if key in record.times:
        return milliseconds(key, record.times[key])
    return record.sizes[key] * (1 if file.unit == "ms" else 1000)


def _is(stated: float, value: float, slack: float) -> bool:
    return abs(stated - value) <= slack * abs(stated)


def _missing(stated: float, stages: Stages, slack: float, least: int) -> Iterator[tuple[str, ...]]:
    """Sets of stages whose omission explains the stated time; at least `least` stages remain."""
    for size in range(1, len(stages) - least + 1):
        for missing in combinations(stages, size):
            if _fits(stated, stages, missing, slack):
                yield missing


def _fits(stated: float, stages: Stages, missing: Sequence[str], slack: float) -> bool:
    rest = math.fsum(value for key, value in stages.items() if key not in missing)
    return all(key in stages for key in missing) and _is(stated, rest, slack)


def _is_large(records: Sequence[AnswerRecord], file: ResultFile, missing: Sequence[str]) -> bool:
    """Whether each missing stage is larger than a rounding error."""
    every = [stages_ms(file, record) for record in records]
    return all(
        statistics.median(one[key] / math.fsum(one.values()) for one in every) > LEAST
        for key in missing
    )


def _of_claims(file: ResultFile, model: str) -> Iterator[CheckResult]:
    means, lost = _stage_means(file, model)
    full = math.fsum(means.values())
    for claim in file.claims if 2 <= len(means) <= MANY_STAGES else ():
        if not _speaks_of(claim, model, file) or _is_settled(claim):
            continue
        stated = _claim_ms(claim, file)
        missing = _lacks(stated, means, lost)
        if missing and not _is(stated, full, MEAN):
            yield CheckResult(
                f"{name_of(file, model)}: the stated total of {precise_ms(stated)} does not "
                f"include {', '.join(missing)} ({claim.path}); the stages sum to "
                f"{precise_ms(full)}.",
                figures={"stated_ms": stated, "stages_ms": full},
                correction=f"The total is {precise_ms(full)}.",
                model=model,
                paths=(claim.path,),
            )


def _is_settled(claim: Claim) -> bool:
    """Whether the rows state the same figure (then they are checked), or lack values for it."""
    if claim.rows is None:
        return bool(claim.of)
    return _is(claim.stated, claim.rows, MEAN)


def _speaks_of(claim: Claim, model: str, file: ResultFile) -> bool:
    """Whether a summary's figure is a total of this model, or a total without a model name."""
    key = _named(claim.path)
    if not _WHOLE.search(re.sub(r"(_|^)(avg|mean)(_|$)", "", key)) or _SPREAD.search(key):
        return False
    words = set(re.split(r"[._]", claim.path.lower()))
    named = {one for one in file.models if words & _words(one)}
    part = _PART.search(re.sub(r"(_|^)(avg|mean)(_|$)", "", key))
    return not part and (model in named if named else model in (file.draft, file.target))


def _words(model: str) -> set[str]:
    """The names that summaries use for a model."""
    family = KEY_FAMILY.get(model)
    same = {name for name, one in KEY_FAMILY.items() if one == family and family}
    return {model.lower(), *same, *(name for name, one in SHORT.items() if one in (model, *same))}


def _claim_ms(claim: Claim, file: ResultFile) -> float:
    in_ms = "_ms" in _named(claim.path) or file.unit == "ms"
    return claim.stated if in_ms else 1000 * claim.stated


def _lacks(stated: float, means: Stages, lost: float) -> tuple[str, ...]:
    """The smallest set of stages whose omission explains a stated mean.  Each must be larger than
    the error from records that are not in the means."""
    full = math.fsum(means.values())
    if stated <= 0:
        return ()
    for missing in _missing(stated, means, MEAN, 1):
        if all(means[key] > (LEAST + lost) * full for key in missing):
            return missing
    return ()


def _stage_means(file: ResultFile, model: str) -> tuple[dict[str, float], float]:
    """Mean stages in ms over the records that have all stages, and the share of other records."""
    records = file.of(model)
    known = stages_of(records, file.group)
    whole = [record for record in records if is_whole(record, file.group, known)]
    if not whole:
        return {}, 1.0
    means = {key: statistics.fmean(milliseconds(key, record.times[key]) for record in whole)
             for key in file.group.stages if key in known}  # fmt: skip
    return means, 1 - len(whole) / len(records)
