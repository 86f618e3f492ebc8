"""Reads single values of a file, and checks the figures that its summary states against those of
the rows.  An unusable value becomes None and is noted as a Problem; it never becomes 0 or stops
the file."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from engine.published.read.record_types import Claim, FailedSample, Problem

NOTED = 1_000  # problems kept per file
MOST, LEAST = 1e15, 1e-12  # outside this range a number is not a time, count or size
SAMPLES = ("id", "sample_id", "sample_idx", "sample")  # names of a row's sample
T = TypeVar("T")


class Cells:
    def __init__(self) -> None:
        self.problems: dict[str, Problem] = {}  # by path: some values are read twice

    def note(self, kind: str, path: str, message: str) -> None:
        if len(self.problems) < NOTED:
            self.problems.setdefault(path, Problem(kind, path, message))

    def number(self, value: Any, path: str, of: str = "") -> float | None:
        """A float, or None.  Everything else is noted: text, true, lists, NaN, Infinity, and if it
        is of a "time" or a "count", negative numbers and counts that are not whole."""
        if value is None:
            return None
        if isinstance(value, str):
            kind, what = "text", "text instead of a number"
        elif not is_number(value):
            kind, what = "type", "not a number"
        elif not abs(value) < MOST:
            kind, what = "finite", "not a usable finite number"
        elif of and value < 0:
            kind, what = "negative", "negative"
        elif of == "count" and abs(value) > LEAST and value % 1:
            kind, what = "whole", "not a number of tokens"
        else:
            return float(value) if abs(value) > LEAST else 0.0
        self.note(kind, path, f"{quoted(value)} is {what}")
        return None

    def of_type(self, kind: type[T], what: str, value: object, path: str) -> T | None:
        """The value if it is of this type; what: the type in words."""
        if isinstance(value, kind):
            return value
        if value is not None:
            self.note("type", path, f"{quoted(value)} is not {what}")
        return None

    def flag(self, value: object, path: str) -> float | None:
        found = self.of_type(bool, "true or false", value, path)
        return None if found is None else float(found)

    def ids(self, value: object, path: str) -> tuple[int, ...] | None:
        """Token ids; 512.0 is one, because some scripts write ids as floats."""
        found = self.of_type(list, "a list of token ids", value, path)
        if found is None:
            return None
        whole = all(is_number(one) and abs(one) < 2**31 and one == one // 1 for one in found)
        if not whole:
            self.note("type", path, "the list has an entry that is not a token id")
        return tuple(map(int, found)) if whole else None

    def objects(self, value: object, path: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """(index, path, object) of each object in a list; notes everything else."""
        if not isinstance(value, list):
            self.note("type", path, f"{quoted(value)} is not a list")
            return
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield index, f"{path}[{index}]", item
            else:
                self.note("type", f"{path}[{index}]", f"{quoted(item)} is not an object")

    def failures(self, value: object) -> tuple[FailedSample, ...]:
        """The file's `errors`: {sample_idx, error} or {sample_idx, egpt_error, vl_error}."""
        found = []
        for index, path, item in self.objects(value, "errors") if value is not None else ():
            told = {key: brief(item[key]) for key in item if key.endswith("error") and item[key]}
            words = [text if key == "error" else f"{key}: {text}" for key, text in told.items()]
            name = sample_name({"sample": path} | item, index)  # else a result's place in its list
            found.append(FailedSample(name, path, "; ".join(words) or "no reason given"))
        return tuple(found)


def is_number(value: object) -> bool:
    """Whether the value is a number; true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def sample_name(item: Mapping[str, Any], index: int) -> str:
    for key in SAMPLES:
        value = item.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)[:200]
    return str(index)


@lru_cache(maxsize=4096)
def is_time(key: str) -> bool:
    end = key.rsplit(".", 1)[-1]
    return end.endswith(("_time", "_ms")) or end == "time"


def quoted(value: object, most: int = 40) -> str:
    """A value in a sentence, as in JSON; of lists and objects only the kind."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= most else f"{text[:most]}..."


def brief(value: object, most: int = 200) -> str:
    words = quoted(value) if isinstance(value, (list, dict)) else str(value)
    text = " ".join(words.split())
    return text if len(text) <= most else f"{text[:most]}..."


Field = tuple[str, str]  # the model, "" of the sample, and the name
Columns = Mapping[Field, Sequence[float]]
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


def close(stated: float, rows: float) -> bool:
    """Whether a stated figure equals that of the rows, within rounding."""
    return abs(stated - rows) <= max(CLOSE * abs(rows), 1e-6)


def claim(
    path: str, stated: float, fields: Sequence[Field], columns: Columns, rows: Mapping[str, int]
) -> Claim:
    """The figure at this path of a summary beside that of the rows.  fields: those that it may be
    of; rows: how many there are of each model."""
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
            return checked(path, stated, (name, statistic), values, rows.get(model, 0))
    return Claim(path, stated)


def checked(
    path: str, stated: float, what: tuple[str, str], found: Sequence[float], rows: int
) -> Claim:
    """A claim about (field, statistic): the values found, at least one, of `rows` rows.  Not
    checked if missing values of a plausible size would give the stated figure."""
    (name, statistic), total = what, math.fsum(found)
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
