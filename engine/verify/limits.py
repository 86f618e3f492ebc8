"""What a verification does not prove, as sentences that every certificate lists.

Boundary: verdict rows in, sentences out; no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.storage.schemas import PASSED
from engine.verify.verdict import CHECKS

# Not checked, because all ways share it or because it lies outside this run.
ALWAYS = (
    "The wording and token ids of the prompt: all ways use the same prompt.",
    "Vision tower and language model: all ways run the same network (for EventGPT, StageScope's "
    "implementation); only projector, adaptor and pooling are recomputed, in float64.",
    "Decoding files into pictures and drawing events: only the choice of frames is computed a "
    "second time.",
    "Answers for other samples and questions, on other devices or with other libraries.",
    "Times and speeds in general: they hold for this machine at the time of each run.",
)


def unproved(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Everything that the verdicts of one model do not prove, its own gaps first."""
    gaps = []
    for check, (title, _) in CHECKS.items():
        own = [row for row in rows if row["check"] == check]
        bad = [row for row in own if row["outcome"] not in PASSED]
        if bad:
            gaps.append(f"{title}: {bad[0]['sentence']}")
        elif not own:
            gaps.append(f"{title}: not done.")
    return [*gaps, *ALWAYS]
