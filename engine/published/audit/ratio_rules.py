"""Rules about rates, times per token, speed-ups and cost ratios, and answers of unequal length.

A rate of r tokens per second means that N tokens took N / r; a time per token p means N p.  Either
must be a time that includes decoding.  A speed-up of s means that an answer took the target's time
divided by s.  Times are in milliseconds.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations

from engine.published.audit.finding import AuditFinding, name_of, paths_of, share, verb
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


def per_token(file: ResultFile, model: str) -> Iterator[AuditFinding]:
    """A rate or a time per token does not fit any time that includes decoding."""
    whole = file.whole(model)
    keys = dict.fromkeys(key for r in whole for key in (*r.times, *r.sizes))
    for key in keys if 1 <= len(file.stages_of(model)) <= MANY_STAGES else ():
        if _TOKEN_RATE.search(key) or _EACH.search(key):
            yield from _wrong_rate(file, key, whole)


def _wrong_rate(
    file: ResultFile, key: str, records: Sequence[AnswerRecord]
) -> Iterator[AuditFinding]:
    rows = [(r, spans) for r in records if (spans := _spans(file, r, key))]
    timed = [(r, spans, times) for r, spans in rows if (times := _decodings(r))]
    wrong = [
        (r, spans)
        for r, spans, times in timed
        if not _any_close(spans, times, CLOSE if _partial(r, spans) else FAR)
    ]
    if len(wrong) < max(FEW, MOST * len(timed)):
        return
    record, spans = wrong[0]
    stated = record.times.get(key, record.sizes.get(key, 0.0))
    partial = _partial(record, spans)
    fits = f"the time of {', '.join(partial)} only" if partial else "none of its times"
    yield AuditFinding(
        f"{share(len(wrong), len(timed), 'record')} {verb(len(wrong), 'has', 'have')} a {key} that "
        f"does not fit the decoding; the first states {stated:.4g}, which means "
        f"{precise_ms(spans[0])} for {record.tokens:,.0f} tokens: this is {fits}.",
        paths_of(record for record, _ in wrong),
        {"stated": stated, "implied_ms": spans[0]},
    )


def _spans(file: ResultFile, record: AnswerRecord, key: str) -> tuple[float, ...]:
    """The ms that a rate or a time per token implies for all N tokens, and for N - 1."""
    value = record.times.get(key, record.sizes.get(key, 0.0))
    tokens = record.tokens or 0.0
    if value <= 0 or tokens < 2:
        return ()
    if _EACH.search(key):
        in_ms = key.endswith("_ms") or file.unit == "ms"
        each = value if in_ms else 1000 * value
    else:
        each = 1000 / value
    return tokens * each, (tokens - 1) * each


def _split(record: AnswerRecord) -> tuple[float, dict[str, float]]:
    """The ms of decoding, and the other stages."""
    stages = stages_ms(record)
    decodes = [key for key in stages if record.group.stages[key] in ("steps", "decode")]
    others = {key: ms for key, ms in stages.items() if key not in decodes}
    return math.fsum(stages[key] for key in decodes), others


def _decodings(record: AnswerRecord) -> list[float]:
    """Every sum of the record's stages that includes decoding, and its total."""
    base, others = _split(record)
    if not base:
        return []
    found = [base + math.fsum(some) for size in range(len(others) + 1)
             for some in combinations(others.values(), size)]  # fmt: skip
    total = record.ms("total")
    return found if total is None else [*found, total]


def _any_close(spans: Sequence[float], times: Sequence[float], slack: float) -> bool:
    return any(abs(span - time) <= slack * time for span in spans for time in times)


def _partial(record: AnswerRecord, spans: Sequence[float]) -> tuple[str, ...]:
    """Stages without decoding whose sum is such a span."""
    _, others = _split(record)
    for size in range(1, len(others) + 1):
        for some in combinations(others, size):
            if _any_close(spans, [math.fsum(others[key] for key in some)], CLOSE):
                return some
    return ()


