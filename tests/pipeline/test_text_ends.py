"""The text that is known after each token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from engine.models import registry
from engine.pipeline.text_ends import UNFINISHED, text_ends

WORDS = {0: "", 1: " A", 2: " road", 3: ",", 4: " wet", 5: "\n"}


def by_words(ids: Sequence[int]) -> str:
    return "".join(WORDS[token] for token in ids)


def shown(text: str, ends: Sequence[int]) -> list[str]:
    return [text[start:end] for start, end in pairwise((0, *ends))]


def test_each_token_adds_its_own_text_and_the_end_adds_none() -> None:
    ends = text_ends(by_words, [1, 2, 3, 4, 5, 0])
    assert shown("A road, wet", ends) == ["A", " road", ",", " wet", "", ""]
    assert text_ends(by_words, []) == () and text_ends(by_words, [0, 5]) == (0, 0)


def test_a_character_of_several_tokens_appears_with_its_last_one() -> None:
    """Bytes, as tokenizers have them for rare characters."""
    data = "a🚗b".encode()
    ends = text_ends(lambda ids: bytes(ids).decode(errors="replace"), list(data))
    assert shown("a🚗b", ends) == ["a", "", "", "", "🚗", "b"]


def test_a_tokenizer_that_changes_earlier_text_loses_no_character() -> None:
    """ "do n't" is cleaned up to "don't": the parts do not add up to the whole text."""

    def cleaned(ids: Sequence[int]) -> str:
        return " ".join(("do", "n't", "go")[token] for token in ids).replace("do n't", "don't")

    ends = text_ends(cleaned, [0, 1, 2])
    assert shown("don't go", ends) == ["do", "n't", " go"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eventgpt-demo", "video-llava-demo", "llava-demo"])
def test_the_shipped_tokenizers_give_what_the_whole_prefix_gives(
    name: str, cache_dir: Path
) -> None:
    adapter = registry.load(registry.entry(name))
    decode = partial(adapter.tokenizer.decode, skip_special_tokens=True)
    ids = adapter.tokenizer("A white car 🚗 drives ahead.\n\n2 lanes, wet;  no one walks.")[
        "input_ids"
    ]
    text, ends = adapter.text(ids), text_ends(decode, ids)
    known = [adapter.text(ids[:place]) for place in range(1, len(ids) + 1)]
    whole = [not prefix.endswith(UNFINISHED) for prefix in known]
    pairs = [(text[:end], prefix) for end, prefix in zip(ends, known, strict=True)]
    assert all(
        mine.strip() == prefix for (mine, prefix), good in zip(pairs, whole, strict=True) if good
    )
    assert ends[-1] == len(text) and list(ends) == sorted(ends) and sum(whole) > 15
