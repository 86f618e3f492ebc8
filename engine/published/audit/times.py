"""Checks of times and of what is computed from them: warm-ups, totals, stages that are missing or
were never measured, units, rates, speed-ups and cost ratios (their sentences: rules.toml).

A total is a key that the form of the file declares as one, or whose name says so.  It omits stages
if in most records it equals the sum of the stages without the same one, or without the same ones in
a row (a clock that starts late, stops early or pauses), by more than rounding.  A rate of r
tokens per second means that N tokens took N / r; a time per token p means N p.  Either must be a
time that includes decoding.  A speed-up of s means that an answer took the target's time / s.
"""

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.published.audit.answers import acceptance_rows
from engine.published.audit.findings import (
    SEARCHES,
    Hits,
    hit,
    name_of,
    of_file,
    of_model,
    of_times,
)
from engine.published.read import answer_pairs, corrected
from engine.published.read.cells import close, statistic_of
from engine.published.read.record_types import NAMES, AnswerRecord, ResultFile, milliseconds
from engine.published.read.who_answered import KEY_FAMILY
from engine.quoting import precise_ms

Stages = Mapping[str, float]  # a record's stages in ms by their keys
Figures = dict[str, float]
TOLERANCE = 0.02
MOST = 0.8  # of the records have to agree
CLOSE = 0.002  # of a total: files round to three or four digits
FEW, EXACT = 3, 1e-4  # records below FEW have to agree to EXACT
LEAST = 0.01  # of all stages: what is missing has to be more
MEAN = 0.005  # of a stated mean, which may be over other records
# totals by their names, unless they name a part of a run, or no time
_PART = re.compile(
    r"prefill|vision|load|prep|stage|draft|decod|generat|first|ttft|tpot|tok|step|length|cach|llm|"
    r"media|answer|encod|image|frame|clip|"
    r"infer|forward|gpu|model|compute|only|without|excl|mean|std|_mb$|_gb$|speed|rate|ratio|count"
)
_WHOLE = re.compile(r"total|e2e|end_?to_?end|wall|overall|elapsed|complete|latency|duration|^time$")
NEAR = 0.02
FAR = 0.1  # relative: a rate that fits no set of stages has to be this far from the decoding time
_TOKEN_RATE = re.compile(r"tok(en)?s?_?(per|/)_?s(ec(ond)?s?)?$|tok_?s$|(^|_)tps$|tok.*throughput")
_OTHER_TOKENS = re.compile(r"prompt|prefill|input|context|draft")  # than those of the answer
_EACH = re.compile(r"per_?tok(en)?(_(time|ms|s))?$|token_time$|(^|_)tpot(_ms)?$")
_SPEEDUP = re.compile(r"speed_?up")
_IDEAL = re.compile(r"ideal|theor|max|upper|bound|estim|predict|expect|prefill|vision|load|prep|"
                    r"decod|generat|stage|token|std|min")  # fmt: skip
_COST_RATIO = re.compile(r"(^|[._])c_ratio$|\.avg_c_ratio$")


@of_times
def warm_up(file: ResultFile, model: str) -> Hits:
    records = file.of(model)
    for key, others in corrected.cold_stages(records).items():
        first, usual = records[0].times[key], statistics.median(others)
        mean, rest = statistics.fmean([first, *others]), statistics.fmean(others)
        words = {"took": _ms(key, first), "usual": _ms(key, usual), "key": key}
        figures = {
            "mean_without_first": rest,
            "first": first,
            "median_of_rest": usual,
            "mean": mean,
        }
        yield hit(records[:1], longer=f"{mean / rest:.2f}", **figures, **words)


def _ms(key: str, value: float) -> str:
    return precise_ms(milliseconds(key, value))


