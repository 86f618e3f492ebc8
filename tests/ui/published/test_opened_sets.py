"""Published files of a visit: in memory, by harmless names, once each, never too many."""

from __future__ import annotations

import pytest
import streamlit as st

from engine.errors import BadInput
from engine.published.audit import audit
from tests.published.read import synthetic as made
from ui.published import opened_sets


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    found: dict[str, object] = {}
    monkeypatch.setattr(st, "session_state", found)
    st.cache_resource.clear()
    return found


def test_a_file_counts_once_and_its_name_is_only_shown() -> None:
    opened_sets.drop([("../../x.json", b"{}"), ("a\x1b.json", b"[]")])
    opened_sets.drop([("../../x.json", b"{}")])
    assert [one.name for one in opened_sets.dropped()] == ["x.json", "a\ufffd.json"]
    opened_sets.forget()
    assert opened_sets.dropped() == ()


def test_too_much_is_one_sentence_and_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opened_sets.drop([("a.json", b"{}")])
    monkeypatch.setattr(opened_sets, "MAX_FILES", 2)
    with pytest.raises(BadInput, match="3 files are more than 2"):
        opened_sets.drop([("b.json", b"1"), ("c.json", b"2")])
    monkeypatch.setattr(opened_sets, "TOTAL_MB", 0)
    with pytest.raises(BadInput, match="MB per visit"):
        opened_sets.drop([("b.json", b"1")])
    assert len(opened_sets.dropped()) == 1


def test_files_are_read_and_audited_once() -> None:
    opened_sets.drop([("a.json", made.to_bytes(made.legacy())), ("bad.json", b"no")])
    first = opened_sets.open_([], True)
    again = opened_sets.open_([], True)
    assert again.files[0] is first.files[0] and audit(first.files[0])
    assert [file.status for file in first.files] == ["ok", "unknown"]
    assert len(first.usable) == 1
    opened_sets.drop([("b.json", made.to_bytes(made.failed()))])
    assert opened_sets.open_([], True).files is not first.files


def test_equal_names_are_told_apart() -> None:
    opened_sets.drop(
        [("x.json", made.to_bytes(made.flat())), ("d/../x.json", b"{}"), ("x.json", b"[]")]
    )
    names = [file.name for file in opened_sets.open_([], True).files]
    assert len(set(names)) == 3 and all("x.json" in name for name in names)
