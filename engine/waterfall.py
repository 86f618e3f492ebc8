"""What the difference of two models' mean totals is made of, part by part.

Boundary: figures from one ResultFile, recorded or corrected; no drawing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.records import summary
from engine.records.identity import disputed, shown
from engine.records.types import ResultFile, milliseconds

REST = 0.001  # of the slower total: less is rounding
Means = tuple[float, dict[str, float], float]  # total ms, ms by part, tokens


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

    @property
    def nonsense(self) -> str:
        """Why the parts cannot be read: one of them is more than all the time there was."""
        whole = max(self.slow_ms, self.fast_ms)
        worst = max(self.parts, key=lambda part: abs(part.ms), default=None)
        if worst is None or abs(worst.ms) <= whole:
            return ""
        return (
            f"These counts and times do not divide into parts that make sense: {worst.name!r} "
            f"alone would be {abs(worst.ms):,.0f} ms of a total of {whole:,.0f} ms."
        )


def waterfall(file: ResultFile, corrected: bool = True) -> Waterfall | None:
    """What the difference of the mean totals is made of, of all records of both models.

    Decoding is divided at EventGPT's own speed: fewer tokens first, then time per token.  None
    where a file lacks totals, stages or token counts of either model.
    """
    if not file.draft or file.status != "ok":
        return None
    fast, slow = (_means(file, model, corrected) for model in (file.draft, file.target))
    if fast is None or slow is None:
        return None
    tokens, per_token, parts = _parts(slow, fast)
    rest = (slow[0] - fast[0]) - math.fsum(part.ms for part in parts)
    if abs(rest) > REST * slow[0]:
        parts.append(Part("not in any stage", rest))
    return Waterfall(
        file=file.name,
        slow=_name(file, file.target, corrected),
        fast=_name(file, file.draft, corrected),
        slow_ms=slow[0],
        fast_ms=fast[0],
        parts=tuple(parts),
        tokens_ratio=tokens,
        per_token_ratio=per_token,
    )


def _name(file: ResultFile, model: str, corrected: bool) -> str:
    identity = file.identities[model]
    return shown(identity, corrected) + disputed(identity, corrected)


def _parts(slow: Means, fast: Means) -> tuple[float, float | None, list[Part]]:
    """The ratios of tokens and of times per token, and the parts that were timed."""
    parts = [
        Part(name, slow[1].get(name, 0.0) - fast[1].get(name, 0.0))
        for name in dict.fromkeys([*slow[1], *fast[1]])
        if name != "decode"
    ]
    decode_slow, decode_fast = slow[1].get("decode"), fast[1].get("decode")
    if not decode_slow or not decode_fast:
        return slow[2] / fast[2], None, parts
    each = decode_fast / fast[2]
    parts.append(Part("fewer tokens", (slow[2] - fast[2]) * each))
    parts.append(Part("time per token", decode_slow - slow[2] * each))
    return slow[2] / fast[2], decode_slow / slow[2] / each, parts


def _means(file: ResultFile, model: str, corrected: bool) -> Means | None:
    """(mean total ms, mean ms by part with prefill apart, mean tokens)."""
    records = file.of(model, corrected)
    tokens = summary.average([r.tokens for r in records if r.tokens is not None]).mean
    parts: dict[str, float] = {}
    for key, part in file.group.stages.items():
        mean = summary.average([r.times[key] for r in records if key in r.times]).mean
        if mean is not None:
            parts["decode" if part == "steps" else part] = milliseconds(key, mean)
    total = parts.pop("total", 0.0)
    return (total, parts, tokens) if total and parts and tokens else None
