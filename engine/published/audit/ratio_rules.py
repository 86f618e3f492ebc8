"""Rules about rates, times per token, speed-ups and cost ratios, and answers of unequal length.

A rate of r tokens per second means that N tokens took N / r; a time per token p means N p.  Either
must be a time that includes decoding.  A speed-up of s means that an answer took the target's time
divided by s.  Times are in milliseconds.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from itertools import combinations

from engine.published.audit.finding import (
    Findings,
    each_model,
    finding,
    name_of,
    share,
    timed,
    verb,
)
from engine.published.audit.time_rules import MANY_STAGES, MOST, stages_ms
from engine.published.audit.token_rules import row_of
from engine.published.read import answer_pairs, lengths, plausible_units
from engine.published.read.record_types import AnswerRecord, ResultFile, SampleFigure
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
_COST_RATIO = re.compile(r"(^|[._])c_ratio$")


@each_model
@timed
def per_token(file: ResultFile, model: str) -> Findings:
    """A rate or a time per token does not fit any time that includes decoding."""
    whole = file.whole(model)
    keys = dict.fromkeys(key for r in whole for key in (*r.times, *r.sizes))
    for key in keys if 1 <= len(file.stages_of(model)) <= MANY_STAGES else ():
        if not (_TOKEN_RATE.search(key) or _EACH.search(key)):
            continue
        rows = [(r, spans) for r in whole if (spans := _spans(file, r, key))]
        judged = [(r, spans, fit) for r, spans in rows if (fit := _fit(r, spans))]
        wrong = [row for row in judged if not row[2][0]]
        if len(wrong) < max(FEW, MOST * len(judged)):
            continue
        record, spans, (_, partial) = wrong[0]
        stated = record.times.get(key, record.sizes.get(key, 0.0))
        fits = f"the time of {', '.join(partial)} only" if partial else "none of its times"
        yield finding(
            f"{share(len(wrong), len(judged), 'record')} {verb(len(wrong), 'has', 'have')} a {key} "
            f"that does not fit the decoding; the first states {stated:.4g}, which means "
            f"{precise_ms(spans[0])} for {record.tokens:,.0f} tokens: this is {fits}.",
            [row[0] for row in wrong],
            figures={"stated": stated, "implied_ms": spans[0]},
        )


def _spans(file: ResultFile, record: AnswerRecord, key: str) -> tuple[float, ...]:
    """The ms that a rate or a time per token implies for all N tokens, and for N - 1."""
    value = record.times.get(key, record.sizes.get(key, 0.0))
    tokens = record.tokens or 0.0
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
    decodes = [key for key in stages if record.group.stages[key] in ("steps", "decode")]
    decoding = math.fsum(stages[key] for key in decodes)
    others = [key for key in stages if key not in decodes]
    if not decoding:
        return None
    sums = [(some, math.fsum(stages[key] for key in some)) for size in range(len(others) + 1)
            for some in combinations(others, size)]  # fmt: skip

    def is_close(time: float, slack: float) -> bool:
        return any(abs(span - time) <= slack * time for span in spans)

    partial = next((some for some, time in sums if some and is_close(time, CLOSE)), ())
    times = [decoding + time for _, time in sums]
    if (total := record.ms("total")) is not None:
        times.append(total)
    return any(is_close(time, CLOSE if partial else FAR) for time in times), partial


def impossible(file: ResultFile) -> Findings:
    """A speed-up implies less time than the target's prefill and less than the draft's time."""
    if not file.draft or plausible_units.is_doubtful(file):
        return
    for name in sorted({figure.name for figure in file.figures}):
        last = name.rsplit(".", 1)[-1]
        if not _SPEEDUP.search(last.lower()) or _IDEAL.search(last.lower()):
            continue
        stated = {row_of(f.path): f for f in file.figures if f.name == name and f.value > 0}
        rows: list[tuple[SampleFigure, tuple[float, float, float, float]]] = []
        for mine, other in answer_pairs.matched(file, file.draft, file.target, corrected=False):
            figure, alone = stated.get(row_of(other.path)), _longest(other)
            prefill, draft = other.ms("prefill"), _longest(mine)
            if figure and alone and prefill is not None and draft:
                rows.append((figure, (alone / figure.value, prefill, draft, alone)))
        found = [row for row in rows if row[1][0] < (1 - CLOSE) * min(row[1][1:3])]
        if len(found) < max(FEW, MOST * len(rows)):
            continue
        spent, prefill_ms, draft_ms, alone_ms = (
            statistics.fmean(row[1][column] for row in found) for column in range(4)
        )
        mean = statistics.fmean(row[0].value for row in found)
        speedup, figures = _stated_or_mean(file, last, name, mean)
        yield finding(
            f"The {speedup} implies {precise_ms(spent)} per answer on average. But "
            f"{name_of(file, file.target)} alone takes {precise_ms(alone_ms)}, of which prefill "
            f"takes {precise_ms(prefill_ms)}, and {name_of(file, file.draft)} takes "
            f"{precise_ms(draft_ms)}. So the speed-up does not include all measured stages.",
            [row[0] for row in found],
            figures={**figures, "implied_ms": spent,
                     "prefill_ms": prefill_ms, "draft_ms": draft_ms},
        )  # fmt: skip


def _longest(record: AnswerRecord) -> float | None:
    """The longest measured time: the sum of the stages, or the total."""
    total = record.ms("total")
    stages = None if record.stage_sum is None else math.fsum(stages_ms(record).values())
    return max((time for time in (stages, total) if time is not None), default=None)


def _stated_or_mean(
    file: ResultFile, key: str, name: str, mean: float
) -> tuple[str, dict[str, float]]:
    """A speed-up in words and as a figure: the summary's, otherwise the mean of the rows."""
    for claim in file.claims:
        if statistic_of(claim.path.rsplit(".", 1)[-1]) == (key, "mean"):
            return f"stated {name} of {claim.stated:.2f}", {"stated": claim.stated}
    return f"{name} of the rows, {mean:.2f} on average,", {"mean_of_rows": mean}


