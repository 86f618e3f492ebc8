"""The section "What the answer rests on" on Compare, and what Results keeps of it."""

import time
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.attribution import explain, wording
from engine.attribution import explained as cells
from engine.attribution.explained import ExplainRequest, Explanation
from engine.errors import BadInput, Cancelled
from engine.jobs import queue
from engine.jobs.model_work import ExplainJob
from engine.storage import run_store
from tests.attribution import made
from tests.jobs.waiting import wait
from tests.pages.conftest import Open
from tests.pages.reading import html, press_run, results, texts
from ui.compare import explain_panel

pytestmark = pytest.mark.loads
WHY = explain_panel.TAB[1]
SHORT = {"tokens": "5", "cache": "Off", "models": "Tiny llava"}
GREY = (np.full((24, 32, 3), 128, np.uint8),)
EVIL = "A car. <b>bold</b> **not bold** [x](http://example.com) $x$ :red[no]\n# Head"


def fake(request: ExplainRequest, **more: Any) -> Explanation:
    words = request.words
    return made.explanation(request.run, request=request, words=words, pictures=GREY, **more)


def answer(monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """explain() without a model; the result belongs to what was asked."""
    monkeypatch.setattr(explain, "explain", lambda adapter, request, watcher: fake(request, **more))


@pytest.fixture(autouse=True)
def answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No earlier jobs either."""
    for job in jobs():
        del queue.manager()._jobs[job.id]
    answer(monkeypatch)


def asked(app: Open, **more: str) -> AppTest:
    return press_run(app(**SHORT, tab=WHY, **more))


def jobs() -> list[ExplainJob]:
    return [job for job in queue.manager().all() if isinstance(job, ExplainJob)]


def explained(at: AppTest) -> AppTest:
    """Presses Explain and waits until the page shows the end."""
    at.button(key="compare_explain_run").click().run()
    assert not at.exception
    assert jobs(), texts(at)
    wait(jobs()[-1])
    at.run()
    assert not at.exception
    return at


def own_words(at: AppTest, words: str) -> AppTest:
    at.selectbox(key=explain_panel.SENTENCE).set_value(explain_panel.OWN_WORDS).run()
    at.text_input(key=explain_panel.OWN).set_value(words).run()
    return at


def maps(at: AppTest) -> list[str]:
    """The alt texts of the maps."""
    found = [image for one in at.get("image") for image in one.proto.imgs]
    return [one.alt for one in found if one.alt.startswith("Heat map")]


def test_the_cost_is_said_before_the_start(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "measured_ms", {})  # what other tests have measured
    at = asked(app)
    assert not jobs()
    words = next(text for text in texts(at).splitlines() if "encodings" in text)
    assert "33 encodings, 5 prefills; time: not measured yet." in words
    at.selectbox(key=explain_panel.GRID).set_value(4).run()
    assert "17 encodings" in texts(at)
    at.number_input(key=explain_panel.SIDE).set_value(9).run()
    assert "side is 9: choose a value from 1 to 4." in texts(at)
    at.button(key="compare_explain_run").click().run()
    assert not jobs() and "side is 9" in texts(at)


def test_the_same_words_are_shown_again_and_others_computed(app: Open) -> None:
    at = explained(asked(app))
    (first,) = jobs()
    at = explained(own_words(at, "a boat"))
    assert len(jobs()) == 2 and at.query_params["compare_explained"] != first.id
    sentences = at.selectbox(key=explain_panel.SENTENCE)
    sentences.set_value(sentences.options[0]).run()
    explained(at)
    assert len(jobs()) == 2 and first.id in at.query_params["compare_explained"]


def test_a_map_without_a_place_says_so_first(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    test = made.UNLIKELY
    answer(monkeypatch, chance=test)
    at = explained(asked(app))
    notices = [one for one in texts(at).splitlines() if one == test.sentence]
    assert notices and "heat-pale" in html(at)
    assert maps(at)[0].endswith(test.sentence)
    shown = texts(at)
    assert "Largest losses:" in shown and "Places that the words rest on:" not in shown


def test_text_of_a_model_is_never_markup(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = asked(app)
    own_words(at, EVIL.replace("\n", " "))
    answer(monkeypatch, answer=EVIL, notes=(EVIL,))
    explained(at)
    assert EVIL.replace("\n", " ") in texts(at)
    assert "<b>bold" not in html(at)
    assert not any("not bold" in one.value for one in at.markdown)


def test_refusals_are_one_sentence(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = own_words(asked(app), "   ")
    at.button(key="compare_explain_run").click().run()
    assert not jobs() and any(
        text.startswith("The text to explain is empty") for text in texts(at).splitlines()
    )
    own_words(at, "a boat")
    answer(monkeypatch, said=False)
    assert wording.NOT_SAID in texts(explained(at))

    def refuses(*_: object) -> None:
        raise BadInput("tiny-llava: it cannot be run apart: choose another model to explain.")

    monkeypatch.setattr(explain, "explain", refuses)
    at = explained(own_words(at, "a ship"))
    assert "choose another model to explain" in texts(at) and not maps(at)


def test_a_cancelled_one_says_so(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(adapter: object, request: object, watcher: ExplainJob) -> None:
        while not watcher.cancelled():
            time.sleep(0.005)
        raise Cancelled("The explanation was cancelled.")

    monkeypatch.setattr(explain, "explain", waits)
    at = asked(app)
    at.button(key="compare_explain_run").click().run()
    at.button(key="compare_explain_cancel").click().run()
    assert "The explanation was cancelled." in texts(at) and not maps(at)
    assert not at.button(key="compare_explain_run").disabled


def test_a_link_reopens_it_and_another_answer_makes_it_old(app: Open) -> None:
    at = explained(asked(app))
    found = at.query_params["compare_explained"]
    assert found == [jobs()[0].id] or found == jobs()[0].id
    other = app(**SHORT, tab=WHY, explained=jobs()[0].id)
    assert maps(other) and "do not show now" in texts(other)
    at.text_area(key="compare_question").set_value("Is it dark?")
    at = press_run(at)
    assert "do not show now" in texts(at)
    lost = app(**SHORT, tab=WHY, explained="gone")
    assert explain_panel.GONE in texts(lost)


def test_it_is_saved_with_the_comparison_and_shown_in_results(app: Open) -> None:
    at = asked(app)
    (view,) = results(at)
    explained(at)
    (job,) = jobs()
    assert job.found is not None
    job.found = structs.replace(job.found, answer=view.text)
    at.button(key="history_save").click().run()
    (info,) = run_store.listing(settings.load().runs_dir)
    at.switch_page("pages/results.py")
    at.query_params["results_runs"] = info.folder.name
    at.query_params["results_view"] = "Samples"
    at.query_params["results_sample"] = view.request.sample.id
    at.run()
    assert not at.exception
    assert maps(at) and "+2.00 nats: the words rest on it" in html(at)
