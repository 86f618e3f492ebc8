"""Checks of rates, times per token, speed-ups and cost ratios, and answers of unequal length.

A rate of r tokens per second means that N tokens took N / r; a time per token p means N p.  Either
must be a time that includes decoding.  A speed-up of s means that an answer took the target's time
divided by s.  Times are in milliseconds.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence

from engine.published.audit.findings import Hits, by_row, hit, name_of, of_file, of_times, row_of
from engine.published.audit.times import MANY_STAGES, MOST, stages_ms, subsets
from engine.published.read import answer_pairs, lengths, plausible_units
from engine.published.read.record_types import AnswerRecord, ResultFile
from engine.published.read.stated_figures import statistic_of
from engine.quoting import precise_ms

CLOSE = 0.02
FAR = 0.1  # relative: a rate that fits no set of stages has to be this far from the decoding time
FEW = 3  # rows
UNEQUAL = 0.1
_TOKEN_RATE = re.compile(r"tok(en)?s?_?(per|/)_?s(ec(ond)?s?)?$|tok_?s$|(^|_)tps$|throughput")
_EACH = re.compile(r"per_?tok(en)?(_(time|ms|s))?$|token_time$|(^|_)tpot(_ms)?$")
_SPEEDUP = re.compile(r"speed_?up")
_IDEAL = re.compile(r"ideal|theor|max|upper|bound|estim|predict|expect|prefill|vision|load|prep|"
                    r"decod|generat|stage|token|std|min")  # fmt: skip
_COST_RATIO = re.compile(r"(^|[._])c_ratio$|\.avg_c_ratio$")


@of_times
def per_token(file: ResultFile, model: str) -> Hits:
    """A rate or a time per token does not fit any time that includes decoding."""
    whole = file.whole(model)
    keys = dict.fromkeys(key for r in whole for key in (*r.times, *r.sizes))
    for key in keys if 1 <= len(file.stages_of(model)) <= MANY_STAGES else ():
        if not (_TOKEN_RATE.search(key) or _EACH.search(key)):
            continue
        spans = [(record, spans) for record in whole if (spans := _spans(file, record, key))]
        judged = [(record, some, fit) for record, some in spans if (fit := _fit(record, some))]
        wrong = [row for row in judged if not row[2][0]]
        if len(wrong) >= max(FEW, MOST * len(judged)):
            record, some, (_, partial) = wrong[0]
            words = {"key": key, "tokens": f"{record.tokens:,.0f}", "fits": "none of its times"}
            if partial:
                words["fits"] = f"the time of {', '.join(partial)} only"
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
        each = value if key.endswith("_ms") or file.unit == "ms" else 1000 * value
    return tokens * each, (tokens - 1) * each


def _fit(record: AnswerRecord, spans: Sequence[float]) -> tuple[bool, tuple[str, ...]] | None:
    """Whether a span is a sum of stages that includes decoding, or the total; and the stages
    without decoding whose sum it is.  None without a decoding time."""
    stages = stages_ms(record)
    decodes = {key for key in stages if record.group.stages[key] in ("steps", "decode")}
    if not decodes:
        return None

    def is_close(time: float, slack: float) -> bool:
        return any(abs(span - time) <= slack * time for span in spans)

    sums = {some: math.fsum(stages[key] for key in some) for some in subsets(stages)}
    others = (some for some in sums if not decodes & {*some} and is_close(sums[some], CLOSE))
    partial = next(others, ())
    times = [time for some, time in sums.items() if decodes <= {*some}]
    if (total := record.ms("total")) is not None:
        times.append(total)
    return any(is_close(time, CLOSE if partial else FAR) for time in times), partial


@of_file
def impossible(file: ResultFile) -> Hits:
    """A speed-up implies less time than the target's prefill and less than the draft's time."""
    if not file.draft or plausible_units.is_doubtful(file):
        return
    for name in sorted({figure.name for figure in file.figures}):
        last = name.rsplit(".", 1)[-1]
        if not _SPEEDUP.search(last.lower()) or _IDEAL.search(last.lower()):
            continue
        stated, rows = by_row(file, name), []
        for mine, other in answer_pairs.matched(file, file.draft, file.target, corrected=False):
            figure, alone = stated.get(row_of(other.path)), _longest(other)
            prefill, draft = other.ms("prefill"), _longest(mine)
            if figure and figure.value > 0 and alone and prefill is not None and draft:
                rows.append((figure, (alone / figure.value, prefill, draft, alone, figure.value)))
        wrong = [row for row in rows if row[1][0] < (1 - CLOSE) * min(row[1][1:3])]
        if len(wrong) >= max(FEW, MOST * len(rows)):
            means = [
                statistics.fmean(column) for column in zip(*(t for _, t in wrong), strict=True)
            ]
            quote, figures = _stated_or_mean(file, last, name, means[4])
            figures |= {"implied_ms": means[0], "prefill_ms": means[1], "draft_ms": means[2]}
            usual = precise_ms(means[3])
            yield hit((figure for figure, _ in wrong), quote=quote, alone=usual, **figures)


def _longest(record: AnswerRecord) -> float | None:
    """The longest measured time: the sum of the stages, or the total."""
    stages = None if record.stage_sum is None else math.fsum(stages_ms(record).values())
    return max((time for time in (stages, record.ms("total")) if time is not None), default=None)


def _stated_or_mean(
    file: ResultFile, key: str, name: str, mean: float
) -> tuple[str, dict[str, float]]:
    """A speed-up in words and as a figure: the summary's, otherwise the mean of the rows."""
    for claim in file.claims:
        if statistic_of(claim.path.rsplit(".", 1)[-1]) == (key, "mean"):
            return f"stated {name} of {claim.stated:.2f}", {"stated": claim.stated}
    return f"{name} of the rows, {mean:.2f} on average,", {"mean_of_rows": mean}