@of_times
def totals(file: ResultFile, model: str) -> Hits:
    explained = {
        record.path
        for omission in omissions(file, model)
        if file.group.stages.get(omission.key) == "total"
        for record in omission.records
    }
    every = [record for record in file.whole(model) if record.path not in explained]
    if wrong := [record for record in every if _gap(record)]:
        worst = max(wrong, key=lambda record: abs(_gap(record)))
        key, total = worst.part("total") or ("", 0.0)
        stages = worst.stage_sum or 0.0
        words = {"place": worst.path, "shown": _ms(key, total), "sum": _ms(key, stages)}
        yield hit(wrong, total=total, stages=stages, **words)


def _gap(record: AnswerRecord) -> float:
    """Total minus stages; 0 if the difference is within the tolerance."""
    total, stages = record.part("total"), record.stage_sum
    if total is None or stages is None or not record.group.covers:
        return 0.0
    gap = total[1] - stages
    timed = {record.group.stages.get(key) for key in record.times}
    if gap > 0 and not timed >= set(record.group.covers):
        return 0.0  # the rest may be the missing stage
    return gap if abs(gap) > TOLERANCE * total[1] else 0.0


@of_times
def placeholder(file: ResultFile, model: str) -> Hits:
    records = file.of(model)
    for key in corrected.placeholders(records):
        most = max(record.times[key] for record in records if key in record.times)
        us = f"never takes more than {1000 * milliseconds(key, most):.2g} microseconds"
        yield hit(records, key=key, longest=most, longest_words=us if most else "is always 0")


@of_file
def summary_placeholder(file: ResultFile) -> Hits:
    for claim in file.claims:
        vision = claim.path.rsplit(".", 1)[-1] in ("vision_ms", "vision_time")
        if vision and claim.rows is None and claim.stated == 0:
            yield hit([claim], claim=claim, stated=0)


@of_file
def summaries(file: ResultFile) -> Hits:
    """A figure of the summary does not follow from its rows; totals that the rows cut short have a
    rule of their own.  An acceptance cannot be checked against rows that state a wrong one."""
    explained = {one.path for hit in SEARCHES["summary_left_out"](file) for one in hit.concerned}
    short = {  # totals of rows, which may be the wrong side
        (model, name)
        for model in file.models
        for one in omissions(file, model)
        for name in (one.key, one.key.removesuffix("_time"))
    }
    wrong = [
        claim
        for claim in file.claims
        if claim.rows is not None
        and not close(claim.stated, claim.rows)
        and claim.path not in explained
        and (claim.model, statistic_of(_last(claim.path))[0]) not in short
    ]
    if any(acceptance_rows(file)):
        wrong = [claim for claim in wrong if not re.search("accept|match", _last(claim.path))]
    for claim in wrong[:20]:  # of a summary that are listed
        yield hit([claim], claim=claim, stated=claim.stated, rows=claim.rows)


@of_model
def units(file: ResultFile, model: str) -> Hits:
    """Some totals are a thousand times the others, per token if the model's tokens are counted: two
    units are mixed.  Records without a count, or without a total and all stages, are left out."""
    records = file.of(model, corrected=True)
    known = file.stages_of(model, corrected=True)
    counted = any(record.tokens for record in records)
    rates = {}
    for record in records:
        value = record.ms("total")
        if value is None and record.is_whole(known) and record.stage_sum:
            value = record.stage_sum * (1 if file.unit == "ms" else 1000)
        if value and (record.tokens or not counted):
            rates[record.path] = record, value / (record.tokens or 1.0)
    usual = statistics.median(rate for _, rate in rates.values()) if len(rates) >= 3 else 0
    ratios = [(record, rate / usual) for record, rate in rates.values() if usual]
    wrong = [(record, ratio) for record, ratio in ratios
             if any(300 < one < 3000 for one in (ratio, 1 / ratio))]  # fmt: skip
    if wrong:
        ratio = wrong[0][1]
        less = "a thousandth of" if ratio < 1 else "a thousand times"
        yield hit((record for record, _ in wrong), ratio=ratio, less=less)


