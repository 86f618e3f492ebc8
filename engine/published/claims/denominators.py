"""One number of matches under two denominators: the places a file counts, and those we compare.

Boundary: a finding's figures and an Acceptance in, one sentence out.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.published.audit import AuditFinding
from engine.published.read import answer_pairs
from engine.published.read.record_types import ResultFile


def both_denominators(file: ResultFile, findings: Sequence[AuditFinding]) -> str:
    """Why a share without the begin-of-text id is another in the finding than in the tables; ""
    where there is no such finding or the two count the same places."""
    found = answer_pairs.acceptance(file)
    told = next((one.figures for one in findings if one.rule == "bos_matched"), None)
    if found is None or not found.rate or not told or not told["stated_rate"]:
        return ""
    counted = round(told["stated_matched"] / told["stated_rate"] - told["samples_with_bos"])
    if counted == found.compared:
        return ""
    return (
        f"Without the begin-of-text id {told['matched']:,.0f} ids match: "
        f"{told['rate_without_bos']:.1%} of the {counted:,} places that the file counts, "
        f"{found.rate.value:.1%} of the {found.compared:,} where both answers have an id, which "
        "the position match is of."
    )
