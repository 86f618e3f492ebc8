"""Splits the difference of two models' mean totals into parts."""

import math
import statistics
from dataclasses import dataclass

from engine.palette import UNACCOUNTED
from engine.published.read import answer_pairs
from engine.published.read.record_types import NAMES, ResultFile, milliseconds

ROUNDING_MS = 0.05  # less is not shown
Parts = dict[str, float]  # ms by part of a run
# a part that one model does not time separately -> the parts that may include it
_HELD_BY = {"vision": ("prefill", "decode"), "prefill": ("decode",)}


@dataclass(frozen=True)
class Waterfall:
    """From the other model's mean total to EventGPT's; the parts add up to the difference.  parts:
    milliseconds per sample that EventGPT saves (negative: it takes longer).  per_token_ratio counts
    the tokens that the decoding times cover."""

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
        return (
            f"These counts and times give implausible parts: {sizes[worst]!r} alone would be "
            f"{worst:,.0f} ms of a total of {whole:,.0f} ms."
        )


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
    decode_slow, decode_fast = theirs.get("decode"), mine.get("decode")
    if decode_slow is not None and decode_fast is not None:
        whole = saved.pop("decode")
        if decode_slow and decode_fast and min(counts) > 0:
            each = decode_fast / counts[1]
            per_token = decode_slow / counts[0] / each
            saved["fewer tokens"] = (slow_tokens - fast_tokens) * each
            saved["time per token"] = decode_slow - counts[0] * each
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
