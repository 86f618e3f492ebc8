"""Records: boxes, options and right answers in the forms that datasets have, and refused ones."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import BadInput, DatasetError
from engine.media.dataset_record import (
    AskedQuestion,
    asked,
    fields_of,
    letter_of,
    option_texts,
)
from engine.prompts import (
    CHOICE_FORMS,
    LETTERS,
    MAX_ASKED_CHARS,
    check_question,
    choice_question,
)

GOOD = [0, 0.25, 0.5, 1]


def test_boxes_of_a_record() -> None:
    problems: list[str] = []
    found = fields_of({"boxes": {"car": [GOOD], "rail": []}}, problems)
    assert found.boxes == {"car": [(0, 0.25, 0.5, 1)], "rail": []} and not problems


@pytest.mark.parametrize(
    "value",
    [
        *([GOOD], {"car": GOOD}, {"car": {"0": GOOD}}, {"car": [GOOD[:3]]}, {"car": [GOOD] * 101}),
        *({"car": [[0, 0, odd, 1]]} for odd in (0, 1.5, float("nan"), True, "1", 10**400)),
        *({"car": [box]} for box in ([0.5, 0, 0.25, 1], [-0.1, 0, 1, 1])),
        {str(number): [] for number in range(101)},
    ],
)
def test_other_values_are_a_problem(value: Any) -> None:
    problems: list[str] = []
    fields = fields_of({"boxes": value, "split": "night", "task": 5}, problems)
    assert (fields.boxes, fields.split, fields.task) == ({}, "night", "")
    assert sorted(problem.split()[0] for problem in problems) == ["boxes", "task"]


CARS = ("a car", "a truck", "nothing")


def test_the_usual_lettered_question() -> None:
    assert choice_question("What is ahead?", CARS) == (
        "What is ahead?\nA. a car\nB. a truck\nC. nothing\n"
        "Answer with the option's letter from the given choices directly."
    )


def test_the_form_of_evqa() -> None:
    assert choice_question("What is ahead?", CARS, "evqa") == (
        "Question: What is ahead?\nOptions:\n(A) a car\n(B) a truck\n(C) nothing\n\n"
        "Only give the best option."
    )


def test_a_question_whose_answer_is_read_by_its_words_is_asked_alone() -> None:
    assert choice_question("What is ahead?", CARS, "words") == "What is ahead?"
    found = asked("What is ahead?", CARS, "a truck", "words")
    assert found == AskedQuestion("What is ahead?", CARS, "words", "B")


def test_braces_in_a_question_are_text() -> None:
    text = choice_question("What is {letter} {0}?", ("{text}", "{question}"))
    assert text.startswith("What is {letter} {0}?\nA. {text}\nB. {question}\n")


@pytest.mark.parametrize(("count", "told"), [(0, "0 options"), (1, "1 option"), (27, "27 options")])
def test_numbers_of_options_that_have_no_letters(count: int, told: str) -> None:
    with pytest.raises(BadInput, match=f"has {told}: give 2 to 26"):
        choice_question("Which?", [str(one) for one in range(count)])


def test_forms_that_are_not_known() -> None:
    with pytest.raises(BadInput, match=r"choice_form is 'roman': choose one of words, letters"):
        choice_question("Which?", CARS, "roman")
    for form in CHOICE_FORMS:
        assert choice_question("Which?", CARS, form)


def test_26_long_options_can_be_asked() -> None:
    options = [f"{letter} " + "x" * 100 for letter in "abcdefghijklmnopqrstuvwxyz"]
    found = asked("Which?", options, "Z")
    assert check_question(found.question) == found.question
    assert 4000 > len(found.question) > 2600 and found.answer == "Z"
    assert f"shorten it to {MAX_ASKED_CHARS:,}" in asked("x" * MAX_ASKED_CHARS, CARS, "A").refused


@pytest.mark.parametrize(
    "options",
    [
        list(CARS),
        {"A": "a car", "B": "a truck", "C": "nothing"},
        {"C": "nothing", "a": "a car", "b": " a  truck\n"},
        ["A. a car", "B. a truck", "C. nothing"],
        ["(A) a car", "(B) a truck", "(C) nothing"],
        ["A: a car", "B) a truck", "C. nothing"],
    ],
)
def test_forms_of_options(options: object) -> None:
    assert option_texts(options) == CARS


def test_labels_that_are_not_those_of_their_places_are_text() -> None:
    assert option_texts(["B. one", "A. two"]) == ("B. one", "A. two")
    assert option_texts(["A. one", "two"]) == ("A. one", "two")
    assert option_texts([1, 2.5, "three"]) == ("1", "2.5", "three")


@pytest.mark.parametrize(
    "options",
    [
        *("abc", 7, [], ["one"], [str(one) for one in range(27)], ["One", "two", "one "]),
        *(["one", odd] for odd in ("", " \n ", None, True, ["two"], 10**5000, "x" * 1001)),
        *({"A": "one", "C": "two"}, {"A": "one", "a": "two"}, {0: "one", 1: "two"}),
    ],
)
def test_options_that_are_refused(options: object) -> None:
    with pytest.raises(DatasetError, match=r"^choices is .*: give 2 to 26 different texts of at"):
        option_texts(options)


@pytest.mark.parametrize(
    ("letter", "answers"),
    [
        ("", (None, "")),
        ("A", (" 0 ",)),
        ("B", ("B", "b", "(B)", "B.", " B) ", 1, "1", "a truck", "A  Truck", "B. a truck")),
    ],
)
def test_forms_of_the_right_answer(letter: str, answers: tuple[object, ...]) -> None:
    assert {answer: letter_of(answer, CARS) for answer in answers} == dict.fromkeys(answers, letter)


@pytest.mark.parametrize(
    "answer", ["D", 3, "3", "-1", "1.0", "27", -1, True, "a bus", ["B"], 1.0, "BB", [10**5000]]
)
def test_answers_that_are_no_option(answer: object) -> None:
    with pytest.raises(DatasetError, match="means none of its options: write letter and text"):
        letter_of(answer, CARS)


@pytest.mark.parametrize(
    ("answer", "options"),
    [("A", ("B", "A")), (1, ("1", "2")), ("1", ("1", "0", "2")), ("B. one", ("one", "two"))],
)
def test_answers_that_mean_two_options(answer: object, options: tuple[str, ...]) -> None:
    with pytest.raises(DatasetError, match="means two of its options: write letter") as caught:
        letter_of(answer, options)
    clear = str(caught.value).split(", as ")[1].strip("'.")
    assert letter_of(clear, options) == clear[0]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["one"], ("one",)),
        ({"A": "one", "C": 2}, ("one", "2")),
        ("abc", ("abc",)),
        ([], ("[]",)),
        (["one", ""], ("one", "")),
        ([str(one) for one in range(27)], tuple(str(one) for one in range(26))),
    ],
)
def test_refused_choices_stay_choices(options: object, kept: tuple[str, ...]) -> None:
    found = asked("Which?", options, "A", where="Record 4: ")
    assert found.refused.startswith("Record 4: choices ") and found.choices == kept
    assert (found.question, found.answer) == ("Which?", "")
    fine = asked("Which?", CARS, "A", where="Record 4: ")  # control
    assert not fine.refused and fine == asked("Which?", CARS, "A")


def test_a_layout_may_give_texts_only() -> None:
    assert asked("Which?", ["B", "A"], "A", LETTERS, as_text=True).answer == "B"
    assert asked("Which?", CARS, None, LETTERS, as_text=True).answer == ""
    refused = asked("Which?", CARS, "B", LETTERS, as_text=True).refused
    assert "means none of its options" in refused


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("", "has choices and no question"),
        (" \n", "has choices and no question"),
        ("Is <image> there?", "contains <image>"),
        ("\ud800?", "which is not a character"),
    ],
)
def test_questions_that_cannot_be_asked(question: str, sentence: str) -> None:
    assert sentence in asked(question, CARS, "A").refused


def test_an_option_cannot_make_another_line() -> None:
    found = asked("Which?", ["one\nB. two\nC. three", "two"], "B")
    assert found.question.count("\n") == 3
    assert found.choices == ("one B. two C. three", "two")
