"""Two models compared: pairs of answers with their acceptance figures, how length contributes to a
time difference, and whether times can be in their file's unit.

Milliseconds read as seconds are 1,000 times too long.  The models of published rows have seven
billion parameters.  No device reads 3.5 GB of 4-bit weights in under 0.1 ms for a token, or
multiplies them with some 600 positions in under 1 ms; 5 s for a token or 30 s for a prefill is not
plausible either.  If the times of a file's two models differ by a factor of 100, they are in
different units.
"""

import math
import re
import statistics
from collections.abc import Callable, Iterator
from typing import NamedTuple

from engine.analysis.acceptance import GAMMA, Acceptance, Pair, analyse
from engine.published.read.cells import is_number
from engine.published.read.file_forms import Part
from engine.published.read.record_types import EOS, AnswerRecord, Claim, ResultFile

TimeOf = Callable[[AnswerRecord], float | None]  # ms of a part of a run


def matched(
    file: ResultFile, draft: str, target: str, corrected: bool = True
) -> Iterator[tuple[AnswerRecord, AnswerRecord]]:
    """The answers of two models to the same sample and question, in the draft's order.  A sample
    that appears twice counts once, by the first record of each model."""
    mine, others = (
        {record.key: record for record in reversed(file.of(model, corrected))}
        for model in (draft, target)
    )
    for record in file.of(draft, corrected):
        if record.key in others and mine[record.key] is record:
            yield record, others[record.key]


def pairs_of(file: ResultFile, draft: str, target: str, way: str = "") -> tuple[Pair, ...]:
    """The pairs of two models by sample and question, in the draft's order.  way: "" with corrected
    ids, "recorded", "raw" (recorded ids without times), "whole" (without answers whose first ids
    are missing), "shifted" (against the target from its second id)."""
    sliced = {r.key for r in file.corrected if way == "whole" and "sliced" in r.marks}
    made = []
    for record, other in matched(file, draft, target, way not in ("recorded", "raw")):
        if record.ids is None or other.ids is None or record.key in sliced:
            continue
        ids = other.ids[1:] if way == "shifted" else other.ids
        timed = None if way == "raw" else _decoding(record, other)
        times: tuple[float | None, float | None] = timed[1:] if timed else (None, None)
        tokens = record.tokens, other.tokens
        pair = Pair(record.sample, record.ids, ids, record.question, *times, *tokens, record.clip)
        made.append(pair)
    return tuple(made)


def _decoding(mine: AnswerRecord, other: AnswerRecord) -> tuple[Part, float, float] | None:
    """(part, ms of each) of decoding; None unless both have a time of the same part."""
    fast, slow = mine.decoding(), other.decoding()
    return (*fast, slow[1]) if fast and slow and fast[0] == slow[0] else None


def drafts(file: ResultFile) -> tuple[str, ...]:
    """The models whose ids can be drafts for the file's target, the main draft first."""
    names = [file.draft, *(m for m in file.models if m in ("adapter", "adapted"))]
    return tuple(name for name in names if name and pairs_of(file, name, file.target))


def acceptance(
    file: ResultFile, draft: str = "", gamma: int = GAMMA, way: str = ""
) -> Acceptance | None:
    """The figures of a draft, by default the file's, against its target; None without ids.
    Computed once per file, because the audit, the figures and the report use it."""
    draft, target = draft or file.draft, file.target
    key = "acceptance", draft, gamma, way
    if key not in file.computed:
        pairs = pairs_of(file, draft, target, way)
        file.computed[key] = analyse(pairs, draft, target, gamma) if pairs else None
    found: Acceptance | None = file.computed[key]
    return found


def variants(file: ResultFile, gamma: int = GAMMA, corrected: bool = True) -> dict[str, Acceptance]:
    """Every comparison that a file allows, by name: "main"; "raw": ids including the prompt;
    "without_sliced": without answers whose first ids are missing; for each further draft its name,
    and NAME_shifted: against the target from its second id.  Recorded: one per draft by name."""
    names = drafts(file)
    marks = {mark for record in file.corrected for mark in record.marks}
    kinds = {name: (name, "recorded") for name in names}
    if corrected:
        kinds = {"main": (file.draft, "")} if file.draft in names else {}
        if kinds and "prompt" in marks:
            kinds["raw"] = (file.draft, "raw")
        if kinds and "sliced" in marks:
            kinds["without_sliced"] = (file.draft, "whole")
        for name in names:
            if name != file.draft:
                kinds |= {name: (name, ""), f"{name}_shifted": (name, "shifted")}
    found = {kind: acceptance(file, draft, gamma, way) for kind, (draft, way) in kinds.items()}
    return {kind: one for kind, one in found.items() if one is not None}


def stated(file: ResultFile, corrected: bool = True) -> tuple[Claim, ...]:
    """The acceptance figures that the file states, beside the position match of its ids (None
    without ids)."""
    # files with an adapter state the rate of its draft
    names = [*(name for name in ("adapter", "adapted") if name in file.models), file.draft]
    every = (acceptance(file, name, way="" if corrected else "recorded") for name in names)
    ours = next((found.rate.value for found in every if found and found.rate), None)
    rows = []
    for claim in file.claims:
        key = claim.path.rsplit(".", 1)[-1]
        if "accept" in key and ("rate" in key or "estimate" in key) and not key.endswith("_std"):
            rows.append(Claim(claim.path, claim.stated, ours, "the position match"))
    return tuple(rows)


CUT_FROM = 3
_LIMIT = re.compile(r"(?i)(?=.*(max|limit|gamma)).*(tok|draft|length|gamma)")


class LengthCut(NamedTuple):
    """Answers of a model that stop at the same length without an end-of-text id.  answers: how many
    records have a length.  named: the setting with this value, "" for none.  ended: whether ids
    show that the answers have no end."""

    tokens: int
    records: tuple[AnswerRecord, ...]
    answers: int
    named: str
    ended: bool


