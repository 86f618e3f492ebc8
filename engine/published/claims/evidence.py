"""What a file shows for a published claim, why it shows nothing, and what makes it hard to read.

A claim is about a time ("overall", "decoding" or "loading"); a ratio is the target's time divided
by the draft's.  A ratio whose units are in doubt is no evidence.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.analysis.acceptance import amount
from engine.published.audit import AuditFinding
from engine.published.claims.waterfall import waterfall
from engine.published.read import answer_pairs, lengths, plausible_units
from engine.published.read.record_types import EOS, NAMES, AnswerRecord, ResultFile
from engine.published.read.who_answered import KEY_FAMILY, ONE_IMAGE, shown, speaks_of_eventgpt
from engine.quoting import precise_ms

WHAT = {"overall": "a total", "decoding": "decoding", "loading": "loading"}
SAME_FROM = 3  # answers
PER_TOKEN = (
    "Time per token is the decoding time divided by all N tokens of an answer. If a file counts "
    "the first token to the prefill, it is divided by the N - 1 other tokens."
)
LIMITS = ("max_new_tokens", "max_tokens")
IMPLAUSIBLE = 100.0  # times as fast: mixed seconds and milliseconds are more likely
ADDS_UP = 0.05  # of a total
NAMED = 3  # at most so many files are named
ClaimTime = Callable[[AnswerRecord], float | None]
Audited = tuple[ResultFile, tuple[AuditFinding, ...]]


def total(record: AnswerRecord) -> float | None:
    """Total ms of the whole run; None if the group's totals do not include loading."""
    return record.ms("total") if record.group.total_is_whole_run else None


def decode(record: AnswerRecord) -> float | None:
    """Decoding ms, including the prefill if the file does not separate them."""
    found = record.decoding()
    return found[1] if found and found[0] != "total" else None


CLAIM_TIMES: Mapping[str, ClaimTime] = {
    "overall": total,
    "decoding": decode,
    "loading": lambda record: record.ms("load"),
}


def ratio_of_means(file: ResultFile, claim_time: ClaimTime, corrected: bool) -> float | None:
    """The target's mean time divided by the draft's, each over all records with a time."""
    slow, fast = (
        [time for r in file.of(model, corrected) if (time := claim_time(r)) is not None]
        for model in (file.target, file.draft)
    )
    if not slow or not fast or sum(fast) <= 0:
        return None
    return (math.fsum(slow) / len(slow)) / (math.fsum(fast) / len(fast))


def pairs(
    file: ResultFile, claim_time: ClaimTime, corrected: bool
) -> list[tuple[str, float, float]]:
    """(clip, target ms, draft ms) of each sample with both times."""
    both = answer_pairs.matched(file, file.draft, file.target, corrected)
    times = ((mine.source, claim_time(other), claim_time(mine)) for mine, other in both)
    return [(clip, slow, fast) for clip, slow, fast in times if slow and fast]


# Why a file has no evidence


@dataclass(frozen=True)
class Without:
    """Files without evidence for a claim, for one reason."""

    reason: str
    files: tuple[str, ...]


def without(files: Sequence[ResultFile], name: str) -> tuple[Without, ...]:
    """The files grouped by reason."""
    found: dict[str, list[str]] = {}
    for file in files:
        found.setdefault(reason(file, name), []).append(file.name)
    return tuple(Without(why, tuple(names)) for why, names in found.items())


def reason(file: ResultFile, name: str) -> str:
    """Why this file lacks the two times of a claim."""
    if file.status == "failed":
        return "the run failed: there is no result" if file.failures else "has no usable result"
    if file.status == "unknown":
        return "not usable: another kind of file, or damaged"
    if not file.draft:
        return "has times of the target alone and with drafts, but no rows of EventGPT"
    both = [file.of(model) for model in (file.draft, file.target)]
    if not all(both):
        return "has answers of one model only"
    if not speaks_of_eventgpt(file):
        return "a model other than EventGPT or its comparison models answered"
    parts = {file.group.stages.get(key) for record in file.records for key in record.times}
    if not parts:
        return "has no times"
    timed = [any(CLAIM_TIMES[name](r) is not None for r in records) for records in both]
    if all(timed):
        return f"no sample has {WHAT[name]} of both models"
    if any(timed):
        return f"{WHAT[name]} is timed for one model only"
    if name == "overall":
        return "its totals do not include loading" if "total" in parts else "has no totals"
    if name == "loading" and "load+preprocess" in parts:
        return "loading is timed together with preprocessing"
    if name == "decoding" and "total" in parts:
        return "only whole answers are timed, decoding not separately"
    return f"{WHAT[name]} is not timed"


# Whether all times are in one unit


