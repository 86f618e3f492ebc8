"""Window, split and perturbation on the Compare page, through AppTest."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from engine.media_options import Split, Window, perturbations
from tests.pages.conftest import Open
from tests.pages.test_compare import badges, press_run, results, texts

pytestmark = pytest.mark.slow
SHORT = {"tokens": "5", "models": "Tiny eventgpt"}
LINK = {"part": "10ms+40ms", "split": "Equal times", "split_parts": "3", "perturb": "drop:0.3"}


def run_button(at: AppTest) -> bool:
    """Whether Run can be pressed."""
    return not at.button(key="compare_run").disabled


def test_a_link_sets_window_split_and_perturbation_of_the_run(app: Open) -> None:
    at = press_run(app(**SHORT, **LINK, perturb_seed="7"))
    (view,) = results(at)
    request = view.request
    assert (request.window, request.split) == (Window(10_000, 40_000), Split("time", 3))
    assert (request.perturb, request.perturb_seed) == (perturbations("drop:0.3"), 7)
    assert "from 10ms on" in view.result.shown and "3 parts by equal times" in view.result.shown
    for words in ("window 10ms+40ms", "split into 3 parts by", "perturbed by drop:0.3 seed 7"):
        assert words in badges(at)


def test_without_them_the_run_is_the_usual_one(app: Open) -> None:  # control
    (view,) = results(press_run(app(**SHORT)))
    assert view.request.window is None and view.request.split == Split()
    assert view.result.shown.startswith("5 event images")


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("part", "soon", "The window is 'soon': write START+LENGTH"),
        ("perturb", "drop", "'drop' is not a perturbation: write CHANGE:STRENGTH"),
    ],
)
def test_a_text_that_cannot_be_read_is_a_sentence_and_no_run(
    app: Open, field: str, text: str, words: str
) -> None:
    at = app(**SHORT)
    assert run_button(at)
    at.text_input(key=f"compare_{field}").set_value(text).run()
    assert not at.exception and not run_button(at)
    assert sum(words in one for one in texts(at)) == 2  # below the field, and below Run
    at.text_input(key=f"compare_{field}").set_value("").run()
    assert run_button(at)


def test_a_changed_window_dims_the_answers_and_reopening_sets_it_back(app: Open) -> None:
    at = press_run(app(**SHORT, part="10ms+40ms"))
    at.text_input(key="compare_part").set_value("20ms+40ms").run()
    assert any("Changed since these runs: window." in one for one in texts(at))
    at.text_area(key="compare_question").set_value("Is it dark?")
    at = press_run(at)
    at.button(key="history_open_1").click().run()
    assert at.text_input(key="compare_part").value == "10ms+40ms"
    assert not any("Changed since these runs" in one for one in texts(at))