class Work(NamedTuple):
    """The target's time divided by the draft's, over all pairs: tokens x time per token, roughly,
    because per_token counts the tokens that the time covers (see `covered`)."""

    part: Part
    ratio: float
    tokens: float
    per_token: float


def cut(file: ResultFile, model: str) -> LengthCut | None:
    """The answers that a limit stopped: at least a fifth and three of them have the greatest length
    and no EOS.  Without ids the length must be a setting of the file.  With ids but without such a
    setting, three different answers or all must stop there: equal texts have equal ends."""
    records = file.of(model, corrected=True)
    with_ids = any(record.ids for record in records)
    sized = [(len(r.ids or ()) if with_ids else r.tokens or 0.0, r) for r in records]
    lengths = [size for size, _ in sized if size]
    if not lengths:
        return None
    most = max(lengths)
    ended = [r for size, r in sized if size == most and not (r.ids and r.ids[-1] == EOS)]
    named = next((f"config.{key}" for key, value in file.config.items()
                  if is_number(value) and value == most and _LIMIT.match(key)), "")  # fmt: skip
    different = len({record.ids for record in ended}) >= CUT_FROM
    sure = named or (with_ids and (different or len(ended) == len(lengths)))
    if not sure or len(ended) < max(CUT_FROM, 0.2 * len(lengths)):
        return None
    return LengthCut(int(most), tuple(ended), len(lengths), named, with_ids)


def ratio_of_means(file: ResultFile, time: TimeOf, corrected: bool) -> float | None:
    """The target's mean time divided by the draft's, each over all records with a time."""
    slow, fast = (
        [value for record in file.of(model, corrected) if (value := time(record)) is not None]
        for model in (file.target, file.draft)
    )
    if not slow or not fast or sum(fast) <= 0:
        return None
    return statistics.fmean(slow) / statistics.fmean(fast)


def covered(file: ResultFile, tokens: float) -> float:
    """How many tokens the decoding time covers.  If the first token belongs to the prefill,
    avg_token_time divides by N - 1, as TPOT does.  Other forms divide by N, or do not say."""
    return tokens - 1 if file.group.first_token_in_prefill else tokens


def definition(file: ResultFile) -> str:
    if file.group.first_token_in_prefill:
        return "over the N - 1 tokens after the first, which the prefill gives"
    return "over all N tokens"


def work(file: ResultFile, corrected: bool = True) -> Work | None:
    """The factors of the ratio of decoding times; None without times or counts of both."""
    rows = []
    for mine, other in matched(file, file.draft, file.target, corrected):
        if (timed := _decoding(mine, other)) and mine.tokens and other.tokens:
            rows.append((*timed, mine.tokens, other.tokens))
    if len({part for part, *_ in rows}) != 1:
        return None
    sums = [math.fsum(float(row[column]) for row in rows) for column in range(1, 5)]
    counts = [covered(file, total / len(rows)) for total in sums[2:]]
    if min(counts) <= 0:
        return None
    ratio = sums[1] / sums[0]
    return Work(rows[0][0], ratio, sums[3] / sums[2], ratio * counts[0] / counts[1])


POSSIBLE_MS = {"a token": (0.1, 5_000.0), "a prefill": (1.0, 30_000.0)}
APART = 100.0
_OF_MEANS = ("stage_timing.eventgpt", "stage_timing.videollava")  # in files without their rows


class Doubt(NamedTuple):
    """Times that cannot be in the file's unit.  what: "a token", "a prefill", or "an answer" if
    neither is known for both models.  ms: the median time by the model's name in the file or the
    path of its means; of draft and target if they are possible alone but too far apart."""

    what: str
    ms: dict[str, float]


def doubts(file: ResultFile) -> list[Doubt]:
    """The models whose times are impossible in the file's unit, at most one doubt each; without
    any, draft and target if their times differ by a factor of 100."""
    if "middles" not in file.computed:  # the median ms of a token, a prefill and an answer
        middles = {}
        for model in file.models:
            records = [(record, record.decoding()) for record in file.of(model, corrected=True)]
            of = {
                "a token": [found[1] / r.tokens for r, found in records if found and r.tokens],
                "a prefill": [ms for record, _ in records if (ms := record.ms("prefill"))],
                "an answer": [found[1] for _, found in records if found],
            }
            middles[model] = {what: statistics.median(ms) for what, ms in of.items() if ms}
        file.computed["middles"] = middles  # now that it is whole: other threads may read it
    every: dict[str, dict[str, float]] = {**file.computed["middles"]}
    stated = {claim.path: claim.stated for claim in file.claims}
    for place in _OF_MEANS:  # models without rows
        spent, tokens = (stated.get(f"{place}.{key}") for key in ("decode_ms", "avg_tokens"))
        if spent and tokens:
            every[place] = {"a token": spent / tokens}
    found = {
        model: Doubt(what, {model: times[what]})
        for what, (low, high) in reversed(POSSIBLE_MS.items())
        for model, times in every.items()
        if what in times and not low <= times[what] <= high
    }
    if found or not file.draft:
        return [found[model] for model in every if model in found]
    mine, other = every[file.draft], every[file.target]
    both = [what for what in mine if what in other]
    for what in both[:-1] or both:
        if not 1 / APART < mine[what] / other[what] < APART:
            return [Doubt(what, {file.draft: mine[what], file.target: other[what]})]
    return []


def is_doubtful(file: ResultFile) -> bool:
    """Whether ratios of the file's two models are not usable."""
    compared = {file.draft, file.target, *_OF_MEANS}
    return any(compared & doubt.ms.keys() for doubt in doubts(file))
