"""What a verification does not prove, in sentences that every certificate lists.

Boundary: verdict rows in, sentences out; no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.storage.schemas import PASSED
from engine.verify.verdict import CHECKS

# What no check looks at, because all ways share it or because it is outside this machine's run.
ALWAYS = (
    "The prompt's wording and its token ids: all ways use the same prompt.",
    "Vision tower and language model: all ways run the same network (for EventGPT, StageScope's "
    "own); only projector, adaptor and pooling are computed a second time, in float64.",
    "Decoding of files to pictures, and the drawing of events: only the choice of frames is "
    "computed a second time.",
    "Answers on other samples and questions, on other devices or with other libraries.",
    "The numbers themselves as speeds: they hold for this machine at the time of each run.",
)


def unproved(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Everything that these verdicts of one model leave open, the model's own gaps first."""
    return [*_gaps(rows), *ALWAYS]


def _gaps(rows: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """Checks that did not pass or were not done, each with what it said first."""
    for check, (title, _) in CHECKS.items():
        own = [row for row in rows if row["check"] == check]
        bad = [row for row in own if row["outcome"] not in PASSED]
        if bad:
            yield f"{title}: {bad[0]['sentence']}"
        elif not own:
            yield f"{title}: not done."
