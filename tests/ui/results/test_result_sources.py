"""Published files of a visit: in memory, by harmless names, once each, never too many."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st

from engine.errors import BadInput
from tests.published.read import synthetic as made
from ui.published import opened_sets
from ui.results import result_sources
from ui.results.result_sources import Source, stamp_of


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    found: dict[str, object] = {}
    monkeypatch.setattr(st, "session_state", found)
    st.cache_resource.clear()
    return found


def visit() -> tuple[Source, ...]:
    return tuple(one for one in result_sources.listing() if one.kind == "visit")


def test_a_file_counts_once_and_its_name_is_only_shown() -> None:
    result_sources.drop([("../../x.json", b"{}"), ("a\x1b.json", b"[]")])
    result_sources.drop([("../../x.json", b"{}")])
    assert [one.name for one in result_sources.dropped()] == ["x.json", "a\ufffd.json"]
    result_sources.forget()
    assert result_sources.dropped() == ()


def test_too_much_is_one_sentence_and_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    result_sources.drop([("a.json", b"{}")])
    monkeypatch.setattr(result_sources, "MAX_FILES", 2)
    with pytest.raises(BadInput, match="3 files are more than 2"):
        result_sources.drop([("b.json", b"1"), ("c.json", b"2")])
    monkeypatch.setattr(result_sources, "TOTAL_MB", 0)
    with pytest.raises(BadInput, match="MB per visit"):
        result_sources.drop([("b.json", b"1")])
    assert len(result_sources.dropped()) == 1


def test_files_are_read_and_audited_once() -> None:
    result_sources.drop([("a.json", made.to_bytes(made.legacy())), ("bad.json", b"no")])
    first = opened_sets.open_(visit())
    again = opened_sets.open_(visit())
    assert again.items[0] is first.items[0] and first.items[0].findings
    assert [item.file.status for item in first.items] == ["ok", "unknown"]
    assert len(first.usable) == 1
    result_sources.drop([("b.json", made.to_bytes(made.failed()))])
    assert opened_sets.open_(visit()).items[0] is not first.items[0]


def test_equal_names_are_told_apart() -> None:
    result_sources.drop(
        [("x.json", made.to_bytes(made.flat())), ("d/../x.json", b"{}"), ("x.json", b"[]")]
    )
    names = [item.file.name for item in opened_sets.open_(visit()).items]
    assert len(set(names)) == 3 and all("x.json" in name for name in names)


def test_a_stamp_changes_with_the_file_and_lacks_what_is_absent(tmp_path: Path) -> None:
    assert stamp_of(tmp_path) == ()
    (tmp_path / "results.jsonl").write_text("1")
    before = stamp_of(tmp_path)
    (tmp_path / "results.jsonl").write_text("12")
    assert len(before) == 1 and stamp_of(tmp_path) != before