@of_file
def implausible(file: ResultFile) -> Hits:
    for what, times in answer_pairs.doubts(file):
        for place, ms in times.items() if len(times) == 1 else ():
            model = place if place in file.models else ""
            family = NAMES.get(KEY_FAMILY.get(place.rpartition(".")[2], ""), "")
            who = name_of(file, model) if model else f"{place} ({family})"
            means = [claim for claim in file.claims if claim.path == f"{place}.decode_ms"]
            low, high = answer_pairs.POSSIBLE_MS[what]
            figures = {"ms": ms, "possible_from_ms": low, "possible_to_ms": high}
            yield hit(file.of(model) or means, 0, model, who=who, what=what, **figures)


@of_file
def far_apart(file: ResultFile) -> Hits:
    for what, times in answer_pairs.doubts(file):
        if len(times) == 2:
            records = [record for model in times for record in file.of(model)]
            draft, target = times.values()
            yield hit(records, what=what.capitalize(), draft_ms=draft, target_ms=target)


@of_times
def left_out(file: ResultFile, model: str) -> Hits:
    for one in omissions(file, model):
        stated, full = _stated(file, one.records[0], one.key), _sum(stages_ms(one.records[0]))
        words = {"key": one.key, "missing": ", ".join(one.missing)}
        yield hit(one.records, one.of, stated_ms=stated, stages_ms=full, **words)


@of_times
def summary_left_out(file: ResultFile, model: str) -> Hits:
    """A mean total in a summary is the sum of some mean stages, over the records that have all."""
    known, whole = file.stages_of(model), file.whole(model)
    means = {key: statistics.fmean(milliseconds(key, record.times[key]) for record in whole)
             for key in file.group.stages if key in known and whole}  # fmt: skip
    # what is missing must be larger than the error from records that are not in the means
    least = (LEAST + 1 - len(whole) / len(file.of(model))) * _sum(means) if whole else 0
    runs = [some for some in in_a_row(means) if sum(means[key] for key in some) > least]
    for claim in file.claims if file.group.covers and len(means) >= 2 else ():
        name, statistic = statistic_of(_last(claim.path))
        # the rows state the same figure (then they are checked), or lack values for it
        settled = claim.of if claim.rows is None else _is(claim.stated, claim.rows, MEAN)
        total = claim.model == model and statistic == "mean" and _names_total(name)
        if settled or not total or claim.stated <= 0:
            continue
        in_ms = "_ms" in _last(claim.path) or file.unit == "ms"
        stated = claim.stated if in_ms else 1000 * claim.stated
        missing = next((some for some in runs if _fits(stated, means, some, MEAN)), ())
        if missing and not _is(stated, _sum(means), MEAN):
            words = {"missing": ", ".join(missing), "path": claim.path}
            yield hit([claim], stated_ms=stated, stages_ms=_sum(means), **words)


def stages_ms(record: AnswerRecord) -> dict[str, float]:
    """A record's stages in ms, without stages that were never measured."""
    keys = record.group.added(record.times)
    ms = {key: milliseconds(key, record.times[key]) for key in record.group.stages if key in keys}
    return {key: value for key, value in ms.items() if value > corrected.PLACEHOLDER_MS}


class Omission(NamedTuple):
    """A key of a model whose values omit stages, and the records concerned."""

    key: str
    missing: tuple[str, ...]
    records: list[AnswerRecord]
    of: int


def omissions(file: ResultFile, model: str) -> list[Omission]:
    """The totals of a model's records that state the sum of some stages only; several rules ask."""
    if ("omissions", model) in file.computed:
        kept: list[Omission] = file.computed["omissions", model]
        return kept
    known, whole = file.stages_of(model), file.whole(model)
    keys = dict.fromkeys(
        key for r in whole if file.group.covers for key in (*r.times, *r.sizes) if key not in known
        and (file.group.stages.get(key) == "total" or _names_total(_last(key)))
    )  # fmt: skip
    every = (_omission(file, key, whole) for key in keys)
    found = file.computed["omissions", model] = [one for one in every if one is not None]
    return found


