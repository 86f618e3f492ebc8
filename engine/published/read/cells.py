"""Reads single values of a file: numbers, texts, token ids, names of samples.

An unusable value becomes None and is noted as a Problem; it never becomes 0 or stops the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from engine.published.read.record_types import FailedSample, Problem

NOTED = 1_000  # problems kept per file
MOST, LEAST = 1e15, 1e-12  # outside this range a number is not a time, count or size
_ID_LIMIT = 2**31


class Cells:
    """Reads the fields of a file's objects and collects problems."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._noted: set[str] = set()

    def note(self, kind: str, path: str, message: str) -> None:
        """Notes a problem once per path: some values are read twice."""
        if len(self.problems) < NOTED and path not in self._noted:
            self._noted.add(path)
            self.problems.append(Problem(kind, path, message))

    def number(self, value: object, path: str, time: bool = False) -> float | None:
        """A float, or None.  Text, true, lists, NaN, Infinity and negative times are noted."""
        if value is None:
            return None
        if isinstance(value, (bool, list, dict)):
            self.note("type", path, f"{quoted(value)} is not a number")
            return None
        if isinstance(value, str):
            self.note("text", path, f"{quoted(value)} is text instead of a number")
            return None
        try:
            found = float(value)  # type: ignore[arg-type]
        except OverflowError:
            found = math.inf
        if not abs(found) < MOST:
            self.note("finite", path, f"{quoted(value)} is not a usable finite number")
            return None
        if time and found < 0:
            self.note("negative", path, f"a time of {found:g} is negative")
            return None
        return found if abs(found) > LEAST else 0.0

    def numbers(
        self, item: Mapping[str, Any], path: str, keys: Iterable[str]
    ) -> dict[str, float | None]:
        """The numbers of the keys that exist; None for unusable ones."""
        there = (key for key in keys if key in item)
        return {key: self.number(item[key], f"{path}.{key}", is_time(key)) for key in there}

    def text(self, item: Mapping[str, Any], path: str, *keys: str) -> str | None:
        """The first of these keys that holds a text."""
        for key in keys:
            value = item.get(key)
            if isinstance(value, str):
                return value
            if value is not None:
                self.note("type", f"{path}.{key}", f"{quoted(value)} is not text")
        return None

    def ids(self, item: Mapping[str, Any], path: str, *keys: str) -> tuple[int, ...] | None:
        """The first of these keys that holds a list of token ids."""
        for key in keys:
            value = item.get(key)
            if not isinstance(value, list):
                if isinstance(value, (bool, str, dict)):
                    self.note(
                        "type", f"{path}.{key}", f"{quoted(value)} is not a list of token ids"
                    )
                continue
            if not value or (_whole(value) and -_ID_LIMIT < min(value) <= max(value) < _ID_LIMIT):
                return tuple(map(int, value))
            self.note("type", f"{path}.{key}", "the list has an entry that is not a token id")
        return None

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
            keys = [key for key in item if key.endswith("error") and item[key]]
            words = [f"{key}: {brief(item[key])}" if key != "error" else brief(item[key])
                     for key in keys]  # fmt: skip
            name = sample_name({"sample": path} | item, index)  # else a result's place in its list
            found.append(FailedSample(name, path, "; ".join(words) or "no reason given"))
        return tuple(found)


def _whole(ids: list[Any]) -> bool:
    """Whether all are whole numbers; 512.0 is one, because some scripts write ids as floats."""
    kinds = set(map(type, ids))
    return kinds == {int} or (kinds <= {int, float} and all(one == one // 1 for one in ids))


def is_number(value: object) -> bool:
    """Whether the value is a number; true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def question_of(item: Mapping[str, Any]) -> str:
    """The question, "" if the row has none."""
    found = (item.get(key) for key in ("question", "query"))
    return next((text[:500] for text in found if isinstance(text, str)), "")


def flat(value: object, prefix: str = "", depth: int = 4, lists: bool = False) -> dict[str, object]:
    """Nested objects as one: {"a": {"b": 1}} is {"a.b": 1}.  Lists only where asked for."""
    if not isinstance(value, dict):
        return {}
    found: dict[str, object] = {}
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, dict) and depth:
            found |= flat(inner, f"{name}.", depth - 1, lists)
        elif not isinstance(inner, dict) and (lists or not isinstance(inner, list)):
            found[name] = inner
    return found


def settings(value: object) -> dict[str, object]:
    """A file's settings, flat.  Numbers that are too large become text."""
    return {key: quoted(inner) if isinstance(inner, (int, float)) and not abs(inner) < MOST
            else inner for key, inner in flat(value).items()}  # fmt: skip


def sample_name(item: Mapping[str, Any], index: int, *more: str) -> str:
    """The record's sample name, otherwise its index."""
    for key in (*more, "id", "sample_id", "sample_idx", "sample"):
        value = item.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)[:200]
    return str(index)


@lru_cache(maxsize=4096)
def is_time(key: str) -> bool:
    """Whether a key of these files holds a duration."""
    end = key.rsplit(".", 1)[-1]
    return end.endswith(("_time", "_ms")) or end == "time"


_WORDS = {"None": "null", "True": "true", "False": "false",
          "nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}  # fmt: skip


def quoted(value: object, most: int = 40) -> str:
    """A value in a sentence, as in JSON; of lists and objects only the kind."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    if not isinstance(value, str):
        text = _WORDS.get(text, text)
    return text if len(text) <= most else f"{text[:most]}..."


def brief(value: object, most: int = 200) -> str:
    """A long text in one short line."""
    words = quoted(value) if isinstance(value, (list, dict)) else str(value)
    text = " ".join(words.split())
    return text if len(text) <= most else f"{text[:most]}..."