def speedups(file: ResultFile) -> Findings:
    yield from _both_models(file)
    yield from _without_draft(file)


def _both_models(file: ResultFile) -> Findings:
    """Group D: the speed-up is against both models one after the other, not the target alone."""
    figures = {figure.path: figure.value for figure in file.figures}
    drafts, targets = (
        {r.path.rpartition(".")[0]: r.times.get("total_time") for r in file.of(model)}
        for model in (file.draft, file.target)
    )
    rows = []
    for place, alone in targets.items():
        speedup = figures.get(f"{place}.parallel.parallel_speedup")
        wall = figures.get(f"{place}.parallel.wall_clock_total")
        first = drafts.get(place)
        if speedup is not None and wall is not None and alone is not None and first is not None:
            rows.append((speedup, wall, alone, alone + first))
    if not rows:
        return
    stated, wall, mean, both = (
        statistics.fmean(row[column] for row in rows) for column in range(4)
    )
    if min(stated, wall, mean) <= 0 or abs(stated / (mean / wall) - 1) <= CLOSE:
        return
    problem = "does not follow from the rows"
    if abs(stated / (both / wall) - 1) <= CLOSE:
        problem = "divides the time of both models in sequence by the parallel time"
    quote, named = _stated_or_mean(file, "parallel_speedup", "parallel speed-up", stated)
    alone = mean / wall
    yield finding(
        f"The {quote} {problem}. Against {name_of(file, file.target)} alone it is {alone:.3f}.",
        [one for one in file.figures if one.name == "parallel.parallel_speedup"],
        f"{alone:.3f}",
        figures={**named, "against_target_alone": alone},
    )


def _without_draft(file: ResultFile) -> Findings:
    """Token pairs with speculation: the speculative time does not include the draft's own time."""
    parts = ("vl_prefill_ms", "vl_verify_ms", "vl_decode_ms")
    means = _means(file, "sd_time_ms", "egpt_draft_ms", "egpt_prefill_ms", "vl_time_ms", *parts)
    means = means or _means(file, "sd_time_ms", "egpt_draft_ms", "vl_time_ms", *parts)
    if not means or min(means[key] for key in ("sd_time_ms", "egpt_draft_ms", "vl_time_ms")) <= 0:
        return
    spent, alone = means["sd_time_ms"], means["vl_time_ms"]
    if abs(sum(means[part] for part in parts) / spent - 1) > CLOSE:
        return
    if plausible_units.is_doubtful(file):
        return
    prefill = means.get("egpt_prefill_ms", 0.0)
    records = file.of(file.draft, corrected=True)
    values = [r.times["prefill_ms"] for r in records if "prefill_ms" in r.times]
    if prefill and any("cold:prefill_ms" in record.marks for record in records):
        prefill = statistics.fmean(values)  # without the warm-up
    full = spent + means["egpt_draft_ms"] + prefill
    stated = [figure for figure in file.figures if figure.name == "speedup"]
    mean = statistics.fmean(figure.value for figure in stated) if stated else alone / spent
    quote, figures = _stated_or_mean(file, "speedup", "speed-up", mean)
    yield finding(
        f"The speculative time, {spent:,.0f} ms on average, does not include the "
        f"draft's own {full - spent:,.0f} ms. With it the sequential speed-up is "
        f"{alone / full:.2f}, not the {quote.removesuffix(',')}.",
        stated,
        f"{alone / full:.2f}",
        figures={**figures, "mean_ms": spent, "with_draft_ms": full, "speedup": alone / full},
    )