@of_file
def both_models(file: ResultFile) -> Hits:
    """Group D: the speed-up is against both models one after the other, not the target alone."""
    first, alone = (
        {row_of(r.path): r.times["total_time"] for r in file.of(model) if "total_time" in r.times}
        for model in (file.draft, file.target)
    )
    figures = by_row(file, "parallel.parallel_speedup")
    walls = by_row(file, "parallel.wall_clock_total")
    rows = first.keys() & alone.keys() & figures.keys() & walls.keys()
    if not rows:
        return
    stated, wall = (statistics.fmean(some[row].value for row in rows) for some in (figures, walls))
    mean, draft = (statistics.fmean(some[row] for row in rows) for some in (alone, first))
    if min(stated, wall, mean) <= 0 or abs(stated / (mean / wall) - 1) <= CLOSE:
        return
    problem = "does not follow from the rows"
    if abs(stated / ((mean + draft) / wall) - 1) <= CLOSE:
        problem = "divides the time of both models in sequence by the parallel time"
    quote, named = _stated_or_mean(file, "parallel_speedup", "parallel speed-up", stated)
    named["against_target_alone"] = mean / wall
    yield hit(figures.values(), quote=quote, problem=problem, **named)


@of_file
def without_draft(file: ResultFile) -> Hits:
    """Token pairs with speculation: the speculative time does not include the draft's own time."""
    parts = ("vl_prefill_ms", "vl_verify_ms", "vl_decode_ms")
    names = ("sd_time_ms", "egpt_draft_ms", "vl_time_ms", *parts)
    means = _means(file, "egpt_prefill_ms", *names) or _means(file, *names)
    if not means or min(means[name] for name in names[:3]) <= 0:
        return
    spent, alone = means["sd_time_ms"], means["vl_time_ms"]
    whole = abs(sum(means[part] for part in parts) / spent - 1) <= CLOSE
    if not whole or plausible_units.is_doubtful(file):
        return
    prefill = means.get("egpt_prefill_ms", 0.0)
    records = file.of(file.draft, corrected=True)
    if prefill and any("cold:prefill_ms" in record.marks for record in records):
        values = [r.times["prefill_ms"] for r in records if "prefill_ms" in r.times]
        prefill = statistics.fmean(values)  # without the warm-up
    own = means["egpt_draft_ms"] + prefill
    stated = [figure for figure in file.figures if figure.name == "speedup"]
    mean = statistics.fmean(figure.value for figure in stated) if stated else alone / spent
    quote, figures = _stated_or_mean(file, "speedup", "speed-up", mean)
    figures |= {"mean_ms": spent, "with_draft_ms": spent + own, "speedup": alone / (spent + own)}
    yield hit(stated, quote=quote.removesuffix(","), own=f"{own:,.0f}", **figures)


def _means(file: ResultFile, *names: str) -> dict[str, float]:
    """Means of figures over the rows that have all of them; {} if no row has."""
    every = {name: by_row(file, name) for name in names}
    rows = set.intersection(*map(set, every.values()))
    return {name: statistics.fmean(some[row].value for row in rows)
            for name, some in every.items() if rows}  # fmt: skip


@of_file
def cost_ratios(file: ResultFile) -> Hits:
    """A cost ratio is that of whole answers instead of per token."""
    claims = [claim for claim in file.claims if _COST_RATIO.search(claim.path)]
    totals = [key for key, part in file.group.stages.items() if part == "total"]
    draft, target = (
        [r.times[key] for r in file.of(model) for key in totals if key in r.times]
        for model in (file.draft, file.target)
    )
    if not claims or claims[0].stated <= 0 or sum(draft) <= 0 or sum(target) <= 0:
        return
    ours, work = answer_pairs.acceptance(file), lengths.work(file)
    ratio = ours.cost_ratio if ours else None
    if ratio is None and work:
        ratio = 1 / work.per_token  # over the pairs that have both times
    claim, whole = claims[0], statistics.fmean(draft) / statistics.fmean(target)
    if abs(claim.stated / whole - 1) > (0.1 if ratio else CLOSE):
        return
    closer = ratio and abs(math.log(claim.stated / whole)) < abs(math.log(claim.stated / ratio))
    if ratio and (abs(whole / ratio - 1) <= CLOSE or not closer):
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
    """The compared models give answers of different length."""
    work = None if plausible_units.is_doubtful(file) else lengths.work(file)
    if work is None or abs(work.tokens - 1) <= UNEQUAL:
        return
    words = {"doing": "Answering" if work.part == "total" else "Decoding", "cuts": ""}
    figures = {"tokens_ratio": work.tokens, "per_token_ratio": work.per_token}
    for model in (file.draft, file.target):
        if cut := lengths.cut(file, model):
            named = f" ({cut.named})" if cut.named else ""
            words["cuts"] += f"; {name_of(file, model)} is limited to {cut.tokens:,} tokens{named}"
            figures[f"cut_{model}"] = cut.tokens
    records = [*file.of(file.draft), *file.of(file.target)]
    yield hit(records, ratio=work.ratio, **figures, **words)