def _omission(file: ResultFile, key: str, whole: Sequence[AnswerRecord]) -> Omission | None:
    """The stages that most of the stated values omit."""
    rows = [(record, _stated(file, record, key), stages_ms(record)) for record in whole
            if _value(record, key) > 0]  # fmt: skip
    slack = CLOSE if len(rows) >= FEW else EXACT
    short = [row for row in rows if not _is(row[1], _sum(row[2]), slack)]
    if not rows or len(short) < MOST * len(rows):
        return None
    best = None
    for missing in in_a_row(dict.fromkeys(stage for row in short for stage in row[2])):
        fits = [row for row in short if _fits(row[1], row[2], missing, slack)]
        parts = [1 - row[1] / _sum(row[2]) for row in fits]
        more = len(fits) > (len(best.records) if best else 0) and len(fits) >= MOST * len(rows)
        if more and statistics.median(parts) > LEAST:
            best = Omission(key, missing, [row[0] for row in fits], len(rows))
    return best


def in_a_row(keys: Iterable[str]) -> list[tuple[str, ...]]:
    """Each key alone, then two that follow each other, then three, ..."""
    names = tuple(keys)
    sizes = range(1, len(names) + 1)
    return [names[at : at + size] for size in sizes for at in range(len(names) - size + 1)]


def _stated(file: ResultFile, record: AnswerRecord, key: str) -> float:
    """In ms; a number whose key names no time is in the file's unit."""
    if key in record.times:
        return milliseconds(key, record.times[key])
    return record.sizes[key] * (1 if file.unit == "ms" else 1000)


def _last(key: str) -> str:
    return key.rsplit(".", 1)[-1].lower()


def _sum(stages: Stages) -> float:
    return math.fsum(stages.values())


def _is(stated: float, value: float, slack: float) -> bool:
    return abs(stated - value) <= slack * abs(stated)


def _fits(stated: float, stages: Stages, missing: Sequence[str], slack: float) -> bool:
    """Whether the stated time is the sum of the other stages."""
    rest = {key: value for key, value in stages.items() if key not in missing}
    whole = len(rest) + len(missing) == len(stages)
    return bool(rest) and whole and _is(stated, _sum(rest), slack)


def _names_total(key: str) -> bool:
    return bool(_WHOLE.search(key)) and not _PART.search(key)


@of_times
def per_token(file: ResultFile, model: str) -> Hits:
    whole = file.whole(model)
    keys = dict.fromkeys(key for r in whole for key in (*r.times, *r.sizes))
    for key in keys if file.stages_of(model) else ():
        if not (_TOKEN_RATE.search(key) or _EACH.search(key)) or _OTHER_TOKENS.search(key):
            continue
        spans = [(record, spans) for record in whole if (spans := _spans(file, record, key))]
        judged = [(record, some, fit) for record, some in spans if (fit := _fit(record, some))]
        wrong = [row for row in judged if not row[2][0]]
        if len(wrong) >= max(FEW, MOST * len(judged)):
            record, some, (_, partial) = wrong[0]
            fits = f"the time of {', '.join(partial)} only" if partial else "none of its times"
            words = {"key": key, "tokens": f"{record.tokens:,.0f}", "fits": fits}
            records, stated = (row[0] for row in wrong), _value(record, key)
            yield hit(records, len(judged), stated=stated, implied_ms=some[0], **words)


def _value(record: AnswerRecord, key: str) -> float:
    return record.times.get(key, record.sizes.get(key, 0.0))


def _spans(file: ResultFile, record: AnswerRecord, key: str) -> tuple[float, ...]:
    """The ms that a rate or a time per token implies for all N tokens, and for N - 1."""
    value, tokens = _value(record, key), record.tokens or 0.0
    if value <= 0 or tokens < 2:
        return ()
    each = 1000 / value
    if _EACH.search(key):
        each = value if "ms" in key.split("_") or file.unit == "ms" else 1000 * value
    return tokens * each, (tokens - 1) * each


