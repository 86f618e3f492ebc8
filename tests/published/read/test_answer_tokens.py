"""Prompts in front of answers and ids cut off them: taken off, added, or left out and said."""

from __future__ import annotations

from typing import Any

import pytest

from engine.published.read import corrected
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read

LLAVA = ("llava", "llava-1.5-7b-hf")
TEXT = " ".join(["There is a road with a car on it."] * 6)  # 54 words


def tokens(value: Any, model: str) -> list[float | None]:
    return [record.tokens for record in read(value).of(model, corrected=True)]


def flat(count: int, model: str = "egpt", key: str = "egpt") -> Any:
    """A whose second answer of a model has so many ids for 54 words."""
    rows = made.flat()
    rows[1] |= {f"{model}_token_ids": made.ids(2, count), key: TEXT}
    return rows


def test_sixty_are_added_where_the_words_explain_them() -> None:
    assert tokens(flat(7), "egpt") == [11, 67, 11, 11]
    (one,) = found(flat(7), "sliced_tokens")
    assert "60 tokens, the number that these scripts cut off, were added to each" in one.correction
    assert not found(flat(66), "sliced_tokens")  # control


def test_a_count_that_sixty_more_would_not_explain_is_left_out_and_said() -> None:
    rows = made.flat()
    rows[1]["egpt_token_ids"] = made.ids(2, 2)  # 9 words
    assert tokens(rows, "egpt") == [11, None, 11, 11]
    (one,) = found(rows, "sliced_tokens")
    assert "Nothing was added: the number of missing ids is unknown" in one.correction
    rows[2] |= {"egpt_token_ids": made.ids(4, 7), "egpt": TEXT}
    (one,) = found(rows, "sliced_tokens")
    assert "were added to each such count except 1: the number" in one.correction


def test_another_model_s_ids_are_counted_against_its_words_too() -> None:
    value = flat(7, *LLAVA)
    (one,) = found(value, "sliced_tokens")
    assert one.model == "llava" and "the number of missing ids is unknown" in one.correction
    assert tokens(value, "llava") == [22, None, 22, 22]
    assert not found(flat(66, *LLAVA), "sliced_tokens")
    value = flat(11, *LLAVA)
    value[1]["llava-1.5-7b-hf"] = f"USER: {TEXT} ASSISTANT: {made.SENTENCE}"
    assert not found(value, "sliced_tokens")  # a question in the text has no tokens


def test_a_prompt_in_front_of_a_short_answer_is_no_known_cut() -> None:
    rows = flat(7)
    for row in rows:
        row["egpt_token_ids"] = [1, *corrected.ASSISTANT, *row["egpt_token_ids"]]
    assert tokens(rows, "egpt") == [11, None, 11, 11]
    (one,) = found(rows, "sliced_tokens")
    assert "one has 7 tokens" in one.message and "Nothing was added" in one.correction


@pytest.mark.parametrize("token", sorted(corrected.PLACEHOLDERS))
def test_placeholders_without_the_end_of_a_prompt_are_a_prompt(token: int) -> None:
    rows = made.flat()
    for row in rows:
        row["llava_token_ids"] = [1, *[token] * 576, *row["llava_token_ids"]]
    assert tokens(rows, "llava") == [22] * 4
    (one,) = found(rows, "prompt_counted")
    assert one.figures == {
        "prompt_ids": 577.0, "tokens_recorded": 599.0, "tokens_corrected": 22.0}  # fmt: skip
    assert 'no "ASSISTANT:" marks the start of the answer' in one.correction
    assert not found(rows, "degenerate")


@pytest.mark.parametrize(
    ("ids", "cut"),
    [
        ([], 0),
        ([5, 6, 2], 0),
        ([1, 5, *corrected.ASSISTANT, 9, 2], 6),
        ([*[32000] * 99, 5], 0),  # fewer than an image has
        ([*range(100, 300), *[32000] * 200], 0),  # an answer that ends so is degenerate
    ],
)
def test_where_a_prompt_ends(ids: list[int], cut: int) -> None:
    assert corrected.prompt_ids(ids) == cut


def test_a_limit_holds_for_what_is_left_of_a_prompted_answer() -> None:
    value = made.legacy()
    assert not found(value, "beyond_limit")
    value["config"]["max_new_tokens"] = 19
    (one,) = found(value, "beyond_limit")
    assert (
        "4 answers have more new tokens than the limit; one has 20, and the limit is 19"
        in one.message
    )
