"""The questions of a visit on Compare, and a comparison kept as a run, through AppTest."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.analysis import model_summary, results_table
from engine.jobs import queue
from engine.jobs.run_job import RunJob
from engine.quoting import number
from engine.storage import plan_words, run_store
from engine.types import RunResult
from tests import fabricate
from tests.conftest import picture
from tests.pages.conftest import Open
from tests.pages.reading import html, press_run, results, texts
from ui.compare import history

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


def test_old_results_are_dropped_and_said(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 2)
    at = app(**SHORT, models="Tiny llava")
    for question in ("One?", "Two?", "Three?"):
        at = asked(at, question)
    assert len(opens(at)) == 2 and "One?" not in texts(at)
    old = at.session_state[history.HISTORY][1]
    queue.manager()._jobs.pop(old.ids[0])
    at.run()
    assert "no longer in memory: reopen it" in texts(at)
    at.button(key="history_open_1").click().run()
    assert at.text_area(key="compare_question").value == "Two?"
    assert "press Run to repeat them" in texts(at)


def test_a_saved_comparison_shows_the_figures_of_the_cards(app: Open) -> None:
    at = app(**SHORT, repeat="3", models=["Tiny llava", "Tiny eventgpt"])
    at = asked(at, "Is it dark?")
    assert not at.download_button(key="history_bundle").disabled
    at = saved(at)
    (info,) = run_store.listing(settings.load().runs_dir)
    assert info.state == "finished" and info.settings["kind"] == "comparison"
    assert f"results_runs={info.folder.name}" in links(at)
    assert not [one for one in at.button if one.key == "history_save"]  # once
    run = run_store.read(info.folder)
    assert run.header.plan.order_why == plan_words.COMPARISON
    found = [(job.result, job.request.model) for job in _jobs(at)]
    rows = [row for _, row in run.results()]
    assert [(row.total_ms, row.model) for row in rows] == [
        (result.total_ms, model) for result, model in found
    ]
    figures = model_summary.figures(results_table.frame([run]))
    at.switch_page("pages/results.py")
    at.query_params["results_runs"] = info.folder.name
    at.run()
    assert not at.exception and "comparison" in " ".join(one.value for one in at.markdown)
    assert at.segmented_control(key="results_view").value == "Samples"
    head, _, rest = run.journal[-1]["text"].partition("\n")
    assert head in [one.value.replace("\\", "") for one in at.subheader] and rest in texts(at)
    assert all(job.result and job.result.generation.text in texts(at) for job in _jobs(at)[:2])
    at.toggle(key="results_vote").set_value(True).run()  # counts votes of the Compare page too
    assert not at.exception and rest not in texts(at)  # its token counts tell the models
    at.toggle(key="results_vote").set_value(False).run()
    assert "The answers " in texts(at)
    at.segmented_control(key="results_view").set_value("Overview").run()
    assert at.subheader[0].value.replace("\\", "") == head  # one verdict in each view
    for name in ("tiny-llava", "tiny-eventgpt"):
        warm = sorted(one.total_ms for one, model in found if model == name and not one.cold)
        total = model_summary.find(figures, name, "total")
        assert total is not None and total.n == len(warm) and warm[0] <= total.median <= warm[-1]
        assert f"{number(total.median)} (" in html(at)
    at.segmented_control(key="results_view").set_value("Samples").run()
    for name in ("one", "two"):
        fabricate.run(settings.load().runs_dir / name, fabricate.pair(1))
    at.query_params["results_runs"] = ["one", "two"]
    at.run()
    assert not at.exception and at.segmented_control(key="results_view").value == "Overview"
    assert "Is the newer run worse?" in texts(at)


def _jobs(at: AppTest) -> list[RunJob]:
    found = (queue.manager().get(job_id) for job_id in at.session_state["compare_jobs"])
    jobs = [job for job in found if isinstance(job, RunJob)]
    assert all(isinstance(job.result, RunResult) for job in jobs)
    return jobs


def test_what_cannot_be_saved_is_said(app: Open) -> None:
    at = asked(app(**SHORT, models="Tiny llava"), "Is it dark?")
    runs = settings.load().runs_dir
    runs.parent.mkdir(parents=True, exist_ok=True)
    runs.write_text("a file in its place")
    at = saved(at)
    assert "cannot be made" in texts(at) and not at.get("page_link")
    runs.unlink()
    at = saved(at)  # control
    assert len(run_store.listing(runs)) == 1


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