def impossible(file: ResultFile) -> Iterator[AuditFinding]:
    """A speed-up implies less time than the target's prefill and less than the draft's time."""
    if not file.draft or plausible_units.is_doubtful(file):
        return
    for name in sorted({figure.name for figure in file.figures}):
        last = name.rsplit(".", 1)[-1].lower()
        if _SPEEDUP.search(last) and not _IDEAL.search(last):
            yield from _impossible(file, name)


def _impossible(file: ResultFile, name: str) -> Iterator[AuditFinding]:
    stated = {row_of(f.path): f for f in file.figures if f.name == name and f.value > 0}
    rows: list[tuple[SampleFigure, tuple[float, float, float, float]]] = []
    for mine, other in answer_pairs.matched(file, file.draft, file.target, corrected=False):
        figure, alone = stated.get(row_of(other.path)), _longest(other)
        prefill, draft = other.ms("prefill"), _longest(mine)
        if figure and alone and prefill is not None and draft:
            rows.append((figure, (alone / figure.value, prefill, draft, alone)))
    found = [row for row in rows if row[1][0] < (1 - CLOSE) * min(row[1][1:3])]
    if len(found) < max(FEW, MOST * len(rows)):
        return
    spent, prefill_ms, draft_ms, alone_ms = (
        statistics.fmean(row[1][column] for row in found) for column in range(4)
    )
    mean = statistics.fmean(row[0].value for row in found)
    speedup, figures = _stated_or_mean(file, name.rsplit(".", 1)[-1], name, mean)
    yield AuditFinding(
        f"The {speedup} implies {precise_ms(spent)} per answer on average. But "
        f"{name_of(file, file.target)} alone takes {precise_ms(alone_ms)}, of which prefill "
        f"takes {precise_ms(prefill_ms)}, and {name_of(file, file.draft)} takes "
        f"{precise_ms(draft_ms)}. So the speed-up does not include all measured stages.",
        tuple(row[0].path for row in found),
        figures | {"implied_ms": spent, "prefill_ms": prefill_ms, "draft_ms": draft_ms},
    )


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


def speedups(file: ResultFile) -> Iterator[AuditFinding]:
    """A speed-up divides by the wrong time."""
    yield from _both_models(file)
    yield from _without_draft(file)


def _both_models(file: ResultFile) -> Iterator[AuditFinding]:
    """Group D: the speed-up is against both models one after the other, not the target alone."""
    rows = _stated_speedups(file)
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
    quote, figures = _stated_or_mean(file, "parallel_speedup", "parallel speed-up", stated)
    alone = mean / wall
    yield AuditFinding(
        f"The {quote} {problem}. Against {name_of(file, file.target)} alone it is {alone:.3f}.",
        tuple(one.path for one in file.figures if one.name == "parallel.parallel_speedup"),
        {**figures, "against_target_alone": alone},
        f"{alone:.3f}",
    )


def _stated_speedups(file: ResultFile) -> list[tuple[float, float, float, float]]:
    """(speed-up, parallel time, target total, sum of both totals) of each row that has all four."""
    figures = {figure.path: figure.value for figure in file.figures}
    drafts, targets = (
        {
            record.path.rpartition(".")[0]: record.times.get("total_time")
            for record in file.of(model)
        }
        for model in (file.draft, file.target)
    )
    found = []
    for place, alone in targets.items():
        stated = figures.get(f"{place}.parallel.parallel_speedup")
        wall = figures.get(f"{place}.parallel.wall_clock_total")
        first = drafts.get(place)
        if stated is not None and wall is not None and alone is not None and first is not None:
            found.append((stated, wall, alone, alone + first))
    return found


def _without_draft(file: ResultFile) -> Iterator[AuditFinding]:
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
    full = spent + means["egpt_draft_ms"] + _warm_prefill(file, means.get("egpt_prefill_ms", 0.0))
    stated = [figure for figure in file.figures if figure.name == "speedup"]
    mean = statistics.fmean(figure.value for figure in stated) if stated else alone / spent
    quote, figures = _stated_or_mean(file, "speedup", "speed-up", mean)
    yield AuditFinding(
        f"The speculative time, {spent:,.0f} ms on average, does not include the "
        f"draft's own {full - spent:,.0f} ms. With it the sequential speed-up is "
        f"{alone / full:.2f}, not the {quote.removesuffix(',')}.",
        tuple(figure.path for figure in stated),
        {**figures, "mean_ms": spent, "with_draft_ms": full, "speedup": alone / full},
        f"{alone / full:.2f}",
    )


