"""Rules about rates, times per token and speed-ups that do not include all stages.

A rate of r tokens per second means that N tokens took N / r; a time per token p means N p.  Either
must be a time that includes decoding.  A speed-up of s means that an answer took the target's time
divided by s.

Boundary: each rule yields its findings, or nothing; times in milliseconds.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations

from engine.analysis.number_text import precise_ms
from engine.published.audit.accepted import row_of
from engine.published.audit.finding import CheckResult, name_of, share, verb
from engine.published.audit.omissions import MANY_STAGES, MOST, stages_ms
from engine.published.read import answer_pairs, corrected, plausible_units
from engine.published.read.corrected import is_whole, part_of, stages_of
from engine.published.read.record_types import AnswerRecord, ResultFile, SampleFigure, milliseconds
from engine.published.read.stated_figures import statistic_of

CLOSE = 0.02
FAR = 0.1  # relative: a rate that fits no set of stages has to be this far from the decoding time
FEW = 3  # rows
_RATE = re.compile(r"tok(en)?s?_?(per|/)_?s(ec(ond)?s?)?$|tok_?s$|(^|_)tps$|throughput")
_EACH = re.compile(r"per_?tok(en)?(_(time|ms|s))?$|token_time$|(^|_)tpot(_ms)?$")
_SPEEDUP = re.compile(r"speed_?up")
_IDEAL = re.compile(r"ideal|theor|max|upper|bound|estim|predict|expect|prefill|vision|load|prep|"
                    r"decod|generat|stage|token|std|min")  # fmt: skip


def per_token(file: ResultFile) -> Iterator[CheckResult]:
    """A rate or a time per token does not fit any time that includes decoding."""
    for model in () if file.own else file.models:
        if plausible_units.doubts_times(file, model):
            continue
        records = file.of(model)
        known = stages_of(records, file.group)
        whole = [record for record in records if is_whole(record, file.group, known)]
        keys = dict.fromkeys(key for r in whole for key in (*r.times, *r.sizes))
        for key in keys if 1 <= len(known) <= MANY_STAGES else ():
            if _RATE.search(key) or _EACH.search(key):
                yield from _wrong_rate(file, model, key, whole)


def _wrong_rate(
    file: ResultFile, model: str, key: str, records: Sequence[AnswerRecord]
) -> Iterator[CheckResult]:
    rows = [(r, spans) for r in records if (spans := _spans(file, r, key))]
    timed = [(r, spans, times) for r, spans in rows if (times := _decodings(file, r))]
    wrong = [
        (r, spans)
        for r, spans, times in timed
        if not _any_close(spans, times, CLOSE if _partial(file, r, spans) else FAR)
    ]
    if len(wrong) < max(FEW, MOST * len(timed)):
        return
    record, spans = wrong[0]
    stated = record.times.get(key, record.sizes.get(key, 0.0))
    partial = _partial(file, record, spans)
    fits = f"the time of {', '.join(partial)} only" if partial else "none of its times"
    yield CheckResult(
        f"{name_of(file, model)}: {share(len(wrong), len(timed), 'record')} "
        f"{verb(len(wrong), 'has', 'have')} a {key} that does not fit the decoding; the first "
        f"states {stated:.4g}, which means {precise_ms(spans[0])} for {record.tokens:,.0f} tokens: "
        f"this is {fits}.",
        [record for record, _ in wrong],
        {"stated": stated, "implied_ms": spans[0]},
        model=model,
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


def _decodings(file: ResultFile, record: AnswerRecord) -> list[float]:
    """Every sum of the record's stages in ms that includes decoding, and its total."""
    stages = stages_ms(file, record)
    decoding = [key for key in stages if file.group.stages[key] in ("steps", "decode")]
    others = [key for key in stages if key not in decoding]
    base = math.fsum(stages[key] for key in decoding)
    total = part_of(record, file.group, "total")
    if not base:
        return []
    found = [base + math.fsum(stages[key] for key in some)
             for size in range(len(others) + 1) for some in combinations(others, size)]  # fmt: skip
    return [*found, milliseconds(*total)] if total else found


