"""Three claims of the benchmark's design documents about EventGPT beside the evidence of imported
files, and the parts of the difference of two models' mean totals.

A ratio is the other model's time divided by EventGPT's: the ratio of means, and the median over
clips (each counts once, by the median of its samples) with its exact interval.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from engine.analysis.acceptance import amount
from engine.analysis.statistics import MIN_CLUSTERS, Interval, median_interval
from engine.palette import UNACCOUNTED
from engine.published.audit import RULES
from engine.published.audit.findings import SEARCHES
from engine.published.read import answer_pairs
from engine.published.read.record_types import NAMES, AnswerRecord, ResultFile, milliseconds
from engine.published.read.who_answered import KEY_FAMILY, speaks_of_eventgpt
from engine.quoting import precise_ms

# rules of the audit whose findings make a ratio hard to interpret, the second of decoded answers
NOTED, OF_ANSWERS = ("label", "one_image", "failures"), ("degenerate", "capped")
LIMITS = ("max_new_tokens", "max_tokens")
IMPLAUSIBLE = 100.0  # times as fast: mixed seconds and milliseconds are more likely
ClaimOutcome = Literal["supported", "not supported", "cannot be judged"]
ROUNDING_MS = 0.05  # less is not shown
Parts = dict[str, float]  # ms by part of a run
# a part that one model does not time separately -> the parts that may include it
_HELD_BY = {"vision": ("prefill", "decode"), "prefill": ("decode",)}


def _total(record: AnswerRecord) -> float | None:
    """Total ms of the whole run; None if the group's totals do not include loading."""
    return record.ms("total") if record.group.total_is_whole_run else None


def _decode(record: AnswerRecord) -> float | None:
    """Decoding ms, including the prefill if the file does not separate them."""
    timed = record.decoding()
    return timed[1] if timed and timed[0] != "total" else None


class PublishedClaim(NamedTuple):
    name: str
    words: str
    stated: float
    what: str  # the time that it is about
    time: answer_pairs.TimeOf


CLAIMS = (
    PublishedClaim("overall", "EventGPT is about 3.3x faster overall", 3.3, "a total", _total),
    PublishedClaim("decoding", "EventGPT is 1.9x faster in decoding", 1.9, "decoding", _decode),
    PublishedClaim("loading", "EventGPT's media load 8x faster", 8.0, "loading",
                   lambda record: record.ms("load")),
)  # fmt: skip


@dataclass(frozen=True)
class Evidence:
    """One file's evidence for a claim.  samples: the pairs of answers, 0 if it has means only;
    clips: how many clips they are of.  recorded, corrected: the ratio of the means.  paired: the
    median over clips with its interval, None for fewer than MIN_CLUSTERS clips.  notes: what makes
    the ratio hard to interpret.  doubted: its units are implausible, so no verdict counts it."""

    file: str
    other: str
    samples: int
    recorded: float | None
    corrected: float | None
    paired: Interval | None
    notes: tuple[str, ...] = ()
    clips: int = 0
    doubted: bool = False

    def ratio(self, corrected: bool) -> float | None:
        """The recorded ratio if nothing could be corrected."""
        return self.corrected if corrected and self.corrected is not None else self.recorded

    @property
    def amount(self) -> str:
        return amount(self.samples, self.clips) if self.samples else "means"


@dataclass(frozen=True)
class Headline:
    """A claim, the claimed factor, the files' evidence and a verdict in one sentence.  outcome:
    supported or not if all files agree that do not leave their units in doubt; otherwise it cannot
    be judged.  without: the files without evidence, by reason."""

    name: str
    claim: str
    stated: float
    evidence: tuple[Evidence, ...]
    verdict: str
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    outcome: ClaimOutcome = "cannot be judged"

    @property
    def judged(self) -> str:
        return f"{self.outcome.capitalize()}: {self.claim}."

    @property
    def line(self) -> str:
        return f"{self.judged} {self.verdict}"


