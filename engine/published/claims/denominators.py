"""Explains why a file and the tables give different match rates: they divide by different counts.

Boundary: a finding's figures and an Acceptance in, one sentence out.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.published.audit import AuditFinding
from engine.published.read import answer_pairs
from engine.published.read.record_types import ResultFile


def both_denominators(file: ResultFile, findings: Sequence[AuditFinding]) -> str:
    """Why the match rate without the begin-of-text id differs between finding and tables; "" if
    it does not differ."""
    found = answer_pairs.acceptance(file)
    figures = next((one.figures for one in findings if one.rule == "bos_matched"), None)
    if found is None or not found.rate or not figures or not figures["stated_rate"]:
        return ""
    counted = round(
        figures["stated_matched"] / figures["stated_rate"] - figures["samples_with_bos"]
    )
    if counted == found.compared:
        return ""
    return (
        f"Without the begin-of-text id {figures['matched']:,.0f} ids match: "
        f"{figures['rate_without_bos']:.1%} of the {counted:,} positions that the file counts, "
        f"{found.rate.value:.1%} of the {found.compared:,} positions where both answers have an "
        "id. The position match uses the latter."
    )
