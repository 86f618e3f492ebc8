"""A draft's text in pieces, inferred without a tokenizer, honest where that is uncertain."""

from __future__ import annotations

import pytest

from engine.analysis.acceptance import GUESSED, Pair, from_text, shares, split, states

TEXT = "In the scene, a parked car."


def test_words_and_signs_with_the_space_before_them() -> None:
    assert split(" Two-way, it's.") == [" Two", "-", "way", ",", " it", "'", "s", "."]
    assert "".join(split(TEXT)) == TEXT


def test_each_id_has_a_state() -> None:
    assert states(Pair("s", (5, 6, 7, 8, 9), (5, 1, 7, 2))) == [
        "accepted", "rejected", "matched", "rejected", "beyond"
    ]  # fmt: skip
    assert states(Pair("s", (), (5,))) == []


def test_as_many_ids_as_pieces_are_certain() -> None:
    painting = from_text(Pair("s", (1, *range(10, 18), 2), ()), TEXT)
    assert not painting.doubt and painting.text == TEXT
    assert [(piece.first, piece.end) for piece in painting.pieces] == [
        (place, place + 1) for place in range(1, 9)
    ]


def test_a_word_of_several_ids_is_accepted_only_whole() -> None:
    draft = (*range(10, 19), 2)
    target = (*draft[:6], 99, *draft[7:])  # the second id of " parked" is another
    painting = from_text(Pair("s", draft, target), TEXT)
    found = {piece.text: (piece.state, piece.end - piece.first) for piece in painting.pieces}
    assert painting.doubt == GUESSED and painting.text == TEXT
    assert found["In"] == found[" scene"] == ("accepted", 1)
    assert found[" parked"] == ("rejected", 2) and found[" car"] == ("matched", 1)


@pytest.mark.parametrize(
    ("ids", "text"), [(1, "In the scene"), (14, "In the"), (1100, "In the " * 500), (2, "  ")]
)
def test_what_cannot_be_divided_is_one_piece(ids: int, text: str) -> None:
    painting = from_text(Pair("s", tuple(range(10, 10 + ids)), ()), text)
    assert len(painting.pieces) == 1 and painting.text == text
    assert f"{ids:,} ids cannot be given" in painting.doubt


def test_nothing_to_paint() -> None:
    assert from_text(Pair("s", (), (5,)), "").pieces == () and shares(0, []) is None
