"""The text that is known after each token."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.pipeline.run_stages import text_ends

WORDS = {0: "", 1: " A", 2: " road", 3: ",", 4: " wet", 5: "\n"}


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