def _fit(record: AnswerRecord, spans: Sequence[float]) -> tuple[bool, tuple[str, ...]] | None:
    """Whether a span is a sum of stages that includes decoding, or the total; and the stages
    without decoding whose sum it is.  None without a decoding time."""
    stages = stages_ms(record)
    decodes = {key for key in stages if record.group.stages[key] in ("steps", "decode")}
    if not decodes:
        return None

    def is_close(time: float, slack: float) -> bool:
        return any(_is(time, span, slack) for span in spans)

    sums = {some: math.fsum(stages[key] for key in some) for some in in_a_row(stages)}
    others = (some for some in sums if not decodes & {*some} and is_close(sums[some], NEAR))
    partial = next(others, ())
    times = [time for some, time in sums.items() if decodes <= {*some}]
    if (total := record.ms("total")) is not None:
        times.append(total)
    return any(is_close(time, NEAR if partial else FAR) for time in times), partial


@of_file
def impossible(file: ResultFile) -> Hits:
    if not file.draft or answer_pairs.is_doubtful(file):
        return
    for name in sorted({figure.name for figure in file.figures}):
        last = name.rsplit(".", 1)[-1]
        if not _SPEEDUP.search(last.lower()) or _IDEAL.search(last.lower()):
            continue
        stated, rows = file.by_row(name), []
        for mine, other in answer_pairs.matched(file, file.draft, file.target, corrected=False):
            figure, alone = stated.get(other.row), _longest(other)
            prefill, draft = other.ms("prefill"), _longest(mine)
            if figure and figure.value > 0 and alone and prefill is not None and draft:
                rows.append((figure, (alone / figure.value, prefill, draft, alone, figure.value)))
        wrong = [row for row in rows if row[1][0] < (1 - NEAR) * min(row[1][1:3])]
        if len(wrong) >= max(FEW, MOST * len(rows)):
            columns = zip(*(times for _, times in wrong), strict=True)
            implied, prefill_ms, draft_ms, alone_ms, mean = map(statistics.fmean, columns)
            quote, figures = _stated_or_mean(file, last, name, mean)
            figures |= {"implied_ms": implied, "prefill_ms": prefill_ms, "draft_ms": draft_ms}
            words = {"quote": quote, "alone": precise_ms(alone_ms)}
            yield hit((figure for figure, _ in wrong), **words, **figures)


def _longest(record: AnswerRecord) -> float | None:
    """The longest measured time: the sum of the stages, or the total."""
    stages = None if record.stage_sum is None else math.fsum(stages_ms(record).values())
    return max((time for time in (stages, record.ms("total")) if time is not None), default=None)


def _stated_or_mean(file: ResultFile, key: str, name: str, mean: float) -> tuple[str, Figures]:
    """A speed-up in words and as a figure: the summary's, otherwise the mean of the rows."""
    for claim in file.claims:
        if statistic_of(claim.path.rsplit(".", 1)[-1]) == (key, "mean"):
            return f"stated {name} of {claim.stated:.2f}", {"stated": claim.stated}
    return f"{name} of the rows, {mean:.2f} on average,", {"mean_of_rows": mean}


@of_file
def both_models(file: ResultFile) -> Hits:
    """Group D: the speed-up is against both models one after the other, not the target alone."""
    totals = (
        {r.row: r.times["total_time"] for r in file.of(model) if "total_time" in r.times}
        for model in (file.target, file.draft)
    )
    names = ("parallel.parallel_speedup", "parallel.wall_clock_total")
    means = _means(file, names, *totals)
    if not means or min(means[:3]) <= 0:
        return
    stated, wall, mean, draft = means
    if abs(stated / (mean / wall) - 1) <= NEAR:
        return
    problem = "does not follow from the rows"
    if abs(stated / ((mean + draft) / wall) - 1) <= NEAR:
        problem = "divides the time of both models in sequence by the parallel time"
    quote, figures = _stated_or_mean(file, "parallel_speedup", "parallel speed-up", stated)
    figures["against_target_alone"] = mean / wall
    yield hit(file.by_row(names[0]).values(), quote=quote, problem=problem, **figures)


