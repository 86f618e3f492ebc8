"""Files of a visit: in memory, by harmless names, once each, never too many."""

from __future__ import annotations

import pytest
import streamlit as st

from engine.errors import BadInput
from tests.records import synthetic as made
from ui.imported import opened, visit
from ui.imported.sources import VisitSource


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    found: dict[str, object] = {}
    monkeypatch.setattr(st, "session_state", found)
    st.cache_resource.clear()
    return found


def test_a_file_counts_once_and_its_name_is_only_shown() -> None:
    visit.add([("../../x.json", b"{}"), ("a\x1b.json", b"[]")])
    visit.add([("../../x.json", b"{}")])
    assert [one.name for one in visit.files()] == ["x.json", "a\ufffd.json"]
    visit.clear()
    assert visit.files() == ()


def test_too_much_is_one_sentence_and_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    visit.add([("a.json", b"{}")])
    monkeypatch.setattr(visit, "MAX_FILES", 2)
    with pytest.raises(BadInput, match="3 files are more than 2"):
        visit.add([("b.json", b"1"), ("c.json", b"2")])
    monkeypatch.setattr(visit, "TOTAL_MB", 0)
    with pytest.raises(BadInput, match="MB in a visit"):
        visit.add([("b.json", b"1")])
    assert len(visit.files()) == 1


def test_files_are_read_and_audited_once() -> None:
    visit.add([("a.json", made.to_bytes(made.legacy())), ("bad.json", b"no")])
    first = opened.open_([VisitSource(visit.files())])
    again = opened.open_([VisitSource(visit.files())])
    assert again.items[0] is first.items[0] and first.items[0].findings
    assert [item.file.status for item in first.items] == ["ok", "unknown"]
    assert len(first.usable) == 1
    visit.add([("b.json", made.to_bytes(made.failed()))])
    assert opened.open_([VisitSource(visit.files())]).items[0] is not first.items[0]


def test_equal_names_are_told_apart() -> None:
    visit.add([("x.json", made.to_bytes(made.flat())), ("d/../x.json", b"{}"), ("x.json", b"[]")])
    names = [item.name for item in opened.open_([VisitSource(visit.files())]).items]
    assert len(set(names)) == 3 and all("x.json" in name for name in names)


def test_a_shelf_forgets_the_oldest() -> None:
    shelf, made_ = opened.Shelf(), []
    for key in [*range(opened.KEPT + 1), 0]:
        shelf.get(key, lambda key=key: made_.append(key))  # type: ignore[misc]
    assert made_ == [*range(opened.KEPT + 1), 0]
    shelf.get(opened.KEPT, lambda: made_.append("again"))
    assert "again" not in made_