def _means(file: ResultFile, *names: str) -> dict[str, float]:
    """Means of figures over the rows that have all of them; {} if no row has."""
    rows: dict[str, dict[str, float]] = {}
    for figure in file.figures:
        if figure.name in names:
            rows.setdefault(figure.path.removesuffix(figure.name), {})[figure.name] = figure.value
    whole = [row for row in rows.values() if len(row) == len(names)]
    return {name: statistics.fmean(row[name] for row in whole) for name in names if whole}


def cost_ratios(file: ResultFile) -> Findings:
    """A cost ratio is that of whole answers instead of per token."""
    claims = [claim for claim in file.claims if _COST_RATIO.search(claim.path)]
    claims += [claim for claim in file.claims if claim.path.endswith(".avg_c_ratio")]
    means = []  # totals of draft and target
    for model in (file.draft, file.target):
        keys = [key for key, part in file.group.stages.items() if part == "total"]
        values = [r.times[k] for r in file.of(model) for k in keys if k in r.times]
        means.append(sum(values) / len(values) if values else 0.0)
    if not claims or min(means) <= 0:
        return
    found = answer_pairs.acceptance(file)
    ratio = found.cost_ratio if found else None
    if ratio is None and (work := lengths.work(file)):
        ratio = 1 / work.per_token  # over the pairs that have both times
    claim, whole = claims[0], means[0] / means[1]
    if claim.stated <= 0 or abs(claim.stated / whole - 1) > (0.1 if ratio else CLOSE):
        return
    closer = ratio and abs(math.log(claim.stated / whole)) < abs(math.log(claim.stated / ratio))
    if ratio and (abs(whole / ratio - 1) <= CLOSE or not closer):
        return
    per_token = "unknown" if ratio is None else f"{ratio:.3f}"
    theory = next((c for c in file.claims if c.path.endswith("theoretical_speedup")), None)
    based = f"; the theoretical speed-up of {theory.stated:.3f} is based on it" if theory else ""
    yield finding(
        f"{claim.path} of {claim.stated:.3f} is the ratio of whole answers of any length; per "
        f"token it is {per_token}{based}.",
        [one for one in (claim, theory) if one],
        "" if ratio is None else per_token,
        figures={"stated": claim.stated, **({} if ratio is None else {"per_token": ratio})},
    )


def unequal(file: ResultFile) -> Findings:
    """The compared models give answers of different length."""
    work = None if plausible_units.is_doubtful(file) else lengths.work(file)
    if work is None or abs(work.tokens - 1) <= UNEQUAL:
        return
    doing = "Answering" if work.part == "total" else "Decoding"
    slow, fast = (name_of(file, model) for model in (file.target, file.draft))
    cuts = [(model, cut) for model in (file.draft, file.target)
            if (cut := lengths.cut(file, model))]  # fmt: skip
    cut_text = "".join(
        f"; {name_of(file, model)} is limited to {cut.tokens:,} tokens"
        + (f" ({cut.named})" if cut.named else "")
        for model, cut in cuts
    )
    yield finding(
        f"{doing} takes {slow} {work.ratio:.2f} times as long as {fast}: {work.tokens:.2f} times "
        f"the tokens and {work.per_token:.2f} times the time per token{cut_text}.",
        [*file.of(file.draft), *file.of(file.target)],
        figures={
            "ratio": work.ratio,
            "tokens_ratio": work.tokens,
            "per_token_ratio": work.per_token,
            **{f"cut_{model}": cut.tokens for model, cut in cuts},
        },
    )
