"""Which option an answer names: a table of answers, and what must not be read from them."""

import pytest

from engine.analysis.answer_reading import UNREADABLE, read_choice

FOUR = ("a truck", "a car", "a bus", "nothing")


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("B", "B"), ("b", "B"), ("(B)", "B"), ("[b].", "B"), (" B.\n", "B"), ("**B**", "B"),
        ("B:", "B"), ("'B'", "B"), ("`B`", "B"), ("B)", "B"),
        ("B. a car", "B"), ("B) a car", "B"), ("(B) a car", "B"), ("B: the car", "B"),
        ("B, because it is far", "B"), ("B - the car", "B"), ("B\nIt is far away.", "B"),
        ("B.The car", "B"), ("**B.** The car", "B"), ("A. Yes", "A"), ("A: car", "A"),
        ("A\nA car is ahead.", "A"), ("A) a car", "A"),
        ("The answer is B", "B"), ("The answer is B because of its size", "B"),
        ("The correct answer is (B).", "B"), ("Answer: B", "B"), ("answer is: B", "B"),
        ("The answer is A because of its size", "A"), ("ANSWER IS B", "B"),
        ("Option B", "B"), ("I choose option B here", "B"), ("Best option:(B) a car", "B"),
        ("My choice is option A, clearly", "A"), ("The letter C", "C"), ("It must be (C)", "C"),
        ("B is correct", "B"), ("I say B is the best", "B"),
        ("It is not A, the answer is B", "B"), ("B. a car\nAnswer: B", "B"),
        ("<think>A? B? Option C!</think>D", "D"),
        ("I think it is a bus.", "C"), ("A bus is ahead", "C"), ("There is A BUS!", "C"),
        ("nothing", "D"), ("It is not a truck but a car.", "B"),
    ],
)  # fmt: skip
def test_answers_that_name_one_option(answer: str, letter: str) -> None:
    assert read_choice(answer, FOUR) == letter


@pytest.mark.parametrize(
    ("answer", "letter"), [("A car is ahead", "B"), ("a bus", "C"), ("A", "A")]
)
def test_an_article_is_no_letter(answer: str, letter: str) -> None:
    assert read_choice(answer, ("truck", "car", "bus")) == letter


@pytest.mark.parametrize(
    ("answer", "choices", "letter"),
    [
        ("a red car", ("car", "red car"), "B"),
        ("a red car, a blue car", ("car", "red car"), UNREADABLE),
        ("3.5 metres", ("3", "3.5"), "B"),
        ("13", ("3", "5"), UNREADABLE),
        ("-5", ("5", "7"), UNREADABLE),
        ("carpet", ("car", "bus"), UNREADABLE),
        ("car", ("car", "car"), UNREADABLE),
        ("car", ("", "car"), "B"),
        ("No vehicle, no car", ("no car", "car"), "A"),
        ("x" * 50_000 + " car", ("car", "bus"), "A"),
        ("A" + " " * 200_000 + "car", ("bus", "car"), "B"),  # would take minutes in quadratic time
        ("B" + "\n" * 200_000 + "car", ("bus", "car"), "B"),
        ("(.+)", (".+", "car"), "A"),
        ("The left", ("left", "right"), "A"),
        ("Yes", ("Yes", "No"), "A"),
        ("C", ("Yes", "No"), UNREADABLE),
    ],
)
def test_texts_of_options(answer: str, choices: tuple[str, ...], letter: str) -> None:
    assert read_choice(answer, choices) == letter


@pytest.mark.parametrize(
    ("answer", "task", "choices", "letter"),
    [
        ("A car is ahead of us.", "lead vehicle", ("none", "car", "truck"), "B"),
        ("No other vehicle is visible.", "lead vehicle", ("none", "car", "truck"), "A"),
        ("The car ahead is coming closer.", "motion", ("steady", "approaching"), "B"),
        ("The road curves to the left.", "curve", ("right", "left", "straight"), "B"),
        ("The road curves to the left. The road is straight.", "curve", ("left", "straight"), ""),
        ("The road curves to the left.", "guardrail side", ("left", "right"), ""),
        ("Left.", "guardrail side", ("left", "right"), "A"),
        ("The road curves to the left.", "curve", ("right", "straight"), ""),
        ("B", "curve", ("left", "right"), ""),
        ("The time of day cannot be told.", "time of day", ("day", "night"), ""),
        ("It is day.", "time of day", ("night", "day"), "B"),
        ("Two dogs.", "animals", ("dogs", "cats"), "A"),
        ("Dogs and cats.", "animals", ("dogs", "cats"), ""),
    ],
)
def test_answers_in_words(answer: str, task: str, choices: tuple[str, ...], letter: str) -> None:
    assert read_choice(answer, choices, "words", task) == letter
