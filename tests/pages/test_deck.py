"""The deck on Results through AppTest: order, votes, blind mode, counts."""

from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.storage import annotations
from engine.storage.annotations import Vote, VotedAnswer
from engine.storage.run_store import Run
from tests import fabricate
from tests.pages.conftest import Open

pytestmark = pytest.mark.loads
PAGE = "pages/results.py"
Deck = Callable[..., AppTest]
ANSWERS = {
    "alike": ("A car is ahead.", "A car is ahead."),
    "apart": ("Fog.", "Rain and wind."),
    "clash": ("There is a car ahead.", "There is no vehicle ahead."),
}


def rows() -> Iterator[dict[str, Any]]:
    for sample, texts in ANSWERS.items():
        for model, text in zip(("ev", "vl"), texts, strict=True):
            yield fabricate.row(
                model, sample, text=text, reference="A car.", truth={"curve": "left"}
            )


@pytest.fixture
def made(app: Open) -> Run:
    return fabricate.run(settings.load().runs_dir / "one", rows())


@pytest.fixture
def deck(app: Open, made: Run) -> Deck:
    return lambda **more: app(PAGE, runs="one", view="Samples", vote="true", **more)


def press(at: AppTest, name: str) -> AppTest:
    at.button(key=f"results_deck_{name}").click().run()
    assert not at.exception
    return at


def heading(at: AppTest) -> str:
    return str(at.subheader[0].value)


def words(at: AppTest) -> str:
    """All text of the page's main part."""
    kinds = (at.main.text, at.main.markdown, at.main.caption, at.main.subheader, at.main.button)
    values = [getattr(one, "value", "") for kind in kinds for one in kind]
    values += [button.label for button in at.main.button]
    html = [
        unescape(one.proto.body) for one in at.main.get("html") if "<style" not in one.proto.body
    ]
    return "\n".join(map(str, [*values, *html])).replace("\\", "")


def test_the_samples_come_by_disagreement_one_at_a_time(deck: Deck) -> None:
    at = deck(names="Shown")
    assert heading(at) == "clash" and at.button(key="results_deck_previous").disabled
    assert "1 of 3 samples" in words(at)
    assert heading(press(at, "next")) == "apart"
    assert heading(press(at, "next")) == "alike" and at.button(key="results_deck_next").disabled
    assert at.query_params["results_deck"] == "alike"
    assert heading(press(at, "previous")) == "apart"


@pytest.mark.parametrize("names", ["Shown", "Hidden until you vote"])
def test_the_reference_and_the_attributes_come_after_the_vote(deck: Deck, names: str) -> None:
    at = deck(names=names)
    known = ("Reference answer: A car.", "Scene attributes: curve left", "1 contradiction: lead")
    assert not any(one in words(at) for one in known)
    press(at, "first")
    assert all(one in words(at) for one in known)


def test_blind_mode_hides_the_names_until_the_vote(deck: Deck, made: Run) -> None:
    at = deck()
    for sample in ("clash", "apart", "alike"):
        assert heading(at) == sample
        before = words(at)
        assert "Answer A" in before and "Answer B" in before
        assert "A: ev" not in before and not {"ev", "vl"} & set(before.replace(":", " ").split())
        press(at, "second")
        shown = words(at)
        assert ("A: ev" in shown and "B: vl" in shown) or ("A: vl" in shown and "B: ev" in shown)
        assert at.button(key="results_deck_first").disabled
        vote = annotations.votes(made.folder)[-1]
        chosen = vote.answers[vote.choice == "second"].model
        assert vote.blind and f"B: {chosen}" in shown
        assert f"Your blind vote: {chosen} better." in shown
        if sample != "alike":
            press(at, "next")
    assert "Blind votes: ev better " in words(at) and " of 3 votes (95 % " in words(at)


def test_control_open_mode_shows_the_names(deck: Deck) -> None:
    assert "A: ev" in words(deck(names="Shown")) and "B: vl" in words(deck(names="Shown"))


def test_names_that_were_seen_make_a_vote_open(deck: Deck, made: Run) -> None:
    at = deck(names="Shown")
    at.button_group(key="results_names").set_value("Hidden until you vote").run()
    assert "your vote counts as open" in words(at)
    press(at, "neither")
    (vote,) = annotations.votes(made.folder)
    assert not vote.blind
    assert "Answer A" in words(press(at, "next"))  # this one was not seen


def test_votes_of_other_visits_count(deck: Deck, made: Run) -> None:
    answers = VotedAnswer(made.id, "ev", 0), VotedAnswer(made.id, "vl", 0)
    annotations.put_vote(made.folder, Vote("clash", answers, "second", True, 5))
    at = deck()
    assert "Blind votes" not in words(at)  # not before the own vote
    press(at, "both")
    assert "Blind votes: ev better 0, vl better 1, both good 1, neither 0." in words(at)
    assert "ev is preferred in 0 of 1 votes (95 % interval 0.0 to 97.5 %)." in words(at)


def test_a_vote_that_cannot_be_stored_is_told(deck: Deck, made: Run) -> None:
    at = deck(names="Shown")
    (made.folder / annotations.VOTES).mkdir()
    press(at, "first")
    assert "The vote cannot be saved" in words(at) and "Your open vote" not in words(at)


def test_one_model_or_no_shared_question_says_what_to_do(app: Open) -> None:
    runs = settings.load().runs_dir
    fabricate.run(runs / "alone", [fabricate.row()])
    at = app(PAGE, runs="alone", view="Samples", vote="true")
    assert not [one for one in at.segmented_control if one.key == "results_names"]
    fabricate.run(runs / "asked", [fabricate.row(), fabricate.row("vl", prompt="Why?")])
    at = app(PAGE, runs="asked", view="Samples", vote="true")
    assert "answered no sample with the same question" in words(at)


def test_two_runs_of_a_model_and_a_choice_among_three(app: Open) -> None:
    runs = settings.load().runs_dir
    fabricate.run(runs / "one", rows())
    fabricate.run(runs / "two", [fabricate.row("ev", "clash", text="A truck is ahead.")])
    at = app(PAGE, runs=["one", "two"], view="Samples", vote="true", names="Shown")
    labels = list(at.selectbox(key="results_a").options)
    first, second = (label for label in labels if label.startswith("ev"))
    assert len(labels) == 3
    at.selectbox(key="results_a").set_value(first).run()
    at.selectbox(key="results_b").set_value(second).run()
    assert "truck" in words(at)
    press(at, "second")
    assert "1 contradiction: lead vehicle: A " in words(at)
    assert f"Your open vote: {second} better." in words(at)
    at.selectbox(key="results_a").set_value(second).run()
    assert "choose another Model B" in words(at)
    at.selectbox(key="results_b").set_value(first).run()
    assert f"Your open vote: {second} better." in words(at)
    assert at.button(key="results_deck_first").proto.type == "primary"
