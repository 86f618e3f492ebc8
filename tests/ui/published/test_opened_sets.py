"""Published files of a visit: in memory, by harmless names, once each, never too many."""

import pytest
import streamlit as st

from engine.errors import BadInput
from ui.published import opened_sets


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    found: dict[str, object] = {}
    monkeypatch.setattr(st, "session_state", found)
    st.cache_resource.clear()
    return found


def test_too_much_is_one_sentence_and_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opened_sets.drop([("a.json", b"{}")])
    monkeypatch.setattr(opened_sets, "MAX_FILES", 2)
    with pytest.raises(BadInput, match="3 files are more than 2"):
        opened_sets.drop([("b.json", b"1"), ("c.json", b"2")])
    monkeypatch.setattr(opened_sets, "TOTAL_MB", 0)
    with pytest.raises(BadInput, match="MB per visit"):
        opened_sets.drop([("b.json", b"1")])
    assert len(opened_sets.dropped()) == 1
