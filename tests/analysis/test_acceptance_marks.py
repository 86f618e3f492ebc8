"""A draft's text in pieces: exact with a tokenizer, inferred without, honest where it fails."""

from __future__ import annotations

import itertools

import pytest

from engine.analysis.acceptance import Pair
from engine.analysis.acceptance_marks import Spelling, align, from_text, learn, split

VOCABULARY = {"In": 5, " the": 6, " scene": 7, ",": 8, " a": 9, " car": 10, " park": 11, "ed": 12,
              " road": 13, ".": 14, " head": 15, "light": 16, "s": 17}  # fmt: skip
WORDS = {" parked": (11, 12), " headlights": (15, 16, 17)}


def encode(text: str) -> tuple[int, ...]:
    ids = [WORDS.get(piece, (VOCABULARY.get(piece, -1),)) for piece in split(text)]
    return (*itertools.chain.from_iterable(ids), 2)


TEXTS = ["In the scene, a car.", "In the scene, a road.", "In the scene, a parked car.",
         "In the road, a car, a scene.", "In the scene, a parked car, headlights."]  # fmt: skip


def test_words_and_signs_with_the_space_before_them() -> None:
    assert split(" Two-way, it's.") == [" Two", "-", "way", ",", " it", "'", "s", "."]
    assert "".join(split("In the scene, a car.")) == "In the scene, a car."


@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_given_to_the_words_that_they_spell(text: str) -> None:
    spelling = learn([(encode(one), one) for one in TEXTS])
    painting = from_text(Pair("s", encode(text), ()), text, spelling)
    assert not painting.doubt and painting.text == text
    given = [encode(text)[piece.first : piece.end] for piece in painting.pieces]
    assert given == [WORDS.get(p, (VOCABULARY.get(p, -1),)) for p in split(text)]


def test_a_word_of_several_ids_is_accepted_only_whole() -> None:
    text = "In the scene, a parked car."
    draft = encode(text)
    target = (*draft[:6], 99, *draft[7:])  # the second id of " parked" is another
    spelling = learn([(encode(one), one) for one in TEXTS])
    states = {p.text: p.state for p in from_text(Pair("s", draft, target), text, spelling).pieces}
    assert states["In"] == states[" scene"] == "accepted"
    assert states[" parked"] == "rejected" and states[" car"] == "matched"


def test_what_contradicts_itself_says_so() -> None:
    known = Spelling({5: "In", 6: " the"}, {"In": 5, " the": 6})
    assert from_text(Pair("s", (6, 5), ()), "In the", known).doubt
    short = from_text(Pair("s", (5,), (5,)), "In the scene", known)
    assert short.doubt and len(short.pieces) == 1 and short.text == "In the scene"


def test_the_doubt_names_its_reason() -> None:
    known = Spelling({5: "In", 6: " the"}, {"In": 5, " the": 6})

    def doubt(ids: tuple[int, ...], text: str) -> str:
        return from_text(Pair("s", ids, ()), text, known).doubt

    assert doubt((5, 6), "In the") == ""
    assert "the id of 'In' is that of 'the' elsewhere" in doubt((6, 5), "In the")
    assert "'the' has another id elsewhere" in doubt((5, 60), "In the")
    assert "'scene' takes 6 ids, and nothing else" in doubt((5, *range(50, 56)), "In scene")
    assert "'the' takes 2 ids, and a single one" in doubt((5, 61, 62, 63), "In the a")
    assert doubt((6, 5), "the In") == ""  # an id with its space and without is one
    assert "3 words and signs and only 1 id is" in doubt((5,), "In the scene")
    assert "14 ids, more than 6 for each" in doubt(tuple(range(50, 64)), "In the")
    assert "more than the 1,024" in doubt(tuple(range(50, 1150)), "In the " * 500)
    assert "no word" in doubt((5, 6), "  ")
    assert "would have 6 ids, more than it has letters" in doubt(tuple(range(50, 58)), "a b")


def test_nothing_to_paint() -> None:
    assert from_text(Pair("s", (), (5,)), "").pieces == ()
    assert align([], [], Spelling()) is None and learn([]) == Spelling()
