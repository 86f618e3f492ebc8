"""Messages repeat at most 80 characters of a value."""

from __future__ import annotations

import pytest

from engine.quoting import MAX_CHARS, cut, quoted, shown

DEEP: list[object] = []
for _ in range(500):
    DEEP = [DEEP]
LONG = ("a" * 10**6, 10**5000, -(10**300), ["x" * 1000] * 1000, {"k" * 999: ["v" * 999]}, DEEP)


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
def test_no_more_than_80_characters_of_a_value(value: object) -> None:
    assert 0 < len(quoted(value)) <= MAX_CHARS


def test_short_values_are_repeated_as_they_are() -> None:
    for value in ("a", 5, 1.5, None, True, [1, "x"], {"a": 1}, float("nan"), 10**30):
        assert quoted(value) == repr(value)
    assert quoted("\ud800\n") == r"'\ud800\n'"


def test_texts_and_paths_are_cut() -> None:
    assert cut("a" * 80) == "a" * 80 and len(cut("a" * 81)) == 80
    assert shown("/x" * 100 + "/name.json").endswith("/name.json")
    assert len(shown("a" * 5000)) == 80 and "\n" not in shown("a\nb")
