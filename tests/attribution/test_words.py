"""Words are found in the answer by their characters, and become its tokens."""

from collections.abc import Sequence

import pytest

from engine.attribution import wording as texts
from engine.attribution.wording import ScoredWords
from engine.errors import BadInput
from engine.pipeline.run_stages import text_ends
from tests.pipeline.test_run_stages import Written

PIECES = (" A", " car", " is", " left", ".", " A", " left", "most", " car", ".", "</s>")


def decode(ids: Sequence[int]) -> str:
    return "".join(PIECES[one] for one in ids if PIECES[one] != "</s>")


def found(words: str, pieces: tuple[str, ...] = PIECES) -> ScoredWords:
    ids = range(len(pieces))
    ends = text_ends(Written(decode), ids)
    return texts.find(words, decode(list(ids)).strip(), ids, ends, lambda text: [90, 91])


@pytest.mark.parametrize(
    ("words", "scored"),
    [
        ("A car is left.", (0, 5)),
        ("is left", (2, 4)),
        ("leftmost", (6, 8)),
        ("A leftmost car.", (5, 10)),
        ("A car is left. A leftmost car.", (0, 10)),
    ],
)
def test_words_are_the_tokens_of_their_characters(words: str, scored: tuple[int, int]) -> None:
    one = found(words)
    assert (one.words, one.said, one.scored, one.notes) == (words, True, scored, ())
    assert one.token_ids == tuple(range(len(PIECES)))


def test_a_part_of_a_word_is_not_the_word() -> None:
    assert found("most").said is False
    assert found("left").notes == ()  # "leftmost" is no second place


def test_words_without_tokens_are_refused() -> None:
    with pytest.raises(BadInput, match="'a horse' has no tokens in this model"):
        texts.find("a horse", "", (), (), lambda text: [])


def test_a_character_of_several_tokens_brings_all_of_them() -> None:
    character = "\N{CJK UNIFIED IDEOGRAPH-4E2D}"
    ends = (2, 2, 3, 5)  # it is known after its second token
    assert texts.find(character, f"a {character} b", range(4), ends, list).scored == (1, 3)


def test_ids_that_the_model_does_not_have_are_refused() -> None:
    texts.refuse_ids((0, 9), 10, "m")
    for strange in (10, -1):
        with pytest.raises(BadInput, match="m has 10 tokens"):
            texts.refuse_ids((0, strange), 10, "m")
