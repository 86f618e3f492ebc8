"""The text that is known after each token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.models import registry
from engine.pipeline.text_ends import text_ends

WORDS = {0: "", 1: " A", 2: " road", 3: ",", 4: " wet", 5: "\n"}
UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # at the end: bytes of a character are missing


class Written:
    """A tokenizer in Python: only its decode() is known."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return self._decode(ids)


BY_WORDS = Written(lambda ids: "".join(WORDS[token] for token in ids))


def shown(text: str, ends: Sequence[int]) -> list[str]:
    return [text[start:end] for start, end in pairwise((0, *ends))]


def test_each_token_adds_its_own_text_and_the_end_adds_none() -> None:
    ends = text_ends(BY_WORDS, [1, 2, 3, 4, 5, 0])
    assert shown("A road, wet", ends) == ["A", " road", ",", " wet", "", ""]
    assert text_ends(BY_WORDS, []) == () and text_ends(BY_WORDS, [0, 5]) == (0, 0)


def test_a_character_of_several_tokens_appears_with_its_last_one() -> None:
    """Bytes, as tokenizers have them for rare characters."""
    alphabet = {one: number for number, one in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    raw = Tokenizer(models.BPE(alphabet, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    ids = raw.encode("a🚗b").ids
    ends = text_ends(PreTrainedTokenizerFast(tokenizer_object=raw), ids)
    assert shown("a🚗b", ends) == ["a", "", "", "", "🚗", "b"]


def test_a_tokenizer_that_changes_earlier_text_loses_no_character() -> None:
    """ "do n't" is cleaned up to "don't": the parts do not add up to the whole text."""
    raw = Tokenizer(models.WordLevel({"do": 0, "n't": 1, "go": 2}, unk_token="do"))
    raw.decoder = decoders.WordPiece(cleanup=True)
    cleaned = PreTrainedTokenizerFast(tokenizer_object=raw)
    assert cleaned.decode([0, 1, 2]) == "don't go"
    assert shown("don't go", text_ends(cleaned, [0, 1, 2])) == ["do", "n't", " go"]


@pytest.mark.loads
@pytest.mark.parametrize("name", ["eventgpt-demo", "video-llava-demo", "qwen2.5-vl-demo"])
def test_the_shipped_tokenizers_give_what_the_whole_prefix_gives(
    name: str, cache_dir: Path
) -> None:
    adapter = registry.load(registry.entry(name))
    ids = adapter.tokenizer("A white car 🚗 drives ahead.\n\n2 lanes, wet;  no one walks.")[
        "input_ids"
    ]
    text, ends = adapter.text(ids), text_ends(adapter.tokenizer, ids)
    known = [adapter.text(ids[:place]) for place in range(1, len(ids) + 1)]
    whole = [not prefix.endswith(UNFINISHED) for prefix in known]
    pairs = [(text[:end], prefix) for end, prefix in zip(ends, known, strict=True)]
    assert all(
        mine.strip() == prefix for (mine, prefix), good in zip(pairs, whole, strict=True) if good
    )
    assert ends[-1] == len(text) and list(ends) == sorted(ends) and sum(whole) > 15