@of_file
def without_draft(file: ResultFile) -> Hits:
    names = ("sd_time_ms", "egpt_draft_ms", "vl_time_ms",
             "vl_prefill_ms", "vl_verify_ms", "vl_decode_ms")  # fmt: skip
    means = _means(file, (*names, "egpt_prefill_ms")) or [*_means(file, names), 0.0]
    if not means[1:] or min(means[:3]) <= 0:
        return
    spent, drafting, alone, *stages, prefill = means
    if abs(sum(stages) / spent - 1) > NEAR or answer_pairs.is_doubtful(file):
        return
    records = file.of(file.draft, corrected=True)
    if prefill and any("cold:prefill_ms" in record.marks for record in records):
        values = [r.times["prefill_ms"] for r in records if "prefill_ms" in r.times]
        prefill = statistics.fmean(values)  # without the warm-up
    own = drafting + prefill
    stated = [figure for figure in file.figures if figure.name == "speedup"]
    mean = statistics.fmean(figure.value for figure in stated) if stated else alone / spent
    quote, figures = _stated_or_mean(file, "speedup", "speed-up", mean)
    figures |= {"mean_ms": spent, "with_draft_ms": spent + own, "speedup": alone / (spent + own)}
    yield hit(stated, quote=quote.removesuffix(","), own=f"{own:,.0f}", **figures)


def _means(file: ResultFile, names: Iterable[str], *others: Mapping[str, float]) -> list[float]:
    """Means of figures and others by row, over the rows that have all of them; [] if no row has."""
    figures = [{row: one.value for row, one in file.by_row(name).items()} for name in names]
    columns = [*figures, *others]
    rows = set.intersection(*map(set, columns))
    return [statistics.fmean(values[row] for row in rows) for values in columns if rows]


@of_file
def cost_ratios(file: ResultFile) -> Hits:
    claims = [claim for claim in file.claims if _COST_RATIO.search(claim.path)]
    alone = answer_pairs.ratio_of_means(file, lambda record: record.ms("total"), corrected=False)
    if not claims or claims[0].stated <= 0 or not alone:
        return
    ours, work = answer_pairs.acceptance(file), answer_pairs.work(file)
    ratio = ours.cost_ratio if ours else None
    if ratio is None and work:
        ratio = 1 / work.per_token  # over the pairs that have both times
    claim, whole = claims[0], 1 / alone
    if abs(claim.stated / whole - 1) > (0.1 if ratio else NEAR):
        return
    closer = ratio and abs(math.log(claim.stated / whole)) < abs(math.log(claim.stated / ratio))
    if ratio and (abs(whole / ratio - 1) <= NEAR or not closer):
        return
    theory = [c for c in file.claims if c.path.endswith("theoretical_speedup")][:1]
    words = {"path": claim.path, "based": "", "ratio": "unknown", "better": ""}
    for one in theory:
        words["based"] = f"; the theoretical speed-up of {one.stated:.3f} is based on it"
    figures = {"stated": claim.stated}
    if ratio is not None:
        words |= {"ratio": f"{ratio:.3f}", "better": f"{ratio:.3f}"}
        figures["per_token"] = ratio
    yield hit([claim, *theory], **figures, **words)


@of_file
def unequal(file: ResultFile) -> Hits:
    work = None if answer_pairs.is_doubtful(file) else answer_pairs.work(file)
    if work is None or abs(work.tokens - 1) <= 0.1:
        return
    words = {"doing": "Answering" if work.part == "total" else "Decoding", "cuts": ""}
    figures = {"tokens_ratio": work.tokens, "per_token_ratio": work.per_token}
    for model in (file.draft, file.target):
        if cut := answer_pairs.cut(file, model):
            named = f" ({cut.named})" if cut.named else ""
            words["cuts"] += f"; {name_of(file, model)} is limited to {cut.tokens:,} tokens{named}"
            figures[f"cut_{model}"] = cut.tokens
    records = (*file.of(file.draft), *file.of(file.target))
    yield hit(records, ratio=work.ratio, **figures, **words)