def headlines(files: Iterable[ResultFile], corrected: bool = True) -> tuple[Headline, ...]:
    every, made = tuple(files), []
    for claim in CLAIMS:
        evidence, without = [], dict[str, tuple[str, ...]]()
        for file in every:
            one = _evidence(file, claim, corrected)
            if isinstance(one, str):
                without[one] = (*without.get(one, ()), file.name)
            else:
                evidence.append(one)
        ratios = [one.ratio(corrected) or 0.0 for one in evidence if not one.doubted]
        held = [abs(ratio / claim.stated - 1) <= 0.1 for ratio in ratios]
        verdict = "No imported file has both times, so there is no evidence."
        if ratios:
            give = f"{len(held)} files give {min(ratios):.2f}x to" if held[1:] else "1 file gives"
            within = f"{sum(held)} of {len(held)} within 10 % of {claim.stated:g}x."
            verdict = f"{give} {max(ratios):.2f}x; {within}"
        if doubted := len(evidence) - len(ratios):
            verdict += f" {doubted} more not counted: units in doubt."
        outcome: ClaimOutcome = "cannot be judged"
        if len(set(held)) == 1:
            outcome = "supported" if held[0] else "not supported"
        made.append(Headline(*claim[:3], tuple(evidence), verdict, without, outcome))
    return tuple(made)


def _evidence(file: ResultFile, claim: PublishedClaim, corrected: bool) -> Evidence | str:
    """The evidence, or why there is none: the file lacks the two times of the claim."""
    if file.status == "failed":
        return "the run failed: there is no result" if file.failures else "has no usable result"
    if file.status == "unknown":
        return "not usable: another kind of file, or damaged"
    if not file.group.is_known:
        return "of an unknown form: what its times cover is not known"
    if not file.draft:
        means = _of_means(file) if claim.name == "decoding" else None
        return means or "has times of the target alone and with drafts, but no rows of EventGPT"
    both = [file.of(model) for model in (file.draft, file.target)]
    if not all(both):
        return "has answers of one model only"
    if not speaks_of_eventgpt(file):
        return "a model other than EventGPT or its comparison models answered"
    recorded = answer_pairs.ratio_of_means(file, claim.time, corrected=False)
    times = (
        (mine.source, claim.time(other), claim.time(mine))
        for mine, other in answer_pairs.matched(file, file.draft, file.target, corrected)
    )
    pairs = [(clip, slow / fast) for clip, slow, fast in times if slow and fast]
    if recorded is None or not pairs:
        return _untimed(file, claim, [any(map(claim.time, records)) for records in both])
    clips, ratios = zip(*pairs, strict=True)
    enough, doubt = len(set(clips)) >= MIN_CLUSTERS, _doubt(file, recorded)
    return Evidence(
        file=file.name,
        other=named(file, file.target, corrected),
        samples=len(pairs),
        recorded=recorded,
        corrected=answer_pairs.ratio_of_means(file, claim.time, corrected=True),
        paired=median_interval(ratios, clips, ratios=True) if enough else None,
        notes=(*doubt, *_notes(file, claim.name, corrected)),
        clips=len(set(clips)),
        doubted=bool(doubt),
    )


def _untimed(file: ResultFile, claim: PublishedClaim, timed: Sequence[bool]) -> str:
    parts = {file.group.stages.get(key) for record in file.records for key in record.times}
    if not parts:
        return "has no times"
    if any(timed):
        models = f"{claim.what} is timed for one model only"
        return f"no sample has {claim.what} of both models" if all(timed) else models
    if claim.name == "overall":
        return "its totals do not include loading" if "total" in parts else "has no totals"
    if claim.name == "loading" and "load+preprocess" in parts:
        return "loading is timed together with preprocessing"
    if claim.name == "decoding" and "total" in parts:
        return "only whole answers are timed, decoding not separately"
    return f"{claim.what} is not timed"


