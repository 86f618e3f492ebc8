"""Compares two answers token by token: exact, a tie within rounding, or a mismatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from engine.storage.schemas import Outcome
from engine.verify.answer_paths import RecordedAnswer
from engine.verify.verdict import CheckFinding

Result = Literal["EXACT", "NUMERIC TIE", "DRIFT", "MISMATCH"]
OUTCOMES: dict[Result, Outcome] = {
    "EXACT": "passed",
    "NUMERIC TIE": "tie",
    "DRIFT": "failed",
    "MISMATCH": "failed",
}
Pieces = Callable[[Sequence[int]], list[str]]


@dataclass(frozen=True)
class AnswerComparison:
    """plain compared with another way; `position`: the first difference from 0, or None."""

    way: str
    result: Result
    length: int
    position: int | None
    logit_difference: float
    rounding: float

    @property
    def sentence(self) -> str:
        if self.result == "EXACT":
            return (
                f"EXACT: all {self.length} tokens are equal; logits differ by at most "
                f"{self.logit_difference:.3g}."
            )
        if self.result == "DRIFT":
            return (
                f"DRIFT: all {self.length} tokens are equal, but logits differ by "
                f"{self.logit_difference:.3g}; rounding explains only {self.rounding:.3g}, so "
                "the computation is not the same."
            )
        where = f"token {(self.position or 0) + 1} of {self.length} differs"
        figures = f"{self.logit_difference:.3g} apart, rounding explains {self.rounding:.3g}"
        if self.result == "NUMERIC TIE":
            return f"NUMERIC TIE: {where}, and both tokens are equally good (logits {figures})."
        return f"MISMATCH: {where} (logits {figures})."


def compare(plain: RecordedAnswer, other: RecordedAnswer, rounding: float) -> AnswerComparison:
    """Compares two answers; in a tie both margins and the logits' difference are within rounding.

    Equal tokens are not enough.  If logits differ by more than twice the rounding, the computation
    is a different one and could give other tokens on another sample.
    """
    at = first_difference(plain.ids, other.ids)
    reached = len(plain.ids) if at is None else at + 1
    apart = _apart(plain, other, slice(0, reached) if at is None else slice(at, at + 1))
    result: Result = "EXACT" if apart <= 2 * rounding else "DRIFT"
    if at is not None:
        result = "NUMERIC TIE" if _tied(plain, other, at, apart, rounding) else "MISMATCH"
    return AnswerComparison(other.way, result, len(plain.ids), at, apart, rounding)


def first_difference(one: Sequence[int], two: Sequence[int]) -> int | None:
    """The first position where two lists of ids differ, or None; may be the end of the shorter."""
    for index, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            return index
    return None if len(one) == len(two) else min(len(one), len(two))


def _apart(plain: RecordedAnswer, other: RecordedAnswer, rows: slice) -> float:
    """The largest difference of logits; infinite if one side has none."""
    one, two = plain.logits[rows], other.logits[rows]
    if one.shape != two.shape or not len(one):
        return float("inf")
    return float((one - two).abs().max())


def _tied(
    plain: RecordedAnswer, other: RecordedAnswer, at: int, apart: float, rounding: float
) -> bool:
    if at >= min(len(plain.ids), len(other.ids)) or apart > rounding:
        return False
    a, b = plain.ids[at], other.ids[at]
    if plain.scores is not None:  # the tokens were not chosen by the raw logits
        return 0 <= float(plain.scores[at, a] - plain.scores[at, b]) <= rounding
    margins = (plain.logits[at, a] - plain.logits[at, b], other.logits[at, b] - other.logits[at, a])
    return all(0 <= float(margin) <= rounding for margin in margins)


def finding(
    plain: RecordedAnswer, others: Sequence[RecordedAnswer], rounding: float, pieces: Pieces
) -> tuple[CheckFinding, AnswerComparison]:
    """The worst comparison of several ways with plain, as a finding with evidence."""
    found = [(compare(plain, other, rounding), other) for other in others]
    order = list(OUTCOMES)
    worst, other = max(found, key=lambda pair: order.index(pair[0].result))
    equal = worst.length if worst.position is None else worst.position
    shown = evidence(worst, plain, other, pieces)
    outcome = OUTCOMES[worst.result]
    return CheckFinding(outcome, worst.sentence, equal, worst.length, "equal tokens", shown), worst


def evidence(
    comparison: AnswerComparison, plain: RecordedAnswer, other: RecordedAnswer, pieces: Pieces
) -> dict[str, Any]:
    """Both answers as tokens, and both sides' two best logits at the first difference."""
    found: dict[str, Any] = {
        "way": comparison.way,
        "result": comparison.result,
        "position": comparison.position,
        "logit_difference": _finite(comparison.logit_difference),
        "rounding": comparison.rounding,
        "first_embeddings_difference": _embeddings(plain, other),
        "plain": {"ids": list(plain.ids), "pieces": pieces(plain.ids)},
        "other": {"ids": list(other.ids), "pieces": pieces(other.ids)},
    }
    if comparison.position is not None:
        found["plain"]["best"] = _best(plain, comparison.position, pieces)
        found["other"]["best"] = _best(other, comparison.position, pieces)
    return found


def _best(answer: RecordedAnswer, at: int, pieces: Pieces) -> list[dict[str, Any]]:
    if at >= len(answer.logits):
        return []
    values, ids = torch.topk(answer.logits[at], 2)
    return [
        {"id": int(i), "piece": pieces([int(i)])[0], "logit": float(v)}
        for v, i in zip(values, ids, strict=True)
    ]


def _embeddings(plain: RecordedAnswer, other: RecordedAnswer) -> float | None:
    """The largest difference of the language model's inputs; None if shapes differ."""
    if plain.embeds.shape != other.embeds.shape or not plain.embeds.numel():
        return None
    return float((plain.embeds.float() - other.embeds.float()).abs().max())


def _finite(value: float) -> float | None:
    return value if value != float("inf") else None


def not_the_best(answer: RecordedAnswer) -> list[int]:
    """Positions whose token does not have the highest logit of its step."""
    logits = answer.logits if answer.scores is None else answer.scores
    steps = min(len(answer.ids), len(logits))
    best = logits[:steps].max(dim=-1).values if steps else torch.empty(0)
    return [i for i in range(steps) if not logits[i, answer.ids[i]] >= best[i]]  # NaN too
