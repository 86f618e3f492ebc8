"""Rules about times: warm-ups, totals, stages that are missing or were never measured, units.

A stated total is compared with sums of a record's stages.  It omits stages if it equals the sum of
the same subset of stages in most records and the difference is more than rounding.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from engine.published.audit.finding import (
    AuditFinding,
    each_model,
    name_of,
    paths_of,
    share,
    verb,
)
from engine.published.audit.token_rules import judged
from engine.published.read import corrected, plausible_units, stated_figures
from engine.published.read.file_reading import SHORT
from engine.published.read.record_types import (
    NAMES,
    AnswerRecord,
    Claim,
    ResultFile,
    milliseconds,
)
from engine.published.read.who_answered import KEY_FAMILY
from engine.quoting import count, precise_ms

Stages = Mapping[str, float]  # a record's stages in ms by their keys
TOLERANCE = 0.02
NOT_MEASURED = "It is shown as not measured, not as 0."
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
UNIT_LOW, UNIT_HIGH = 300.0, 3000.0
UNIT_FROM = 3
DOUBTED = "Ratios of these times are not reliable."


def warm_up(file: ResultFile, model: str) -> Iterator[AuditFinding]:
    """The first record includes a warm-up, which is in the mean."""
    records = file.of(model)
    for (_, path), stages in corrected.cold_stages(records).items():
        for key, usual in stages.items():
            values = [record.times[key] for record in records if key in record.times]
            first, mean, rest = values[0], statistics.fmean(values), statistics.fmean(values[1:])
            yield AuditFinding(
                f"the first {key} took {_ms(key, first)}, the median of the others is "
                f"{_ms(key, usual)}. This warm-up makes the mean {mean / rest:.2f} times as long.",
                (path,),
                {"first": first, "median_of_rest": usual, "mean": mean, "mean_without_first": rest},
                "The corrected mean of this stage does not include it.",
            )


def _ms(key: str, value: float) -> str:
    return precise_ms(milliseconds(key, value))


def totals(file: ResultFile, model: str) -> Iterator[AuditFinding]:
    """A record's total is not the sum of its stages."""
    explained = {
        record.path
        for omission in omissions(file, model)
        if file.group.stages.get(omission.key) == "total"
        for record in omission.records
    }
    every = [(record, _gap(record)) for record in file.whole(model)]
    found = [(record, gap) for record, gap in every if gap and record.path not in explained]
    if not found:
        return
    one, _ = max(found, key=lambda pair: abs(pair[1]))
    key, total = one.part("total") or ("", 0.0)
    stages = one.stage_sum or 0.0
    yield AuditFinding(
        f"{count(len(found), 'total')} "
        f"{verb(len(found), 'is not the sum of its', 'are not the sum of their')} stages; "
        f"{one.path} is {_ms(key, total)}, its stages sum to {_ms(key, stages)}.",
        paths_of(record for record, _ in found),
        {"total": total, "stages": stages},
        "A total below the sum of its stages is replaced by this sum.",
    )


def _gap(record: AnswerRecord) -> float:
    """Total minus stages; 0 if the difference is within the tolerance."""
    total, stages = record.part("total"), record.stage_sum
    if total is None or stages is None or not record.group.has_stage_times:
        return 0.0
    gap = total[1] - stages
    timed = {record.group.stages.get(key) for key in record.times}
    if gap > 0 and not timed >= set(record.group.stages.values()) - {"total"}:
        return 0.0  # the rest may be the missing stage
    return gap if abs(gap) > TOLERANCE * total[1] else 0.0


def placeholder(file: ResultFile) -> Iterator[AuditFinding]:
    """A stage of 0 ms, or nearly, was never measured."""
    yield from each_model(_placeholder, timed=True)(file)
    for claim in file.claims:
        key = claim.path.rsplit(".", 1)[-1]
        if claim.rows is None and claim.stated == 0 and key in ("vision_ms", "vision_time"):
            yield AuditFinding(
                f"{claim.path} is 0: the stage was not measured there.",
                (claim.path,),
                {"stated": 0.0},
                NOT_MEASURED,
            )


def _placeholder(file: ResultFile, model: str) -> Iterator[AuditFinding]:
    records = file.of(model)
    for key in corrected.placeholders(records).get(model, ()):
        most = max(record.times[key] for record in records if key in record.times)
        longest = f"never takes more than {1000 * milliseconds(key, most):.2g} microseconds"
        yield AuditFinding(
            f"{key} {longest if most else 'is always 0'}: this is a placeholder. The stage was not "
            "measured.",
            paths_of(records),
            {"longest": most},
            NOT_MEASURED,
        )


