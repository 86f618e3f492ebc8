"""The questions of a visit on Compare, and a comparison kept as a run, through AppTest."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.storage import run_store
from tests.conftest import picture
from tests.pages.conftest import Open
from tests.pages.reading import press_run, results, texts

pytestmark = pytest.mark.loads
SHORT = {"tokens": "5", "cache": "Off"}


def asked(at: AppTest, question: str) -> AppTest:
    at.text_area(key="compare_question").set_value(question)
    return press_run(at)


def opens(at: AppTest) -> list[str]:
    return [one.label for one in at.button if (one.key or "").startswith("history_open_")]


def saved(at: AppTest) -> AppTest:
    at.button(key="history_save").click().run()
    assert not at.exception
    return at


def links(at: AppTest) -> list[str]:
    return [one.proto.query_string for one in at.get("page_link")]


def test_an_earlier_question_is_reopened_with_its_answers_and_inputs(app: Open) -> None:
    at = asked(app(**SHORT, models="Tiny llava"), "Is it dark?")
    first = list(at.session_state["compare_jobs"])
    at.number_input(key="compare_tokens").set_value(7)
    at = asked(at, "Is there a car?")
    assert opens(at) == ["Shown", "Reopen"] and "Is it dark?" in texts(at)
    assert texts(at).count(" · Tiny llava ") == 2 and texts(at).count(" ms, 1 run each") == 2
    at.button(key="history_open_1").click().run()
    assert not at.exception and list(at.session_state["compare_jobs"]) == first
    assert at.query_params["compare_jobs"] == first[0]
    assert at.text_area(key="compare_question").value == "Is it dark?"
    assert at.number_input(key="compare_tokens").value == 5
    assert [view.new_tokens for view in results(at)] == [5]
    assert opens(at) == ["Reopen", "Shown"]


def test_a_comparison_of_own_files_is_saved_for_this_visit_only(app: Open, tmp_path: Path) -> None:
    at = app(source="Own files", **SHORT, models="Tiny llava")
    file = picture(tmp_path / "mine.png", 1)
    at.file_uploader(key="compare_files").set_value([(file.name, file.read_bytes(), "image/png")])
    at.run()
    at = saved(asked(at, "Is it dark?"))
    assert run_store.listing(settings.load().runs_dir) == ()
    (link,) = (one for one in links(at) if "results_runs" in one)
    name = link.partition("results_runs=")[2]
    at.switch_page("pages/results.py")
    at.query_params["results_runs"] = name
    at.run()
    (words,) = at.multiselect(key="results_pick").options
    assert words.endswith("for this visit only") and not at.exception
    assert "was not found" not in texts(at)
    other = app("pages/results.py", runs=name)
    assert "was not found" in texts(other)
