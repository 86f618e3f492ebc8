"""Three published claims about EventGPT beside what imported files say, and what a difference is
made of.

The claims are those of the benchmark's design documents: about 3.3x faster overall, 1.9x in
decoding, 8x faster loading, each against the other model.  A ratio here is the other model's time
divided by EventGPT's: of the means, and the median over samples with a bootstrap interval.

Boundary: figures from ResultFiles; no drawing, no Markdown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from engine.records import summary
from engine.records.comparing import decoding
from engine.records.correct import part_of
from engine.records.identity import KEY_FAMILY
from engine.records.types import NAMES, Record, ResultFile, milliseconds
from engine.stats import Interval, bootstrap

HELD = 0.1  # a ratio within 10 % of the claim bears it out
Reach = Callable[[ResultFile, Record], float | None]


@dataclass(frozen=True)
class Evidence:
    """What one file gives for a claim.

    samples: pairs of answers, 0 where the file has means alone.  recorded and corrected: the ratio
    of the means.  paired: the median over samples with its interval, of the values asked for.
    notes: what stands in the way of reading the ratio as it is.
    """

    file: str
    other: str
    samples: int
    recorded: float | None
    corrected: float | None
    paired: Interval | None
    notes: tuple[str, ...] = ()

    def ratio(self, corrected: bool) -> float | None:
        """The recorded one where nothing could be corrected (means alone)."""
        return self.corrected if corrected and self.corrected is not None else self.recorded


@dataclass(frozen=True)
class Headline:
    """A claim, how many times as fast it says, and the files' evidence; verdict in one sentence."""

    name: str
    claim: str
    stated: float
    evidence: tuple[Evidence, ...]
    verdict: str


@dataclass(frozen=True)
class Part:
    """One bar of a waterfall: milliseconds that EventGPT saves (negative: loses) per sample."""

    name: str
    ms: float


@dataclass(frozen=True)
class Waterfall:
    """From the other model's mean total to EventGPT's; the parts and nothing else between them.

    tokens_ratio and per_token_ratio multiply to the ratio of decoding times.
    """

    file: str
    slow: str
    fast: str
    slow_ms: float
    fast_ms: float
    parts: tuple[Part, ...]
    tokens_ratio: float | None
    per_token_ratio: float | None


def headlines(files: Iterable[ResultFile], corrected: bool = True) -> tuple[Headline, ...]:
    """The three claims, each with every file that has both times, and a verdict on the values."""
    usable = [file for file in files if file.status == "ok" and not file.own]
    return tuple(
        _headline(name, claim, stated, reach, usable, corrected)
        for name, claim, stated, reach in (
            ("overall", "EventGPT is about 3.3x faster overall", 3.3, _total),
            ("decoding", "EventGPT is 1.9x faster in decoding", 1.9, _decoding),
            ("loading", "EventGPT's media load 8x faster", 8.0, _load),
        )
    )


def _total(file: ResultFile, record: Record) -> float | None:
    found = part_of(record, file.group, "total")
    # without loading (E) or as a model's generation alone (F, H) it is no pipeline's total
    whole = file.group.letter in ("A", "B", "B'", "C", "D")
    return milliseconds(*found) if found and whole else None


def _decoding(file: ResultFile, record: Record) -> float | None:
    found = decoding(record, file)
    return found[1] if found and found[0] != "total" else None


def _load(file: ResultFile, record: Record) -> float | None:
    found = part_of(record, file.group, "load")
    return milliseconds(*found) if found else None


def _headline(
    name: str,
    claim: str,
    stated: float,
    reach: Reach,
    files: Sequence[ResultFile],
    corrected: bool,
) -> Headline:
    every = (_evidence(file, reach, name, corrected) for file in files)
    found = tuple(one for one in every if one is not None)
    return Headline(name, claim, stated, found, _verdict(stated, found, corrected))


def _evidence(file: ResultFile, reach: Reach, name: str, corrected: bool) -> Evidence | None:
    if not file.draft:
        return _of_means(file) if name == "decoding" else None
    recorded = _ratio(file, reach, corrected=False)
    pairs = _pairs(file, reach, corrected)
    if recorded is None or not pairs:
        return None
    ratios = [slow / fast for slow, fast in pairs]
    return Evidence(
        file=file.name,
        other=_name(file),
        samples=len(pairs),
        recorded=recorded,
        corrected=_ratio(file, reach, corrected=True),
        paired=bootstrap(ratios) if len(ratios) > 1 else None,
        notes=tuple(_notes(file, name, corrected)),
    )


def _of_means(file: ResultFile) -> Evidence | None:
    """G keeps the means of both models alone, without rows of EventGPT and without loading."""
    stated = {claim.path: claim.stated for claim in file.claims}
    slow, fast = (stated.get(f"stage_timing.{m}.decode_ms") for m in ("videollava", "eventgpt"))
    tokens = [stated.get(f"stage_timing.{m}.avg_tokens") for m in ("videollava", "eventgpt")]
    if not slow or not fast:
        return None
    notes = ["from the file's own means: it has no rows of EventGPT"]
    if tokens[0] and tokens[1]:
        more = tokens[0] / tokens[1]
        notes.append(f"{more:.2f}x the tokens at {slow / fast / more:.2f}x the time per token")
    return Evidence(file.name, "Video-LLaVA", 0, slow / fast, None, None, tuple(notes))