def _means(file: ResultFile, *names: str) -> dict[str, float]:
    """Means of figures over the rows that have all of them; {} if no row has."""
    rows: dict[str, dict[str, float]] = {}
    for figure in file.figures:
        if figure.name in names:
            rows.setdefault(figure.path.removesuffix(figure.name), {})[figure.name] = figure.value
    whole = [row for row in rows.values() if len(row) == len(names)]
    return {name: statistics.fmean(row[name] for row in whole) for name in names if whole}


def _warm_prefill(file: ResultFile, recorded: float) -> float:
    """The draft's corrected mean prefill in ms, without a warm-up."""
    records = file.of(file.draft, corrected=True)
    cold = any("cold:prefill_ms" in record.marks for record in records)
    values = [r.times["prefill_ms"] for r in records if "prefill_ms" in r.times]
    return statistics.fmean(values) if cold and recorded else recorded


def cost_ratios(file: ResultFile) -> Iterator[AuditFinding]:
    """A cost ratio is that of whole answers instead of per token."""
    found = answer_pairs.acceptance(file)
    ratio = found.cost_ratio if found else None
    if ratio is None and (work := lengths.work(file)):
        ratio = 1 / work.per_token  # over the pairs that have both times
    claims = [claim for claim in file.claims if _COST_RATIO.search(claim.path)]
    claims += [claim for claim in file.claims if claim.path.endswith(".avg_c_ratio")]
    whole = _whole_ratio(file)
    if not claims or whole is None or not _is_whole(claims[0].stated, whole, ratio):
        return
    claim = claims[0]
    per_token = "unknown" if ratio is None else f"{ratio:.3f}"
    theory = next((c for c in file.claims if c.path.endswith("theoretical_speedup")), None)
    based = f"; the theoretical speed-up of {theory.stated:.3f} is based on it" if theory else ""
    yield AuditFinding(
        f"{claim.path} of {claim.stated:.3f} is the ratio of whole answers of any length; per "
        f"token it is {per_token}{based}.",
        tuple(one.path for one in (claim, theory) if one),
        {"stated": claim.stated, **({} if ratio is None else {"per_token": ratio})},
        "" if ratio is None else per_token,
    )


def _is_whole(stated: float, whole: float, per_token: float | None) -> bool:
    """Whether a cost ratio is closer to that of whole answers than to the one per token."""
    if stated <= 0 or abs(stated / whole - 1) > 0.1:
        return False
    if not per_token:
        return abs(stated / whole - 1) <= CLOSE
    apart = abs(whole / per_token - 1) > CLOSE
    return apart and abs(math.log(stated / whole)) < abs(math.log(stated / per_token))


def _whole_ratio(file: ResultFile) -> float | None:
    """The draft's mean total divided by the target's mean total, over the rows."""
    means = []
    for model in (file.draft, file.target):
        keys = [key for key, part in file.group.stages.items() if part == "total"]
        values = [r.times[k] for r in file.of(model) for k in keys if k in r.times]
        if not values or sum(values) <= 0:
            return None
        means.append(sum(values) / len(values))
    return means[0] / means[1]


def unequal(file: ResultFile) -> Iterator[AuditFinding]:
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
    yield AuditFinding(
        f"{doing} takes {slow} {work.ratio:.2f} times as long as {fast}: {work.tokens:.2f} times "
        f"the tokens and {work.per_token:.2f} times the time per token{cut_text}.",
        paths_of([*file.of(file.draft), *file.of(file.target)]),
        {
            "ratio": work.ratio,
            "tokens_ratio": work.tokens,
            "per_token_ratio": work.per_token,
            **{f"cut_{model}": float(cut.tokens) for model, cut in cuts},
        },
    )