def _of_means(file: ResultFile) -> Evidence | None:
    """Evidence of a file (group wall_clock) that has means of decoding but no rows of EventGPT."""
    stated = {claim.path: claim.stated for claim in file.claims}
    slow, fast = (stated.get(f"stage_timing.{m}.decode_ms") for m in ("videollava", "eventgpt"))
    theirs, mine = (stated.get(f"stage_timing.{m}.avg_tokens") for m in ("videollava", "eventgpt"))
    if not slow or not fast or slow < 0 or fast < 0:
        return None
    ratio = slow / fast
    notes = [f"computed from the file's means over {amount(file.samples, file.clips)}: the file "
             "has no rows of EventGPT"]  # fmt: skip
    if theirs and mine:
        notes.append(_ratios(file, theirs / mine, ratio / (theirs / mine)))
    limit = next((file.config[key] for key in LIMITS if key in file.config), None)
    if mine and mine == limit:  # a mean that is the most there can be
        notes.append(f"{NAMES['eventgpt']}: all answers stopped at {mine:,.0f} tokens")
    doubt, other = _doubt(file, ratio), NAMES["video_llava"]
    notes = [*doubt, *notes, *_findings(file, (*NOTED, *OF_ANSWERS))]
    return Evidence(file.name, other, 0, ratio, None, None, tuple(notes), doubted=bool(doubt))


def _doubt(file: ResultFile, ratio: float) -> tuple[str, ...]:
    """A sentence if the units of the file, or of this ratio of two times, are implausible.  A
    single stage can be more than 100x as fast (loading in 1.5 ms against 1 s).  If the totals are
    plausible and equal the sum of their stages, all times are in one unit."""
    both = (file.draft, file.target)
    doubts = answer_pairs.doubts(file)
    for what, times in doubts:
        (model, ms), *others = times.items()
        if not others and (model in both or model not in file.models):
            return (f"units in doubt: {what} of {model} takes {precise_ms(ms)}",)
    mixed = {hit.model for hit in SEARCHES["units"](file)}
    if any(len(one.ms) == 2 for one in doubts) or mixed & {*both}:
        return ("units in doubt: see the findings",)
    sums = [(record.part("total"), record.stage_sum)
            for model in both for record in file.of(model)]  # fmt: skip
    adds_up = all(whole and stages is not None and abs(whole[1] - stages) <= 0.05 * whole[1]
                  for whole, stages in sums)  # fmt: skip
    if (file.draft and adds_up) or 1 / IMPLAUSIBLE < ratio < IMPLAUSIBLE:
        return ()
    return (f"units in doubt: {ratio:,.3g}x is not a plausible ratio of these models",)


def _notes(file: ResultFile, claim: str, corrected: bool) -> Iterator[str]:
    """What makes a ratio hard to interpret, for a file with rows of both models."""
    if KEY_FAMILY.get(file.draft) != "eventgpt":
        yield f"the draft is {file.draft}, not EventGPT"
    if claim != "loading":
        if file.group.fixed_length:
            yield "both models decoded a fixed small number of tokens"
        fall, work = waterfall(file, corrected), answer_pairs.work(file, corrected)
        if fall is not None and fall.tokens_ratio and fall.per_token_ratio:
            doubt = ", which is not plausible: see the findings" if fall.nonsense else ""
            yield _ratios(file, fall.tokens_ratio, fall.per_token_ratio) + doubt
        elif work:
            yield _ratios(file, work.tokens, work.per_token)
    yield from _findings(file, NOTED if claim == "loading" else (*NOTED, *OF_ANSWERS))


def _findings(file: ResultFile, rules: Sequence[str]) -> Iterator[str]:
    """What the audit says about the two models, in the first sentence of each finding."""
    for rule in RULES:
        for finding in rule.findings(file) if rule.name in rules else ():
            if not file.draft or finding.model in ("", file.draft, file.target):
                yield finding.message.partition(". ")[0].removesuffix(".")


def _ratios(file: ResultFile, tokens: float, per_token: float) -> str:
    after = " after the first" if file.group.first_token_in_prefill else ""
    return f"{tokens:.2f}x the tokens at {per_token:.2f}x the time per token{after}"