def doubts(file: ResultFile, ratio: float) -> tuple[str, ...]:
    """A sentence if the units of the file, or of this ratio of two stages, are implausible.

    A single stage can be more than 100x as fast (loading in 1.5 ms against 1 s).  If the totals
    are plausible and equal the sum of their stages, all times are in one unit.
    """
    if sentence := impossible(file):
        return sentence
    for claim_time in (lambda record: record.ms("total"), decode):
        whole = ratio_of_means(file, claim_time, corrected=False)
        if whole is not None and (sentence := doubted(whole)):
            return sentence
    for model in (file.draft, file.target):
        totals = [value for record in file.of(model) if (value := record.ms("total"))]
        usual = statistics.median(totals) if totals else 1.0
        lone = next((one / usual for one in totals if _beyond(one / usual)), None)
        if lone is not None:
            return (f"units in doubt: totals of one model differ by {_times(lone)}",)
    return () if _adds_up(file) else doubted(ratio)


def impossible(file: ResultFile) -> tuple[str, ...]:
    """A sentence if a model's time per token or prefill is impossible in the file's unit."""
    for doubt in plausible_units.doubts(file):
        if doubt.model in (file.draft, file.target) or doubt.model not in file.models:
            return (f"units in doubt: {doubt.what} of {doubt.model} takes {precise_ms(doubt.ms)}",)
    return ()


def doubted(ratio: float) -> tuple[str, ...]:
    """A sentence if the ratio itself is implausible."""
    if not _beyond(ratio):
        return ()
    return (f"units in doubt: {_times(ratio)} is not a plausible ratio of these models",)


def _beyond(ratio: float) -> bool:
    return not 1 / IMPLAUSIBLE < ratio < IMPLAUSIBLE


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio > 1 else f"{ratio:.2g}x"


def _adds_up(file: ResultFile) -> bool:
    """Whether all records of both models have totals that equal the sum of their stages."""
    for record in (*file.of(file.draft), *file.of(file.target)):
        found, stages = record.part("total"), record.stage_sum
        if found is None or stages is None or abs(found[1] - stages) > ADDS_UP * found[1]:
            return False
    return True


# What makes a ratio hard to interpret


def confounds(file: ResultFile, name: str, corrected: bool) -> tuple[str, ...]:
    """Notes on a claim for a file with rows of both models."""
    found, identity = [], file.identities[file.target]
    if identity.agrees is False:
        found.append(f"labelled {identity.claimed}, but {shown(identity)} answered")
    if KEY_FAMILY.get(file.draft) != "eventgpt":
        found.append(f"the draft is {file.draft}, not EventGPT")
    if file.group.fixed_length and name != "loading":
        found.append("both models decoded a fixed small number of tokens")
    if name != "loading":
        found += _lengths(file, corrected)
    if any(record.context in ONE_IMAGE for record in file.of(file.draft)):
        found.append("EventGPT got one event image")
    for model in (file.draft, file.target) if name != "loading" else ():
        texts = [record.text for record in file.of(model) if record.text is not None]
        if len(texts) >= SAME_FROM and len(set(texts)) == 1:
            who = shown(file.identities[model], corrected)
            found.append(f"{who} gave the same answer to all {len(texts):,}")
        found += _cut(file, model, corrected)
    return (*found, *_failed(file))


def of_means(file: ResultFile, tokens: Sequence[float | None], ratio: float) -> tuple[str, ...]:
    """Notes on a file with means only.  tokens: mean token counts of target and EventGPT; ratio: of
    their decoding times."""
    found = [f"computed from the file's means over {amount(file.samples, file.clips)}: the file "
             "has no rows of EventGPT"]  # fmt: skip
    theirs, mine = tokens
    if theirs and mine:
        found.append(_ratios(file, theirs / mine, ratio / (theirs / mine)))
    limit = next((file.config[key] for key in LIMITS if key in file.config), None)
    if mine and mine == limit:  # a mean that is the most there can be
        found.append(f"{NAMES['eventgpt']}: {_all_at(mine)}")
    if theirs and theirs == limit:
        found.append(f"{NAMES['video_llava']}: {_all_at(theirs)}")
    else:
        found += _cut(file, "baseline", corrected=True)
    return (*found, *_failed(file))


def _all_at(tokens: float) -> str:
    return f"all answers stopped at {tokens:,.0f} tokens"


def _lengths(file: ResultFile, corrected: bool) -> list[str]:
    """The ratio of token counts and of times per token."""
    fall = waterfall(file, corrected)
    if fall is not None and fall.tokens_ratio and fall.per_token_ratio:
        note = _ratios(file, fall.tokens_ratio, fall.per_token_ratio)
        return [f"{note}, which is not plausible: see the findings" if fall.nonsense else note]
    work = lengths.work(file, corrected)
    return [_ratios(file, work.tokens, work.per_token)] if work else []