def summaries(file: ResultFile) -> Iterator[AuditFinding]:
    """A figure of the summary does not follow from its rows."""
    explained = {path for found in each_model(left_out, timed=True)(file) for path in found.paths}
    wrong = [
        claim
        for claim in file.claims
        if claim.rows is not None
        and not stated_figures.close(claim.stated, claim.rows)
        and claim.path not in explained
        and judged(file, claim.path)
    ]
    for claim in wrong[:20]:
        yield AuditFinding(
            f"{claim.path} is stated as {claim.stated:.6g}, but {claim.of} is {claim.rows:.6g}.",
            (claim.path,),
            {"stated": claim.stated, "rows": claim.rows or 0.0},
            "The figure from the rows is shown.",
        )


def units(file: ResultFile, model: str) -> Iterator[AuditFinding]:
    """Some times are a thousand times the others: two units are mixed."""
    rated = _rated(file, model)
    usual = statistics.median(rate for _, rate in rated) if len(rated) >= UNIT_FROM else 0.0
    ratios = [(record, rate / usual) for record, rate in rated if usual]
    found = [(record, ratio) for record, ratio in ratios
             if any(UNIT_LOW < one < UNIT_HIGH for one in (ratio, 1 / ratio))]  # fmt: skip
    if found:
        ratio = found[0][1]
        less = "a thousandth of" if ratio < 1 else "a thousand times"
        yield AuditFinding(
            f"{count(len(found), 'record')} {verb(len(found), 'takes', 'take')} about {less} the "
            f"others' time per token ({ratio:,.4g} times): seconds and milliseconds are mixed.",
            paths_of(record for record, _ in found),
            {"ratio": ratio},
        )


def _rated(file: ResultFile, model: str) -> list[tuple[AnswerRecord, float]]:
    """(record, total ms per token), or the total ms if the model's tokens are not counted.

    Records without a count, or without a total and all stages, are left out.
    """
    records = file.of(model, corrected=True)
    known = file.stages_of(model, corrected=True)
    counted = any(record.tokens for record in records)
    found = []
    for record in records:
        value = record.ms("total")
        if value is None and record.is_whole(known) and record.stage_sum:
            value = record.stage_sum * (1 if file.unit == "ms" else 1000)
        if value and (record.tokens or not counted):
            found.append((record, value / (record.tokens or 1.0)))
    return found


def implausible(file: ResultFile) -> Iterator[AuditFinding]:
    """Times that no device can have: they are not in the file's unit."""
    for doubt in plausible_units.doubts(file):
        known = doubt.model in file.models
        family = NAMES[KEY_FAMILY[doubt.model.rpartition(".")[2]]] if not known else ""
        whose = name_of(file, doubt.model) if known else f"{doubt.model} ({family})"
        yield AuditFinding(
            f"{whose}: {doubt.what} takes {_span(doubt.ms)} (median), but only "
            f"{_span(doubt.low)} to {_span(doubt.high)} is possible. The times are not in the "
            "file's unit.",
            paths_of(file.of(doubt.model)) if known else (f"{doubt.model}.decode_ms",),
            {"ms": doubt.ms, "possible_from_ms": doubt.low, "possible_to_ms": doubt.high},
            DOUBTED,
            doubt.model if known else "",
        )
    found = plausible_units.apart(file)
    if found:
        yield AuditFinding(
            f"{found.what.capitalize()} takes {_span(found.draft_ms)} for "
            f"{name_of(file, file.draft)} and {_span(found.target_ms)} for "
            f"{name_of(file, file.target)}: models of the same size do not differ by a factor of "
            "100, so one of the two is in another unit.",
            paths_of([*file.of(file.draft), *file.of(file.target)]),
            {"draft_ms": found.draft_ms, "target_ms": found.target_ms},
            DOUBTED,
        )


def _span(ms: float) -> str:
    """ "12 ms", "5 s", "0.02 ms"."""
    return f"{ms / 1000:,.4g} s" if ms >= 1000 else f"{ms:,.3g} ms"


@dataclass(frozen=True)
class Omission:
    """A key of a model whose values omit stages, and the records concerned."""

    key: str
    missing: tuple[str, ...]
    records: tuple[AnswerRecord, ...]
    of: int


def left_out(file: ResultFile, model: str) -> Iterator[AuditFinding]:
    """A total in records or in a summary is the sum of some stages only."""
    for one in omissions(file, model):
        record = one.records[0]
        stated, full = _stated(file, record, one.key), math.fsum(stages_ms(record).values())
        yield AuditFinding(
            f"{one.key} does not include {', '.join(one.missing)} in "
            f"{share(len(one.records), one.of, 'record')}; the first states {precise_ms(stated)}, "
            f"its stages sum to {precise_ms(full)}.",
            paths_of(one.records),
            {"stated_ms": stated, "stages_ms": full},
            f"The total of the first is {precise_ms(full)}.",
        )
    means, lost = _stage_means(file, model)
    full = math.fsum(means.values())
    for claim in file.claims if 2 <= len(means) <= MANY_STAGES else ():
        if not _is_total(claim, model, file) or _is_settled(claim):
            continue
        in_ms = "_ms" in _named(claim.path) or file.unit == "ms"
        stated = claim.stated if in_ms else 1000 * claim.stated
        missing = _lacks(stated, means, lost)
        if missing and not _is(stated, full, MEAN):
            yield AuditFinding(
                f"the stated total of {precise_ms(stated)} does not include {', '.join(missing)} "
                f"({claim.path}); the stages sum to {precise_ms(full)}.",
                (claim.path,),
                {"stated_ms": stated, "stages_ms": full},
                f"The total is {precise_ms(full)}.",
            )


