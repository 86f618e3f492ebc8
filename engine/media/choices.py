"""Reads the question of a record: its options, its right answer, and the text as it is asked.

Plain values of an untrusted JSON or CSV become checked texts; DatasetError with one sentence for
anything else.  The forms of questions are those of engine/prompts.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import get_args

from engine.errors import BadInput, DatasetError
from engine.media.dataset_files import clean, kind_of
from engine.prompts import (
    LETTERS,
    MAX_ASKED_CHARS,
    MAX_CHOICES,
    WORDS,
    check_question,
    choice_question,
)
from engine.quoting import count as counted
from engine.quoting import quoted
from engine.types import ChoiceForm, MediaKind

MAX_OPTION_CHARS = 1000
_LABEL = re.compile(r"\s*(?:\(([A-Z])\)|([A-Z])[.):])\s+(?=\S)")
_LETTER = re.compile(r"\(?([A-Za-z])[.):]?")
_PLACE = re.compile(r"[0-9]{1,2}")


@dataclass(frozen=True)
class AskedQuestion:
    """The fields of a Sample that a multiple-choice record decides.

    `refused`: why the question must not be asked; `choices` are then the options as given.
    """

    question: str = ""
    choices: tuple[str, ...] = ()
    choice_form: ChoiceForm = "letters"
    answer: str = ""
    refused: str = ""


def missing(refused: str) -> dict[str, str]:
    """A refused question's sample is shown to no model: asked in another form, it would count as
    another question, or leave the accuracy without a word."""
    return dict.fromkeys(get_args(MediaKind), refused) if refused else {}


def asked_or_refused(
    where: str,
    question: str,
    options: object,
    answer: object,
    form: object = LETTERS,
    *,
    as_text: bool = False,
) -> AskedQuestion:
    """asked(), or why it cannot be asked; `where` begins that sentence, as in "Record 4: "."""
    try:
        return asked(question, options, answer, form, as_text=as_text)
    except DatasetError as error:
        kind: ChoiceForm = "words" if form == WORDS else "letters"
        # Wrong options as texts; at least one, so that the failed result counts as multiple choice.
        given = list(options.values()) if isinstance(options, Mapping) else options
        each = given if isinstance(given, list | tuple) and given else [given]
        texts = [one if isinstance(one, str) else quoted(one) for one in each[:MAX_CHOICES]]
        shown = tuple(clean(text[:MAX_OPTION_CHARS]) for text in texts)
        return AskedQuestion(question, shown, kind, refused=f"{where}{error}")


def asked(
    question: str,
    options: object,
    answer: object,
    form: object = LETTERS,
    *,
    as_text: bool = False,
) -> AskedQuestion:
    """The question in its form, with its options and the letter of the right one.

    `as_text`: the layout gives the answer as an option's text and never as a letter.
    """
    if not question.strip():
        raise DatasetError("The record has choices and no question: add it.")
    if not isinstance(form, str):
        raise DatasetError(f"choice_form is {quoted(form)} instead of text: correct the record.")
    texts = option_texts(options)
    try:
        text = check_question(choice_question(question.strip(), texts, form), MAX_ASKED_CHARS)
    except BadInput as error:
        raise DatasetError(str(error)) from error
    letter = letter_of(answer, texts, as_text=as_text)
    return AskedQuestion(text, texts, "words" if form == WORDS else "letters", letter)


def option_texts(value: object) -> tuple[str, ...]:
    """The options' texts, from a list of texts or an object of letters, without their labels."""
    if isinstance(value, Mapping):  # by letter; the letters begin with A and have no gap
        by_letter = {str(letter).strip().upper(): text for letter, text in value.items()}
        letters = ascii_uppercase[: len(value)]
        if sorted(by_letter) != list(letters) or len(by_letter) != len(value):
            raise DatasetError(
                f"choices has the letters {quoted(list(value))}: name them A, B, C and so on."
            )
        value = [by_letter[letter] for letter in letters]
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise DatasetError(f"choices is {quoted(value)} instead of a list: correct the record.")
    if not 2 <= len(value) <= MAX_CHOICES:
        raise DatasetError(f"choices has {counted(len(value), 'option')}: give 2 to {MAX_CHOICES}.")
    texts = [_option(one) for one in value]
    labels = [_LABEL.match(text) for text in texts]
    if [match and (match[1] or match[2]) for match in labels] == [*ascii_uppercase[: len(texts)]]:
        texts = [text[match.end() :] for text, match in zip(texts, labels, strict=True) if match]
    if any(not text for text in texts):
        raise DatasetError("choices has an empty option: write its text.")
    plain = [text.casefold() for text in texts]
    if twice := next((text for text in texts if plain.count(text.casefold()) > 1), None):
        raise DatasetError(f"choices has the option {quoted(twice)} twice: correct the record.")
    return tuple(texts)


def _option(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DatasetError(f"choices has {kind_of(value)} instead of a text: correct the record.")
    if isinstance(value, int) and value.bit_length() > 64:
        raise DatasetError("choices has a very long number: write it as a text.")
    text = " ".join(clean(str(value)).split())
    if len(text) > MAX_OPTION_CHARS:
        raise DatasetError(
            f"choices has an option of {len(text):,} characters: shorten it to "
            f"{MAX_OPTION_CHARS:,}."
        )
    return text


def letter_of(answer: object, texts: Sequence[str], *, as_text: bool = False) -> str:
    """The letter of the right option: from its letter, its number from 0, or its text; "" if None.

    DatasetError if the answer is none of the options, or means two of them.
    """
    if answer is None or answer == "":
        return ""
    meant = _places(answer, texts, as_text)
    if len(meant) == 1:
        return ascii_uppercase[meant.pop()]
    if not meant:
        way = "the text of an option" if as_text else "the letter or text"
        raise DatasetError(f"The answer {quoted(answer)} means none of its options: write {way}.")
    first = min(meant)
    clear = quoted(f"{ascii_uppercase[first]}. {texts[first]}")
    raise DatasetError(
        f"The answer {quoted(answer)} means two of its options: write letter and text, as {clear}."
    )


def _places(answer: object, texts: Sequence[str], as_text: bool) -> set[int]:
    """The places of the options that an answer may mean."""
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        return set()
    if isinstance(answer, int) and answer.bit_length() > 64:
        return set()
    said = " ".join(str(answer).split())  # a number may be the text of an option
    labelled = _LABEL.match(said)
    forms = {said.casefold()} | ({said[labelled.end() :].casefold()} if labelled else set())
    found = {place for place, text in enumerate(texts) if text.casefold() in forms}
    if as_text or isinstance(answer, float):
        return found
    if _PLACE.fullmatch(said):
        place = int(said)
    else:
        match = _LETTER.fullmatch(said)
        letter = match[1] if match else (labelled[1] or labelled[2]) if labelled else ""
        place = ascii_uppercase.find(letter.upper()) if letter else -1
    return found | ({place} if 0 <= place < len(texts) else set())
