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
from itertools import combinations
from typing import NamedTuple

from engine.published.audit.finding import (
    Findings,
    each_model,
    finding,
    name_of,
    share,
    timed,
    verb,
)
from engine.published.audit.token_rules import acceptance_rows
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


@each_model
@timed
def warm_up(file: ResultFile, model: str) -> Findings:
    """The first record includes a warm-up, which is in the mean."""
    records = file.of(model)
    for stages in corrected.cold_stages(records).values():
        for key, usual in stages.items():
            values = [record.times[key] for record in records if key in record.times]
            first, mean, rest = values[0], statistics.fmean(values), statistics.fmean(values[1:])
            yield finding(
                f"the first {key} took {_ms(key, first)}, the median of the others is "
                f"{_ms(key, usual)}. This warm-up makes the mean {mean / rest:.2f} times as long.",
                records[:1],
                "The corrected mean of this stage does not include it.",
                figures={"first": first, "median_of_rest": usual,
                         "mean": mean, "mean_without_first": rest},
            )  # fmt: skip


def _ms(key: str, value: float) -> str:
    return precise_ms(milliseconds(key, value))


@each_model
@timed
def totals(file: ResultFile, model: str) -> Findings:
    """A record's total is not the sum of its stages."""
    explained = {
        record.path
        for omission in omissions(file, model)
        if file.group.stages.get(omission.key) == "total"
        for record in omission.records
    }
    every = [record for record in file.whole(model) if record.path not in explained]
    found = [record for record in every if _gap(record)]
    if found:
        worst = max(found, key=lambda record: abs(_gap(record)))
        key, total = worst.part("total") or ("", 0.0)
        stages = worst.stage_sum or 0.0
        yield finding(
            f"{count(len(found), 'total')} "
            f"{verb(len(found), 'is not the sum of its', 'are not the sum of their')} stages; "
            f"{worst.path} is {_ms(key, total)}, its stages sum to {_ms(key, stages)}.",
            found,
            "A total below the sum of its stages is replaced by this sum.",
            figures={"total": total, "stages": stages},
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


def placeholder(file: ResultFile) -> Findings:
    """A stage of 0 ms, or nearly, was never measured."""
    yield from _placeholder(file)
    for claim in file.claims:
        key = claim.path.rsplit(".", 1)[-1]
        if claim.rows is None and claim.stated == 0 and key in ("vision_ms", "vision_time"):
            message = f"{claim.path} is 0: the stage was not measured there."
            yield finding(message, [claim], NOT_MEASURED, figures={"stated": 0})


@each_model
@timed
def _placeholder(file: ResultFile, model: str) -> Findings:
    records = file.of(model)
    for key in corrected.placeholders(records).get(model, ()):
        most = max(record.times[key] for record in records if key in record.times)
        longest = f"never takes more than {1000 * milliseconds(key, most):.2g} microseconds"
        yield finding(
            f"{key} {longest if most else 'is always 0'}: this is a placeholder. The stage was not "
            "measured.",
            records,
            NOT_MEASURED,
            figures={"longest": most},
        )


def summaries(file: ResultFile) -> Findings:
    """A figure of the summary does not follow from its rows.

    An acceptance cannot be checked against rows whose own acceptance is wrong.
    """
    explained = {path for found in left_out(file) for path in found.paths}
    wrong = [
        claim
        for claim in file.claims
        if claim.rows is not None
        and not stated_figures.close(claim.stated, claim.rows)
        and claim.path not in explained
    ]
    if any(acceptance_rows(file)):
        wrong = [one for one in wrong if not re.search("accept|match", _last(one.path))]
    for claim in wrong[:20]:
        yield finding(
            f"{claim.path} is stated as {claim.stated:.6g}, but {claim.of} is {claim.rows:.6g}.",
            [claim],
            "The figure from the rows is shown.",
            figures={"stated": claim.stated, "rows": claim.rows or 0.0},
        )


@each_model
def units(file: ResultFile, model: str) -> Findings:
    """Some times are a thousand times the others: two units are mixed.

    Compared are the total ms per token, or the total ms if the model's tokens are not counted.
    Records without a count, or without a total and all stages, are left out.
    """
    records = file.of(model, corrected=True)
    known = file.stages_of(model, corrected=True)
    counted = any(record.tokens for record in records)
    rated = []
    for record in records:
        value = record.ms("total")
        if value is None and record.is_whole(known) and record.stage_sum:
            value = record.stage_sum * (1 if file.unit == "ms" else 1000)
        if value and (record.tokens or not counted):
            rated.append((record, value / (record.tokens or 1.0)))
    usual = statistics.median(rate for _, rate in rated) if len(rated) >= UNIT_FROM else 0.0
    ratios = [(record, rate / usual) for record, rate in rated if usual]
    found = [(record, ratio) for record, ratio in ratios
             if any(UNIT_LOW < one < UNIT_HIGH for one in (ratio, 1 / ratio))]  # fmt: skip
    if found:
        ratio = found[0][1]
        less = "a thousandth of" if ratio < 1 else "a thousand times"
        yield finding(
            f"{count(len(found), 'record')} {verb(len(found), 'takes', 'take')} about {less} the "
            f"others' time per token ({ratio:,.4g} times): seconds and milliseconds are mixed.",
            [record for record, _ in found],
            figures={"ratio": ratio},
        )


def implausible(file: ResultFile) -> Findings:
    """Times that no device can have: they are not in the file's unit."""
    for doubt in plausible_units.doubts(file):
        model = doubt.model if doubt.model in file.models else ""
        name = "" if model else NAMES[KEY_FAMILY[doubt.model.rpartition(".")[2]]]
        means = [claim for claim in file.claims if claim.path == f"{doubt.model}.decode_ms"]
        yield finding(
            f"{name_of(file, model) if model else f'{doubt.model} ({name})'}: {doubt.what} takes "
            f"{_span(doubt.ms)} (median), but only {_span(doubt.low)} to {_span(doubt.high)} is "
            "possible. The times are not in the file's unit.",
            file.of(model) if model else means,
            DOUBTED,
            model,
            figures={"ms": doubt.ms, "possible_from_ms": doubt.low, "possible_to_ms": doubt.high},
        )
    found = plausible_units.apart(file)
    if found:
        yield finding(
            f"{found.what.capitalize()} takes {_span(found.draft_ms)} for "
            f"{name_of(file, file.draft)} and {_span(found.target_ms)} for "
            f"{name_of(file, file.target)}: models of the same size do not differ by a factor of "
            "100, so one of the two is in another unit.",
            [*file.of(file.draft), *file.of(file.target)],
            DOUBTED,
            figures={"draft_ms": found.draft_ms, "target_ms": found.target_ms},
        )


def _span(ms: float) -> str:
    """ "12 ms", "5 s", "0.02 ms"."""
    return f"{ms / 1000:,.4g} s" if ms >= 1000 else f"{ms:,.3g} ms"


class Omission(NamedTuple):
    """A key of a model whose values omit stages, and the records concerned."""

    key: str
    missing: tuple[str, ...]
    records: list[AnswerRecord]
    of: int


@each_model
@timed
def left_out(file: ResultFile, model: str) -> Findings:
    """A total in records or in a summary is the sum of some stages only."""
    for one in omissions(file, model):
        stated = _stated(file, one.records[0], one.key)
        full = math.fsum(stages_ms(one.records[0]).values())
        yield finding(
            f"{one.key} does not include {', '.join(one.missing)} in "
            f"{share(len(one.records), one.of, 'record')}; the first states {precise_ms(stated)}, "
            f"its stages sum to {precise_ms(full)}.",
            one.records,
            f"The total of the first is {precise_ms(full)}.",
            figures={"stated_ms": stated, "stages_ms": full},
        )
    # the mean stages over the records that have all stages
    known, whole = file.stages_of(model), file.whole(model)
    means = {key: statistics.fmean(milliseconds(key, record.times[key]) for record in whole)
             for key in file.group.stages if key in known and whole}  # fmt: skip
    full = math.fsum(means.values())
    for claim in file.claims if 2 <= len(means) <= MANY_STAGES else ():
        # the rows state the same figure (then they are checked), or lack values for it
        settled = claim.of if claim.rows is None else _is(claim.stated, claim.rows, MEAN)
        if settled or not _is_total(claim, model, file) or claim.stated <= 0:
            continue
        in_ms = "_ms" in _last(claim.path) or file.unit == "ms"
        stated = claim.stated if in_ms else 1000 * claim.stated
        # each missing stage must be larger than the error from records that are not in the means
        least = (LEAST + 1 - len(whole) / len(file.of(model))) * full
        found = (stages for stages in _missing(stated, means, MEAN, 1)
                 if all(means[key] > least for key in stages))  # fmt: skip
        missing = next(found, ())
        if missing and not _is(stated, full, MEAN):
            yield finding(
                f"the stated total of {precise_ms(stated)} does not include {', '.join(missing)} "
                f"({claim.path}); the stages sum to {precise_ms(full)}.",
                [claim],
                f"The total is {precise_ms(full)}.",
                figures={"stated_ms": stated, "stages_ms": full},
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
    every = (_omission(file, key, whole) for key in keys if not _PART.search(_last(key)))
    return [one for one in every if one is not None]


def _last(key: str) -> str:
    """The last part of a key, which describes the time."""
    return key.rsplit(".", 1)[-1].lower()


def _omission(file: ResultFile, key: str, whole: Sequence[AnswerRecord]) -> Omission | None:
    rows = [(record, _stated(file, record, key), stages_ms(record)) for record in whole
            if record.times.get(key, record.sizes.get(key, 0.0)) > 0]  # fmt: skip
    slack = CLOSE if len(rows) >= FEW else EXACT
    single = file.group.stages.get(key) == "total" or bool(_WHOLE.search(_last(key)))
    votes: Counter[tuple[str, ...]] = Counter()
    for _, stated, stages in rows:
        if not _is(stated, math.fsum(stages.values()), slack):
            votes.update(_missing(stated, stages, slack, 1 if single else 2))
    for missing, number in sorted(votes.items(), key=lambda vote: (-vote[1], len(vote[0]))):
        found = [(r, stages) for r, stated, stages in rows if _fits(stated, stages, missing, slack)]
        shares = ([stages[stage] / math.fsum(stages.values()) for _, stages in found]
                  for stage in missing)  # fmt: skip
        if number >= MOST * len(rows) and all(statistics.median(one) > LEAST for one in shares):
            return Omission(key, missing, [record for record, _ in found], len(rows))
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


def _is_total(claim: Claim, model: str, file: ResultFile) -> bool:
    """Whether a summary's figure is a total of this model, or a total without a model name."""
    key = _last(claim.path)
    plain = re.sub(r"(_|^)(avg|mean)(_|$)", "", key)
    if not _WHOLE.search(plain) or _SPREAD.search(key) or _PART.search(plain):
        return False
    words = set(re.split(r"[._]", claim.path.lower()))
    named = set()
    for one in file.models:  # by any name that summaries use for a model
        family = KEY_FAMILY.get(one)
        same = {name for name, other in KEY_FAMILY.items() if family and other == family}
        short = {name for name, other in SHORT.items() if other in (one, *same)}
        if words & {one.lower(), *same, *short}:
            named.add(one)
    return model in (named or (file.draft, file.target))
