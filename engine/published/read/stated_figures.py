"""Checks the figures of a file's summary against its rows.

If rows lack values, the summary may or may not include them.  So a stated figure contradicts its
rows only if no plausible missing values explain it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.published.read.record_types import Claim

# a field of the rows -> its names in summaries
ALIASES = {
    "tokens": ("tokens", "num_output_tokens", "n_tokens"),
    "time": ("time", "total_time"),
    "output_tokens": ("num_output_tokens", "tokens"),
    "gpu_peak_memory": ("gpu_memory_mb.peak",),
    "total_tokens_compared": ("acceptance.total_tokens",),
    "accepted_tokens": ("accepted_tokens",),
    "compared_tokens": ("total_compared", "compared_tokens"),
    "acceptance_rate": ("acceptance.acceptance_rate", "acceptance_rate", "acceptance_estimate"),
}
# rates over all rows: the names of (accepted, compared) sums in summary and rows
RATES = {
    "overall_token_acceptance_rate": (
        ("accepted_tokens", "matched_tokens"), ("total_compared", "compared_tokens", "total_tokens")
    ),
    "overall_acceptance_rate": (("matched_tokens", "accepted_tokens"),
                                ("compared_tokens", "total_compared")),
}  # fmt: skip
CLOSE = 0.005
UNLIKE = 100.0  # times the mean of the others; a warm-up is 20 times a stage


def statistic_of(key: str) -> tuple[str, str]:
    """(field, "mean" or "sum") of a summary's key; ("", "") for one that is neither."""
    for end in ("_avg", "_mean"):
        if key.endswith(end):
            return key[: -len(end)], "mean"
    if key.startswith("avg_"):
        return key[4:], "mean"
    if key == "output_match_rate":
        return "output_matches", "mean"
    if key.endswith("_total"):
        return key[: -len("_total")], "sum"
    if key == "total_tokens_compared":
        return key, "sum"
    if key.startswith("total_") and key.endswith("_tokens"):
        return key[len("total_") :], "sum"
    return "", ""


def close(stated: float, rows: float) -> bool:
    """Whether a stated figure equals that of the rows, within rounding."""
    return abs(stated - rows) <= max(CLOSE * abs(rows), 1e-6)


def count(path: str, stated: float, rows: int) -> Claim:
    return Claim(path, stated, float(rows) if rows else None, "the number of rows")


def rate(path: str, stated: float, accepted: Sequence[float], compared: Sequence[float]) -> Claim:
    """A stated rate and the rate of the rows, which need as many accepted as compared values."""
    whole = math.fsum(compared)
    if whole <= 0 or len(accepted) != len(compared):
        return Claim(path, stated)
    counts = f"{math.fsum(accepted):,.0f} of {whole:,.0f}"
    return Claim(path, stated, math.fsum(accepted) / whole, f"the rate of the rows, {counts},")


def checked(
    path: str, stated: float, what: tuple[str, str], found: Sequence[float], rows: int
) -> Claim:
    """A claim about (field, statistic): the values found, at least one, of `rows` rows.

    Not checked if missing values may explain the difference.
    """
    name, statistic = what
    total = math.fsum(found)
    value = total / len(found) if statistic == "mean" else total
    missing = max(0, rows - len(found))
    if missing and not close(stated, value) and _explained(stated, statistic, found, missing):
        which = f"{missing:,} of {rows:,} values of {name}"
        return Claim(path, stated, None, f"not checked: {which} are missing")
    which = "1 row" if len(found) == 1 else f"{len(found):,} rows"
    return Claim(path, stated, value, f"the {statistic} of {name} over {which}")


def _explained(stated: float, statistic: str, found: Sequence[float], missing: int) -> bool:
    """Whether missing values of a plausible size would give the stated figure."""
    total, rows = math.fsum(found), len(found) + missing
    whole = stated * rows if statistic == "mean" else stated
    each = (whole - total) / missing
    slack = CLOSE * abs(whole) / missing
    return -slack <= each <= UNLIKE * abs(total) / len(found) + slack