def _any_close(spans: Sequence[float], times: Sequence[float], slack: float = CLOSE) -> bool:
    return any(abs(span - time) <= slack * time for span in spans for time in times)


def _partial(file: ResultFile, record: AnswerRecord, spans: Sequence[float]) -> tuple[str, ...]:
    """Stages without decoding whose sum is such a span."""
    stages = stages_ms(file, record)
    others = [key for key in stages if file.group.stages[key] not in ("steps", "decode")]
    for size in range(1, len(others) + 1):
        for some in combinations(others, size):
            if _any_close(spans, [math.fsum(stages[key] for key in some)]):
                return some
    return ()


def impossible(file: ResultFile) -> Iterator[CheckResult]:
    """A speed-up implies less time than the target's prefill and less than the draft's time."""
    if file.own or not file.draft or plausible_units.is_doubtful(file):
        return
    names = {figure.name for figure in file.figures if _is_speedup(figure.name)}
    for name in sorted(names):
        yield from _impossible(file, name)


def _is_speedup(name: str) -> bool:
    last = name.rsplit(".", 1)[-1].lower()
    return bool(_SPEEDUP.search(last)) and not _IDEAL.search(last)


def _impossible(file: ResultFile, name: str) -> Iterator[CheckResult]:
    stated = {row_of(f.path): f for f in file.figures if f.name == name and f.value > 0}
    rows: list[tuple[SampleFigure, tuple[float, float, float, float]]] = []
    for mine, other in answer_pairs.matched(file, file.draft, file.target, corrected=False):
        figure, alone = stated.get(row_of(other.path)), _whole(file, other)
        prefill, draft = part_of(other, file.group, "prefill"), _whole(file, mine)
        if figure and alone and prefill and draft:
            rows.append((figure, (alone / figure.value, milliseconds(*prefill), draft, alone)))
    found = [row for row in rows if row[1][0] < (1 - CLOSE) * min(row[1][1:3])]
    if len(found) < max(FEW, MOST * len(rows)):
        return
    spent, prefill_ms, draft_ms, alone_ms = (
        statistics.fmean(row[1][column] for row in found) for column in range(4)
    )
    speedup, figures = _stated_or_mean(file, name, [row[0].value for row in found])
    yield CheckResult(
        f"The {speedup} implies {precise_ms(spent)} per answer on average. But "
        f"{name_of(file, file.target)} alone takes {precise_ms(alone_ms)}, of which prefill "
        f"takes {precise_ms(prefill_ms)}, and {name_of(file, file.draft)} takes "
        f"{precise_ms(draft_ms)}. So the speed-up does not include all measured stages.",
        figures=figures | {"implied_ms": spent, "prefill_ms": prefill_ms, "draft_ms": draft_ms},
        paths=tuple(row[0].path for row in found),
    )


def _stated_or_mean(
    file: ResultFile, name: str, values: Sequence[float]
) -> tuple[str, dict[str, float]]:
    """The speed-up that the summary states, otherwise the mean of the rows."""
    for claim in file.claims:
        if statistic_of(claim.path.rsplit(".", 1)[-1]) == (name.rsplit(".", 1)[-1], "mean"):
            return f"stated {name} of {claim.stated:.2f}", {"stated": claim.stated}
    mean = statistics.fmean(values)
    return f"{name} of the rows, {mean:.2f} on average,", {"mean_of_rows": mean}


def _whole(file: ResultFile, record: AnswerRecord) -> float | None:
    """The longest measured time in ms: the sum of the stages, or the total."""
    stages, total = corrected.stage_sum(record, file.group), part_of(record, file.group, "total")
    spent = [math.fsum(stages_ms(file, record).values())] if stages is not None else []
    return max([*spent, *([milliseconds(*total)] if total else [])], default=None)