def _name(file: ResultFile) -> str:
    identity = file.identities[file.target]
    return NAMES.get(identity.family or "", identity.claimed)


def _times(file: ResultFile, model: str, reach: Reach, corrected: bool) -> list[float]:
    records = [r for r in file.of(model, corrected) if not (corrected and "cold" in r.marks)]
    found = (reach(file, record) for record in records)
    return [value for value in found if value is not None]


def _ratio(file: ResultFile, reach: Reach, corrected: bool) -> float | None:
    slow, fast = (_times(file, m, reach, corrected) for m in (file.target, file.draft))
    if not slow or not fast or sum(fast) <= 0:
        return None
    return (math.fsum(slow) / len(slow)) / (math.fsum(fast) / len(fast))


def _pairs(file: ResultFile, reach: Reach, corrected: bool) -> list[tuple[float, float]]:
    others = {(r.sample, r.question): r for r in file.of(file.target, corrected)}
    found = []
    for record in file.of(file.draft, corrected):
        other = others.get((record.sample, record.question))
        if other is None or "cold" in record.marks | other.marks:  # marks of corrected ones alone
            continue
        fast, slow = reach(file, record), reach(file, other)
        if fast and slow:
            found.append((slow, fast))
    return found


def _notes(file: ResultFile, name: str, corrected: bool) -> list[str]:
    found = []
    identity = file.identities[file.target]
    if identity.agrees is False:
        found.append(f"labelled {identity.claimed}, but {_name(file)} answered")
    if KEY_FAMILY.get(file.draft) != "eventgpt":
        found.append(f"the draft is {file.draft}, not EventGPT")
    if file.group.letter == "C" and name != "loading":
        found.append("both decoded a few tokens of a fixed number")
    fall = waterfall(file, corrected)
    if fall and name != "loading" and fall.tokens_ratio and fall.per_token_ratio:
        found.append(
            f"{fall.tokens_ratio:.2f}x the tokens at {fall.per_token_ratio:.2f}x the time per token"
        )
    if any(r.context in (636, 637) for r in file.of(file.draft)):
        found.append("EventGPT saw one event image")
    ended = [r.ids[-1] == 2 for r in file.of(file.target, corrected=True) if r.ids]
    if ended and not any(ended) and name != "loading":
        found.append(f"{_name(file)}'s answers are cut at a limit")
    return found


def _verdict(stated: float, evidence: Sequence[Evidence], corrected: bool) -> str:
    ratios = [one.ratio(corrected) or 0.0 for one in evidence]
    if not ratios:
        return "No imported file has both times: nothing can be said."
    held = sum(abs(ratio / stated - 1) <= HELD for ratio in ratios)
    span = (
        f"{min(ratios):.2f}x" if len(ratios) == 1 else f"{min(ratios):.2f}x to {max(ratios):.2f}x"
    )
    where = "1 file gives" if len(ratios) == 1 else f"{len(ratios)} files give"
    return f"{where} {span}; {held} of {len(ratios)} within 10 % of {stated:g}x."


def waterfall(file: ResultFile, corrected: bool = True) -> Waterfall | None:
    """What the difference of the mean totals is made of; corrected values leave warm-ups out.

    Decoding is divided at EventGPT's own speed: fewer tokens first, then time per token.  None
    where a file lacks totals, stages or token counts of either model.
    """
    if not file.draft or file.status != "ok":
        return None
    fast, slow = (_means(file, model, corrected) for model in (file.draft, file.target))
    if fast is None or slow is None:
        return None
    parts = [
        Part(name, slow[1].get(name, 0.0) - fast[1].get(name, 0.0))
        for name in dict.fromkeys([*slow[1], *fast[1]])
        if name != "decode"
    ]
    tokens, per_token = slow[2] / fast[2], None
    decode_slow, decode_fast = slow[1].get("decode"), fast[1].get("decode")
    if decode_slow and decode_fast:
        each = decode_fast / fast[2]
        per_token = decode_slow / slow[2] / each
        parts.append(Part("fewer tokens", (slow[2] - fast[2]) * each))
        parts.append(Part("time per token", decode_slow - slow[2] * each))
    rest = (slow[0] - fast[0]) - math.fsum(part.ms for part in parts)
    if abs(rest) > 0.001 * slow[0]:
        parts.append(Part("not in any stage", rest))
    return Waterfall(
        file.name, _name(file), "EventGPT", slow[0], fast[0], tuple(parts), tokens, per_token
    )


def _means(
    file: ResultFile, model: str, corrected: bool
) -> tuple[float, dict[str, float], float] | None:
    """(mean total ms, mean ms by part with prefill apart, mean tokens) of the warm records."""
    warm = [r for r in file.of(model, corrected) if "cold" not in r.marks]
    tokens = summary.average([r.tokens for r in warm if r.tokens is not None]).mean
    parts: dict[str, float] = {}
    for key, part in file.group.stages.items():
        mean = summary.average([r.times[key] for r in warm if key in r.times]).mean
        if mean is not None:
            parts["decode" if part == "steps" else part] = milliseconds(key, mean)
    total = parts.pop("total", 0.0)
    return (total, parts, tokens) if total and parts and tokens else None
