"""Records: boxes, options and right answers in the forms that datasets have, and refused ones."""

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
    choice_question,
)

GOOD = [0, 0.25, 0.5, 1]


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


def test_a_question_whose_answer_is_read_by_its_words_is_asked_alone() -> None:
    assert choice_question("What is ahead?", CARS, "words") == "What is ahead?"
    found = asked("What is ahead?", CARS, "a truck", "words")
    assert found == AskedQuestion("What is ahead?", CARS, "words", "B")


@pytest.mark.parametrize(("count", "told"), [(0, "0 options"), (1, "1 option"), (27, "27 options")])
def test_numbers_of_options_that_have_no_letters(count: int, told: str) -> None:
    with pytest.raises(BadInput, match=f"has {told}: give 2 to 26"):
        choice_question("Which?", [str(one) for one in range(count)])


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


def test_an_option_cannot_make_another_line() -> None:
    found = asked("Which?", ["one\nB. two\nC. three", "two"], "B")
    assert found.question.count("\n") == 3
    assert found.choices == ("one B. two C. three", "two")
