"""The section Agreement: contradictions first, ticks only where judged, all text escaped."""

import dataclasses
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from engine.analysis import agreement
from engine.analysis.compared import ComparedModel
from engine.demo.wordings import DEFAULT_QUESTION
from engine.types import Stop
from tests.pages.reading import markup, texts
from tests.ui.answers import SAMPLE, result
from ui.compare import agreement_view

pytestmark = pytest.mark.loads
TRUTH = {"curve": "left", "lead vehicle": "car"}
CAR = "The road curves to the left. There is a car ahead."
NONE = "The road curves to the left. There is no vehicle ahead."


def model(
    label: str,
    text: str,
    *,
    question: str = DEFAULT_QUESTION,
    truth: dict[str, str] | None = None,
    stop: Stop = "eos",
    trained: bool = True,
) -> ComparedModel:
    made = result(label)
    sample = dataclasses.replace(SAMPLE, truth=TRUTH if truth is None else truth)
    questions = None if trained else frozenset({"another"})
    run = dataclasses.replace(
        made,
        request=dataclasses.replace(made.request, sample=sample, prompt=question),
        model=dataclasses.replace(made.model, questions=questions),
        generation=dataclasses.replace(made.generation, text=text, stop=stop),
    )
    return ComparedModel(label, "llava", (run,))


def page(compared: object, sample: object) -> None:
    from typing import Any, cast

    from ui.compare import agreement_view

    agreement_view.section(cast(Any, compared), cast(Any, sample))


def shown(*compared: ComparedModel, known: bool = True) -> AppTest:
    """The tab; with the known answer, if it is asked for."""
    at = AppTest.from_function(page, args=(list(compared), compared[0].last.request.sample))
    at.session_state["compare_truth"] = known
    at.run()
    assert not at.exception
    return at


def test_nothing_tells_the_known_answer_before_it_is_asked_for() -> None:
    at = shown(model("One", CAR), model("Two", NONE), known=False)
    assert "lead vehicle: car / none" in texts(at)
    assert not {"✓", "✕"} & set(markup(at)) and "known content" not in markup(at)
    assert agreement_view.line([model("One", CAR, truth={"curve": "none"}), model("Two", CAR)]) == (
        "The answers agree: no contradiction in 2 attributes."
    )


def test_one_line_says_whether_the_answers_agree() -> None:
    line = agreement_view.line
    assert line([model("One", CAR), model("Two", NONE)]) == (
        "The answers contradict each other about the lead vehicle."
    )
    assert line([model("One", "Trees."), model("Two", "A sky.")]).endswith(": read them.")
    assert line([model("One", CAR)]) == ""
    untrained = [model("One", CAR), model("Two", NONE, trained=False)]
    assert line(untrained) == ""  # nothing is counted
    said = "Two was not trained on this: its answer means nothing."
    assert agreement_view.meaningless(untrained) == said
    assert agreement_view.meaningless(untrained[:1]) == ""  # control


def test_control_equal_answers_contradict_nobody() -> None:
    at = shown(model("One", CAR), model("Two", CAR))
    assert "contradiction" not in texts(at) and "✕" not in markup(at)


def test_without_known_content_nothing_is_marked() -> None:
    at = shown(model("One", CAR, truth={}), model("Two", NONE, truth={}))
    assert "lead vehicle: car / none" in texts(at) and agreement_view.UNKNOWN in texts(at)
    assert "✓" not in markup(at) and "known content" not in markup(at)


def test_a_question_that_is_not_listed_judges_nothing() -> None:
    question = "What colour is the sky?"
    at = shown(model("One", CAR, question=question), model("Two", NONE, question=question))
    assert "lead vehicle: car / none" in texts(at) and agreement_view.NOT_LISTED in texts(at)
    assert "✓" not in markup(at) and "✕" not in markup(at)


def test_cut_answers_and_untrained_models_are_named() -> None:
    at = shown(model("One", CAR, stop="length"), model("Two", NONE, stop="cancelled"))
    assert "One (cut at the limit)" in markup(at) and "Two (cancelled)" in markup(at)
    at = shown(model("One", CAR), model("Two", NONE, trained=False))
    assert "lead vehicle" not in texts(at) + markup(at)


def test_repeats_differ_only_if_two_complete_answers_do() -> None:
    cut = model("One", "The road", stop="cancelled").results
    whole, other = model("One", CAR), model("One", NONE)
    repeated = dataclasses.replace(whole, results=(*whole.results, *cut))
    assert agreement_view.REPEATS not in texts(shown(repeated, model("Two", CAR)))
    differing = dataclasses.replace(whole, results=(*whole.results, *other.results))
    assert agreement_view.REPEATS in texts(shown(differing, model("Two", CAR)))  # control


def test_word_differences_are_shown_on_demand_for_a_chosen_pair() -> None:
    at = shown(model("One", CAR), model("Two", NONE), model("Three", "Trees."))
    assert "words-between" not in markup(at)
    at.toggle(key=agreement_view.WORDS).set_value(True).run()
    assert "<del> a car</del><ins> no vehicle</ins>" in markup(at)
    at.selectbox(key="compare_words_b").set_value("Three").run()
    assert "<ins>Trees.</ins>" in markup(at) and "only in Three" in texts(at)


def test_texts_are_no_html() -> None:
    at = shown(model("<b>One</b>", CAR + " <img src=x>"), model("Two", NONE))
    at.toggle(key=agreement_view.WORDS).set_value(True).run()
    assert "<img" not in markup(at) and "<b>" not in markup(at)
    assert "<b>One</b>" in unescape(markup(at))


@pytest.mark.parametrize("answer", ["", "A car is ahead. There is no vehicle ahead."])
def test_no_statement_and_a_contradiction_in_itself_are_no_tick(answer: str) -> None:
    (row,) = [
        row
        for row in agreement.compare([answer, CAR], TRUTH, {"lead vehicle"})
        if row.attribute == "lead vehicle"
    ]
    found = agreement_view.statement(row.statements[0])
    assert found == "not said" if not answer else "the answer contradicts itself" in found


def test_an_answer_is_no_html() -> None:
    found = agreement_view.merged("<script>x</script>", "<img src=y>")
    assert "<script" not in found and "<img" not in found
    assert "Both answers are empty" in agreement_view.merged("", "")