def stages_ms(record: AnswerRecord) -> dict[str, float]:
    """A record's stages in ms, without stages that were never measured."""
    keys = record.group.added(record.times)
    ms = {key: milliseconds(key, record.times[key]) for key in record.group.stages if key in keys}
    return {key: value for key, value in ms.items() if value > corrected.PLACEHOLDER_MS}


def omissions(file: ResultFile, model: str) -> list[Omission]:
    """The keys of a model's records that state the sum of some stages only."""
    known, whole = file.stages_of(model), file.whole(model)
    if not 2 <= len(known) <= MANY_STAGES:
        return []
    keys = dict.fromkeys(key for r in whole for key in (*r.times, *r.sizes) if key not in known)
    every = (_omission(file, key, whole) for key in keys if not _PART.search(_named(key)))
    return [one for one in every if one is not None]


def _named(key: str) -> str:
    """The last part of a key, which describes the time."""
    return key.rsplit(".", 1)[-1].lower()


def _omission(file: ResultFile, key: str, whole: Sequence[AnswerRecord]) -> Omission | None:
    rows = [(record, _stated(file, record, key), stages_ms(record)) for record in whole
            if record.times.get(key, record.sizes.get(key, 0.0)) > 0]  # fmt: skip
    slack = CLOSE if len(rows) >= FEW else EXACT
    single = file.group.stages.get(key) == "total" or bool(_WHOLE.search(_named(key)))
    votes: Counter[tuple[str, ...]] = Counter()
    for _, stated, stages in rows:
        if not _is(stated, math.fsum(stages.values()), slack):
            votes.update(_missing(stated, stages, slack, 1 if single else 2))
    for missing, number in sorted(votes.items(), key=lambda vote: (-vote[1], len(vote[0]))):
        found = [(r, stages) for r, stated, stages in rows if _fits(stated, stages, missing, slack)]
        shares = ([stages[stage] / math.fsum(stages.values()) for _, stages in found]
                  for stage in missing)  # fmt: skip
        if number >= MOST * len(rows) and all(statistics.median(one) > LEAST for one in shares):
            return Omission(key, missing, tuple(record for record, _ in found), len(rows))
    return None


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


def _is_settled(claim: Claim) -> bool:
    """Whether the rows state the same figure (then they are checked), or lack values for it."""
    if claim.rows is None:
        return bool(claim.of)
    return _is(claim.stated, claim.rows, MEAN)


def _is_total(claim: Claim, model: str, file: ResultFile) -> bool:
    """Whether a summary's figure is a total of this model, or a total without a model name."""
    key = _named(claim.path)
    plain = re.sub(r"(_|^)(avg|mean)(_|$)", "", key)
    if not _WHOLE.search(plain) or _SPREAD.search(key) or _PART.search(plain):
        return False
    words = set(re.split(r"[._]", claim.path.lower()))
    named = {one for one in file.models if words & _words(one)}
    return model in (named or (file.draft, file.target))


def _words(model: str) -> set[str]:
    """The names that summaries use for a model."""
    family = KEY_FAMILY.get(model)
    same = {name for name, one in KEY_FAMILY.items() if one == family and family}
    return {model.lower(), *same, *(name for name, one in SHORT.items() if one in (model, *same))}


def _lacks(stated: float, means: Stages, lost: float) -> tuple[str, ...]:
    """The smallest set of stages whose omission explains a stated mean.  Each must be larger than
    the error from records that are not in the means."""
    full = math.fsum(means.values())
    for missing in _missing(stated, means, MEAN, 1) if stated > 0 else ():
        if all(means[key] > (LEAST + lost) * full for key in missing):
            return missing
    return ()


def _stage_means(file: ResultFile, model: str) -> tuple[Stages, float]:
    """Mean stages in ms over the records that have all stages, and the share of other records."""
    known, whole = file.stages_of(model), file.whole(model)
    if not whole:
        return {}, 1.0
    means = {key: statistics.fmean(milliseconds(key, record.times[key]) for record in whole)
             for key in file.group.stages if key in known}  # fmt: skip
    return means, 1 - len(whole) / len(file.of(model))
