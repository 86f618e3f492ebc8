"""Checks the figures of a file's summary against its rows.

If rows lack values, the summary may or may not include them.  So a stated figure contradicts its
rows only if no plausible missing values explain it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from engine.published.read.record_types import AnswerRecord, Claim, SampleFigure

Columns = Mapping[tuple[str, str], Sequence[float]]  # by model ("": of the sample) and field
# a field of the rows -> its names in summaries
ALIASES = {
    "tokens": ("num_output_tokens", "n_tokens"),
    "time": ("total_time",),
    "output_tokens": ("num_output_tokens", "tokens"),
    "gpu_peak_memory": ("gpu_memory_mb.peak",),
    "total_tokens_compared": ("acceptance.total_tokens",),
    "compared_tokens": ("total_compared",),
    "acceptance_rate": ("acceptance.acceptance_rate", "acceptance_estimate"),
}
# rates over all rows: the names of the accepted and of the compared tokens in rows
RATES = ("overall_token_acceptance_rate", "overall_acceptance_rate")
ACCEPTED = ("accepted_tokens", "matched_tokens")
COMPARED = ("total_compared", "compared_tokens", "total_tokens")
SIZES = {"n_samples", "samples", "total_samples", "matched_samples"}
_MEAN = re.compile(r"(.+)_(?:avg|mean)|avg_(.+)")
_SUM = re.compile(r"(total_tokens_compared)|(.+)_total|total_(.+_tokens)")
CLOSE = 0.005
UNLIKE = 100.0  # times the mean of the others; a warm-up is 20 times a stage


def statistic_of(key: str) -> tuple[str, str]:
    """(field, "mean" or "sum") of a summary's key; ("", "") for one that is neither."""
    if key == "output_match_rate":
        return "output_matches", "mean"
    for statistic, pattern in (("mean", _MEAN), ("sum", _SUM)):
        if found := pattern.fullmatch(key):
            return next(filter(None, found.groups())), statistic
    return "", ""


def columns(records: Iterable[AnswerRecord], figures: Iterable[SampleFigure]) -> Columns:
    """The values of each field of the rows."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in records:
        counted = {} if record.tokens is None else {"tokens": record.tokens}
        for key, value in {**record.times, **record.sizes, **counted}.items():
            found.setdefault((record.model, key), []).append(value)
    for figure in figures:
        found.setdefault(("", figure.name), []).append(figure.value)
    return found


def close(stated: float, rows: float) -> bool:
    """Whether a stated figure equals that of the rows, within rounding."""
    return abs(stated - rows) <= max(CLOSE * abs(rows), 1e-6)


def claim(
    path: str,
    stated: float,
    fields: Sequence[tuple[str, str]],
    columns: Columns,
    rows: Mapping[str, int],
) -> Claim:
    """The figure at this path of a summary beside that of the rows.

    fields: (model, name) of the fields that it may be of; rows: how many there are of each model.
    """
    *_, nested, key = ("", *path.split("."))
    model = fields[0][0]
    if key in SIZES:
        number = rows.get(model, 0)
        return Claim(path, stated, float(number) if number else None, "the number of rows")
    if key in RATES:  # which needs as many accepted as compared values
        accepted, compared = (
            next((columns["", name] for name in names if ("", name) in columns), ())
            for names in (ACCEPTED, COMPARED)
        )
        whole = math.fsum(compared)
        if whole <= 0 or len(accepted) != len(compared):
            return Claim(path, stated)
        of = f"the rate of the rows, {math.fsum(accepted):,.0f} of {whole:,.0f},"
        return Claim(path, stated, math.fsum(accepted) / whole, of)
    statistic = statistic_of(key)[1]
    for model, name in fields if statistic else ():
        names = [name, f"{name}_time", f"sd_{name}", *ALIASES.get(name, ())]
        if not model:
            names = [f"{nested}.{name}", *names, f"acceptance.{name}"]
        if values := next((found for one in names if (found := columns.get((model, one)))), None):
            number = max(rows.get(model, 0), len(values))
            return checked(path, stated, (name, statistic), values, number)
    return Claim(path, stated)


def checked(
    path: str, stated: float, what: tuple[str, str], found: Sequence[float], rows: int
) -> Claim:
    """A claim about (field, statistic): the values found, at least one, of `rows` rows.

    Not checked if missing values of a plausible size would give the stated figure.
    """
    name, statistic = what
    total = math.fsum(found)
    value = total / len(found) if statistic == "mean" else total
    missing = max(0, rows - len(found))
    if missing and not close(stated, value):
        whole = stated * rows if statistic == "mean" else stated
        slack = CLOSE * abs(whole) / missing
        if -slack <= (whole - total) / missing <= UNLIKE * abs(total) / len(found) + slack:
            which = f"{missing:,} of {rows:,} values of {name}"
            return Claim(path, stated, None, f"not checked: {which} are missing")
    which = "1 row" if len(found) == 1 else f"{len(found):,} rows"
    return Claim(path, stated, value, f"the {statistic} of {name} over {which}")
