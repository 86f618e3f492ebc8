"""Checks whether the visual input changes the model's logits and answer.

Boundary: decodes the prompt with replaced features: another sample's, and zeros.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from engine.decoding import decode
from engine.storage.schemas import Outcome
from engine.types import Features, Prepared
from engine.verify.answer_paths import Subject
from engine.verify.verdict import CheckFinding


@torch.inference_mode()
def sight(subject: Subject, other: Prepared | None, rounding: float) -> CheckFinding:
    """Fails if the logits do not change; stays open if the answer never changes.

    Another sample's pixels are used if their shape fits, else the sample's own pixels, negated.
    """
    adapter, prepared = subject.adapter, subject.prepared
    features = adapter.encode(prepared)
    scores, own = _decode(subject, features)
    shown, pixels = "the same pictures as negatives", -prepared.pixels
    if other is not None and other.pixels.shape == prepared.pixels.shape:
        shown, pixels = "another sample", other.pixels
    replaced = {
        shown: adapter.encode(replace(prepared, pixels=pixels)),
        "zeros": features.changed(torch.zeros_like),
    }
    moved: dict[str, float] = {}
    ids: dict[str, tuple[int, ...]] = {}
    for shown, others in replaced.items():
        changed, ids[shown] = _decode(subject, others)
        moved[shown] = float((changed - scores).abs().max())
    still = [shown for shown in replaced if not moved[shown] > rounding]  # NaN too
    same = [shown for shown in replaced if ids[shown] == own]
    least = min(moved.values())
    outcome: Outcome = "passed"
    sentence = f"Other features change its logits by {least:.3g} or more"
    sentence += f" (the answer stays the same with {same[0]})." if same else "."
    if still:
        outcome = "failed"
        sentence = f"Its logits do not change with {' or '.join(still)} as input."
    elif len(same) == len(replaced):
        outcome = "unresolved"
        sentence = (
            f"Its logits change by {least:.3g} or more, but it gives the same answer with "
            f"{' and with '.join(same)}: its answer does not depend on its input."
        )
    changes = [
        {"shown": shown, "moved": moved[shown], "ids": ids[shown], "text": adapter.text(ids[shown])}
        for shown in replaced
    ]
    evidence = {"own": adapter.text(own), "changes": changes}
    unit = "change of logits, at least"
    return CheckFinding(outcome, sentence, least, rounding, unit, evidence)


def _decode(subject: Subject, features: Features) -> tuple[torch.Tensor, tuple[int, ...]]:
    """The first scores [1, vocabulary] and the new ids."""
    adapter, prepared, config = subject.adapter, subject.prepared, subject.greedy
    prompt = adapter.embed(prepared, features)
    scores, _ = decode.prefill(adapter.decoder, prompt)
    rules = adapter.rules_for(prepared, config)
    ids, _ = decode.generate(
        adapter.decoder, prompt, config, lambda _: None, lambda: False, rules=rules
    )
    return scores, tuple(ids)
