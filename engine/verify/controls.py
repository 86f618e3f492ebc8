"""Tests the comparison itself: it must find differences planted in a recorded answer.

Boundary: changes copies of a recorded answer; runs no model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.verify import checks, equality
from engine.verify.answer_paths import RecordedAnswer
from engine.verify.verdict import CheckFinding, judged


def planted(plain: RecordedAnswer) -> Iterator[tuple[str, RecordedAnswer]]:
    """Copies of an answer with one difference each, at its start, middle and end."""
    last, vocabulary = len(plain.ids) - 1, plain.logits.shape[-1]
    for place in sorted({0, last // 2, last}):
        ids = list(plain.ids)
        ids[place] = (ids[place] + 1) % vocabulary
        yield f"another token at {place + 1}", replace(plain, ids=tuple(ids))
        logits = plain.logits.clone()
        logits[place] += 0.05 * float(plain.logits.abs().max())
        yield f"other logits at {place + 1}", replace(plain, logits=logits)
    yield "no last token", replace(plain, ids=plain.ids[:-1])
    yield "the last token twice", replace(plain, ids=(*plain.ids, plain.ids[-1]))


def comparison(plain: RecordedAnswer, rounding: float) -> CheckFinding:
    """The comparison must find each planted difference, and none in an unchanged copy."""
    found = {
        what: equality.OUTCOMES[equality.compare(plain, copy, rounding).result] == "failed"
        for what, copy in planted(plain)
    }
    worse = replace(plain, ids=(*plain.ids[:-1], int(plain.logits[-1].argmin())))
    found["a last token that is not the best"] = checks.greedy([worse]).outcome == "failed"
    faults = [f"The comparison does not find {what}." for what, seen in found.items() if not seen]
    if equality.compare(plain, replace(plain, way="copy"), rounding).result != "EXACT":
        faults.append("The comparison finds a difference between equal answers.")
    good = f"All {len(found)} planted differences in {len(plain.ids):,} tokens were found."
    return judged(faults, good, "differences missed", {"planted": found})
