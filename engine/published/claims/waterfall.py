"""Splits the difference of two models' mean totals into parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from engine.palette import UNACCOUNTED
from engine.published.read import file_summary, lengths
from engine.published.read.record_types import ResultFile, milliseconds
from engine.published.read.who_answered import disputed, shown

ROUNDING_MS = 0.05  # less is not shown
Means = tuple[float, dict[str, float], float]  # total ms, ms by part, tokens
ONE_SIDED = ", timed for one model only"  # the end of such a part's name
# a part that one model does not time separately -> the parts that may include it
_HELD_BY = {"vision": ("prefill", "decode"), "prefill": ("decode",)}


class WaterfallPart(NamedTuple):
    """One bar: milliseconds per sample that EventGPT saves (negative: it takes longer)."""

    name: str
    ms: float


@dataclass(frozen=True)
class Waterfall:
    """From the other model's mean total to EventGPT's; the parts add up to the difference.

    per_token_ratio counts the tokens that the decoding times cover; `definition` says which.
    """

    file: str
    slow: str
    fast: str
    slow_ms: float
    fast_ms: float
    parts: tuple[WaterfallPart, ...]
    tokens_ratio: float | None
    per_token_ratio: float | None
    definition: str = ""  # of a time per token, in words

    @property
    def nonsense(self) -> str:
        """Why the parts are implausible: one of them is more than the whole time; "" if none is."""
        whole = max(self.slow_ms, self.fast_ms)
        worst = max(self.parts, key=lambda part: abs(part.ms), default=None)
        if worst is None or abs(worst.ms) <= whole:
            return ""
        return (
            f"These counts and times give implausible parts: {worst.name!r} alone would be "
            f"{abs(worst.ms):,.0f} ms of a total of {whole:,.0f} ms."
        )


def waterfall(file: ResultFile, corrected: bool = True) -> Waterfall | None:
    """The parts of the difference of the mean totals, over all records of both models.

    Decoding is split at EventGPT's own speed: fewer tokens first, then time per token.  If one
    model does not time a stage separately, the stage is compared together with the stage that
    includes it, or is a part of one model only.  "unaccounted" is total minus stages.  None if
    totals, stages or token counts of either model are missing.
    """
    if not file.draft or file.status != "ok":
        return None
    fast, slow = (_means(file, model, corrected) for model in (file.draft, file.target))
    if fast is None or slow is None:
        return None
    tokens, per_token, parts = _parts(file, slow, fast)
    rest = (slow[0] - fast[0]) - math.fsum(part.ms for part in parts)
    if abs(rest) > ROUNDING_MS:
        parts.append(WaterfallPart(UNACCOUNTED, rest))
    identities = [file.identities[model] for model in (file.target, file.draft)]
    names = [shown(one, corrected) + disputed(one, corrected) for one in identities]
    return Waterfall(
        file=file.name,
        slow=names[0],
        fast=names[1],
        slow_ms=slow[0],
        fast_ms=fast[0],
        parts=tuple(parts),
        tokens_ratio=tokens,
        per_token_ratio=per_token,
        definition=lengths.definition(file),
    )


def _parts(
    file: ResultFile, slow: Means, fast: Means
) -> tuple[float, float | None, list[WaterfallPart]]:
    """The ratios of tokens and of times per token, and the parts that both models have."""
    theirs, mine = _alike(slow[1], fast[1])
    parts = [
        WaterfallPart(
            name if name in theirs and name in mine else f"{name}{ONE_SIDED}",
            theirs.get(name, 0.0) - mine.get(name, 0.0),
        )
        for name in dict.fromkeys([*theirs, *mine])
        if name != "decode" or name not in theirs or name not in mine
    ]
    decode_slow, decode_fast = theirs.get("decode"), mine.get("decode")
    counts = [lengths.covered(file, tokens) for tokens in (slow[2], fast[2])]
    if not decode_slow or not decode_fast or min(counts) <= 0:
        if decode_slow is not None and decode_fast is not None:
            parts.append(WaterfallPart("decode", decode_slow - decode_fast))
        return slow[2] / fast[2], None, parts
    each = decode_fast / counts[1]
    parts.append(WaterfallPart("fewer tokens", (slow[2] - fast[2]) * each))
    parts.append(WaterfallPart("time per token", decode_slow - counts[0] * each))
    return slow[2] / fast[2], decode_slow / counts[0] / each, parts


def _alike(
    slow: dict[str, float], fast: dict[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Both with the same parts: a stage that only one model separates is merged in both."""
    for part, holders in _HELD_BY.items():
        held = next((one for one in holders if one in slow and one in fast), "")
        if held and (part in slow) != (part in fast):
            slow, fast = _joined(slow, part, held), _joined(fast, part, held)
    return slow, fast


def _joined(parts: dict[str, float], part: str, held: str) -> dict[str, float]:
    """`part` merged into `held` under a name of both."""
    name = "prefill + vision" if held == "prefill" else f"{part} + {held}"
    merged = parts[held] + parts.get(part, 0.0)
    kept = ((name, merged) if key == held else (key, ms) for key, ms in parts.items())
    return {key: ms for key, ms in kept if key != part}


def _means(file: ResultFile, model: str, corrected: bool) -> Means | None:
    """(mean total ms, mean ms by part, mean tokens)."""
    records = file.of(model, corrected)
    tokens = [record.tokens for record in records if record.tokens is not None]
    parts: dict[str, float] = {}
    for key, part in file.group.stages.items():
        if values := [record.times[key] for record in records if key in record.times]:
            ms = milliseconds(key, file_summary.mean(values))
            parts["decode" if part == "steps" else part] = ms
    total = parts.pop("total", 0.0)
    if not total or not parts or not any(tokens):
        return None
    return total, parts, file_summary.mean(tokens)
