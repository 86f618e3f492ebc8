"""Files of a visit: in memory, by harmless names, once each, never too many."""

from __future__ import annotations

import pytest
import streamlit as st

from engine.errors import BadInput
from tests.published.read import synthetic as made
from ui.published import opened_sets
from ui.results import dropped_files
from ui.results.set_sources import VisitSource


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    found: dict[str, object] = {}
    monkeypatch.setattr(st, "session_state", found)
    st.cache_resource.clear()
    return found


def test_a_file_counts_once_and_its_name_is_only_shown() -> None:
    dropped_files.add([("../../x.json", b"{}"), ("a\x1b.json", b"[]")])
    dropped_files.add([("../../x.json", b"{}")])
    assert [one.name for one in dropped_files.files()] == ["x.json", "a\ufffd.json"]
    dropped_files.clear()
    assert dropped_files.files() == ()


def test_too_much_is_one_sentence_and_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped_files.add([("a.json", b"{}")])
    monkeypatch.setattr(dropped_files, "MAX_FILES", 2)
    with pytest.raises(BadInput, match="3 files are more than 2"):
        dropped_files.add([("b.json", b"1"), ("c.json", b"2")])
    monkeypatch.setattr(dropped_files, "TOTAL_MB", 0)
    with pytest.raises(BadInput, match="MB per visit"):
        dropped_files.add([("b.json", b"1")])
    assert len(dropped_files.files()) == 1


def test_files_are_read_and_audited_once() -> None:
    dropped_files.add([("a.json", made.to_bytes(made.legacy())), ("bad.json", b"no")])
    first = opened_sets.open_([VisitSource(dropped_files.files())])
    again = opened_sets.open_([VisitSource(dropped_files.files())])
    assert again.items[0] is first.items[0] and first.items[0].findings
    assert [item.file.status for item in first.items] == ["ok", "unknown"]
    assert len(first.usable) == 1
    dropped_files.add([("b.json", made.to_bytes(made.failed()))])
    assert opened_sets.open_([VisitSource(dropped_files.files())]).items[0] is not first.items[0]


def test_equal_names_are_told_apart() -> None:
    dropped_files.add(
        [("x.json", made.to_bytes(made.flat())), ("d/../x.json", b"{}"), ("x.json", b"[]")]
    )
    names = [item.name for item in opened_sets.open_([VisitSource(dropped_files.files())]).items]
    assert len(set(names)) == 3 and all("x.json" in name for name in names)


def test_a_shelf_forgets_the_oldest() -> None:
    shelf, made_ = opened_sets.Shelf(), []
    for key in [*range(opened_sets.KEPT + 1), 0]:
        shelf.get(key, lambda key=key: made_.append(key))  # type: ignore[misc]
    assert made_ == [*range(opened_sets.KEPT + 1), 0]
    shelf.get(opened_sets.KEPT, lambda: made_.append("again"))
    assert "again" not in made_