def _ratios(file: ResultFile, tokens: float, per_token: float) -> str:
    after = " after the first" if file.group.first_token_in_prefill else ""
    return f"{tokens:.2f}x the tokens at {per_token:.2f}x the time per token{after}"


def _cut(file: ResultFile, model: str, corrected: bool) -> list[str]:
    if model not in file.models:
        return []
    name = shown(file.identities[model], corrected)
    if found := lengths.cut(file, model):
        cut = len(found.records)
        note = _all_at(found.tokens)
        if cut < found.answers:
            note = f"{cut:,} of {found.answers:,} answers stopped at {found.tokens:,} tokens"
        return [f"{name}: {note}"]
    ends = [record.ids[-1] == EOS for record in file.of(model, corrected=True) if record.ids]
    return [f"{name}: no answer has an end-of-text id"] if ends and not any(ends) else []


def _failed(file: ResultFile) -> list[str]:
    failed = len(file.failures)
    return [f"{failed:,} of {file.samples + failed:,} samples failed"] if failed else []


def both_denominators(file: ResultFile, findings: Sequence[AuditFinding]) -> str:
    """Why the match rate without the begin-of-text id differs between finding and tables, which
    divide by different counts; "" if it does not differ."""
    found = answer_pairs.acceptance(file)
    figures = next((one.figures for one in findings if one.rule == "bos_matched"), None)
    if found is None or not found.rate or not figures or not figures["stated_rate"]:
        return ""
    counted = round(
        figures["stated_matched"] / figures["stated_rate"] - figures["samples_with_bos"]
    )
    if counted == found.compared:
        return ""
    return (
        f"Without the begin-of-text id {figures['matched']:,.0f} ids match: "
        f"{figures['rate_without_bos']:.1%} of the {counted:,} positions that the file counts, "
        f"{found.rate.value:.1%} of the {found.compared:,} positions where both answers have an "
        "id. The position match uses the latter."
    )


# What a set of files leaves open


def unknowns(audited: Sequence[Audited]) -> tuple[str, ...]:
    """The open points of the files with results, each with the files that it concerns."""
    usable = [(file, {one.rule for one in found}) for file, found in audited if file.status == "ok"]
    points = []
    for sentence, concerns in _POINTS:
        names = [file.name for file, rules in usable if concerns(file, rules)]
        which = ", ".join(names)
        if len(names) == len(usable) > 1:
            which = f"all {len(names):,} files with results"
        elif len(names) > NAMED:
            which = f"{len(names):,} of {len(usable):,} files"
        if names:
            points.append(f"{sentence} ({which}).")
    return tuple(points)


def _without_contexts(file: ResultFile, _rules: set[str]) -> bool:
    mine = [r for r in file.records if KEY_FAMILY.get(r.model) == "eventgpt"]
    return bool(mine) and not any(record.context for record in mine)


def _has_answers(file: ResultFile) -> bool:
    return any(record.ids or record.text for record in file.records)


def _unmeasured(file: ResultFile, _rules: set[str]) -> bool:
    """Whether a model has times but none of the vision tower."""
    timed = [
        {file.group.stages.get(key) for record in file.of(model, corrected=True)
         for key in record.times}
        for model in file.models
    ]  # fmt: skip
    return any(parts and "vision" not in parts for parts in timed)


# The finding "one_image": EventGPT's answers in such a file are known to differ from generate().
_POINTS: tuple[tuple[str, Callable[[ResultFile, set[str]], bool]], ...] = (
    (
        "Which checkpoint answered, if only the label names the model: such names are shown as "
        "claimed",
        lambda file, _: any(file.identities[model].family is None for model in file.models),
    ),
    (
        "How many event images EventGPT got, because no context is recorded",
        _without_contexts,
    ),
    (
        "Whether the answers equal those of generate(), because no file has both for one input",
        lambda file, rules: _has_answers(file) and "one_image" not in rules,
    ),
    (
        "Whether the other model's answers equal those of generate(); EventGPT's cannot, because "
        "it got one event image",
        lambda file, rules: _has_answers(file) and "one_image" in rules,
    ),
    (
        "Whether outputs were sampled, and with which seed, because the settings do not say",
        lambda file, _: (
            not {"do_sample", "temperature", "seed"}
            & {key.rsplit(".", 1)[-1] for key in file.config}
        ),
    ),
    (
        "The natural length and time of answers that a limit stopped",
        lambda _, rules: "capped" in rules,
    ),
    (
        "The time of the vision tower, which is measured for one model only or as part of a longer "
        "time",
        _unmeasured,
    ),
    (
        "The speed-up of drafting over several cycles, because finished answers show only the "
        "first cycle",
        lambda file, _: answer_pairs.acceptance(file) is not None,
    ),
)