@dataclass(frozen=True)
class Waterfall:
    """From the other model's mean total to EventGPT's; the parts, the ms that EventGPT saves per
    sample, add up to the difference.  per_token_ratio counts the tokens that decoding covers."""

    slow: str
    fast: str
    slow_ms: float
    fast_ms: float
    parts: Parts
    tokens_ratio: float | None
    per_token_ratio: float | None

    @property
    def nonsense(self) -> str:
        """Why the parts are implausible: one of them is more than the whole time; "" if none is."""
        whole = max(self.slow_ms, self.fast_ms)
        sizes = {abs(ms): name for name, ms in reversed(self.parts.items())}
        worst = max(sizes, default=0.0)
        if worst <= whole:
            return ""
        alone = f"{sizes[worst]!r} alone would be {worst:,.0f} ms of a total of {whole:,.0f} ms"
        return f"These counts and times give implausible parts: {alone}."


def named(file: ResultFile, model: str, corrected: bool, key: bool = False) -> str:
    """Corrected: the model's name by the evidence, if there is any.  Recorded: the label, with a
    mark if the evidence contradicts it.  key: with the file's key if it differs."""
    identity = file.identities.get(model)
    if identity is None:
        return model
    name = NAMES.get(identity.family or "", identity.claimed) if corrected else identity.claimed
    own = f" ({model})" if key and not name.lower().endswith(model.lower()) else ""
    disputed = ", label disputed" if identity.agrees is False and not corrected else ""
    return f"{name}{own}{disputed}"


def waterfall(file: ResultFile, corrected: bool = True) -> Waterfall | None:
    """The parts of the difference of the mean totals, over all records of both models (PARTS of the
    report says what they are); None if totals, stages or token counts of either are missing."""
    if not file.draft or file.status != "ok":
        return None
    fast, slow = (_means(file, model, corrected) for model in (file.draft, file.target))
    if fast is None or slow is None:
        return None
    (mine_ms, mine, fast_tokens), (theirs_ms, theirs, slow_tokens) = fast, slow
    for part, holders in _HELD_BY.items():
        held = next((name for name in holders if name in theirs and name in mine), "")
        if held and (part in theirs) != (part in mine):
            both = "prefill + vision" if held == "prefill" else f"{part} + {held}"
            theirs, mine = (_merged(parts, part, held, both) for parts in (theirs, mine))
    saved = {}
    for part in {**theirs, **mine}:
        name = part if part in theirs and part in mine else f"{part}, timed for one model only"
        saved[name] = theirs.get(part, 0.0) - mine.get(part, 0.0)
    per_token = None
    counts = [answer_pairs.covered(file, tokens) for tokens in (slow_tokens, fast_tokens)]
    if "decode" in saved:  # of both models
        whole = saved.pop("decode")
        if theirs["decode"] and mine["decode"] and min(counts) > 0:
            each = mine["decode"] / counts[1]
            per_token = theirs["decode"] / counts[0] / each
            saved["fewer tokens"] = (slow_tokens - fast_tokens) * each
            saved["time per token"] = theirs["decode"] - counts[0] * each
        else:
            saved["decode"] = whole
    rest = theirs_ms - mine_ms - math.fsum(saved.values())
    if abs(rest) > ROUNDING_MS:
        saved[UNACCOUNTED] = rest
    return Waterfall(
        slow=named(file, file.target, corrected),
        fast=named(file, file.draft, corrected),
        slow_ms=theirs_ms,
        fast_ms=mine_ms,
        parts=saved,
        tokens_ratio=slow_tokens / fast_tokens,
        per_token_ratio=per_token,
    )


def _merged(parts: Parts, part: str, held: str, both: str) -> Parts:
    """With a stage merged, because only one model separates it."""
    sums = {**parts, held: parts[held] + parts.get(part, 0.0)}
    return {both if name == held else name: ms for name, ms in sums.items() if name != part}


def _means(file: ResultFile, model: str, corrected: bool) -> tuple[float, Parts, float] | None:
    """(mean total ms, mean ms by part, mean tokens)."""
    records = file.of(model, corrected)
    tokens = [record.tokens for record in records if record.tokens is not None]
    parts: Parts = {}
    for key, part in file.group.stages.items():
        if values := [record.times[key] for record in records if key in record.times]:
            ms = milliseconds(key, statistics.fmean(values))
            parts["decode" if part == "steps" else part] = ms
    total = parts.pop("total", 0.0)
    if not total or not parts or not any(tokens):
        return None
    return total, parts, statistics.fmean(tokens)
