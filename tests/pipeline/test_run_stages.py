"""The text known after each token; log-probabilities of letters, against the own forward()."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine import media
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import Watcher, batch_run, run_stages, single_run
from engine.pipeline.run_stages import text_ends
from engine.prompts import choice_question
from engine.storage.result_rows import ResultRow
from engine.types import ChoiceForm, DecodeConfig, RunOptions, RunRequest, RunResult, Sample
from tests import tiny
from tests.conftest import make_sample

CHOICES = ("a car", "a truck", "nothing")
QUESTION = choice_question("What is ahead?", CHOICES)
SHORT = DecodeConfig(max_new_tokens=4)
TINY = ("tiny-eventgpt", "tiny-llava", "tiny-video_llava")
WORDS = {0: "", 1: " A", 2: " road", 3: ",", 4: " wet", 5: "\n"}


def asked(folder: Path, seed: int = 0, form: ChoiceForm = "letters") -> Sample:
    sample = make_sample(folder / "samples", seed)
    return replace(sample, question=QUESTION, choices=CHOICES, choice_form=form, answer="B")


def request(adapter: Adapter, sample: Sample, **options: Any) -> RunRequest:
    chosen = {"decode": SHORT, "cache": "off", **options}
    return RunRequest(sample, adapter.info.name, QUESTION, RunOptions(**chosen))


def go(adapter: Adapter, sample: Sample, **options: Any) -> RunResult:
    return single_run.run(adapter, request(adapter, sample, **options), None)


@pytest.fixture
def adapter(tiny_models: Path) -> Adapter:
    return registry.load(registry.entry("tiny-llava"))


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return asked(tmp_path)


def own_logits(adapter: Adapter, sample: Sample) -> torch.Tensor:
    """The logits [vocabulary] of the model's own generate() for the first new token, unchanged."""
    prepared = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    found: list[torch.Tensor] = []

    class Kept(torch.nn.Module):
        def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            found.append(scores.clone())
            return scores

    with torch.inference_mode():
        one = {"max_new_tokens": 1, "do_sample": False, "pad_token_id": 0}
        adapter.generate(prepared, logits_processor=[Kept()], **one)
    return found[0][0].float()


def expected(adapter: Adapter, sample: Sample) -> dict[str, float]:
    """From the probabilities of all tokens whose text is the letter."""
    probabilities = torch.softmax(own_logits(adapter, sample).double(), dim=-1)
    tokenizer = adapter.tokenizer
    texts = [tokenizer.decode([token]).strip() for token in range(len(tokenizer))]
    return {
        letter: math.log(
            sum(float(probabilities[t]) for t, text in enumerate(texts) if text == letter)
        )
        for letter in "ABC"
    }


@pytest.mark.parametrize("mode", ["decoupled", "hooked"])
@pytest.mark.parametrize("name", TINY)
def test_they_are_those_of_the_models_own_forward(
    tiny_models: Path, tmp_path: Path, name: str, mode: str
) -> None:
    adapter, sample = registry.load(registry.entry(name)), asked(tmp_path)
    found = go(adapter, sample, mode=mode).letter_logprobs
    assert found == pytest.approx(expected(adapter, sample), abs=1e-4)
    other = expected(adapter, asked(tmp_path, seed=9))  # control: another sample has others
    assert found != pytest.approx(other, abs=1e-2)


@pytest.mark.parametrize("name", TINY)
def test_those_of_a_batch_are_those_of_single_runs(
    tiny_models: Path, tmp_path: Path, name: str
) -> None:
    adapter = registry.load(registry.entry(name))
    requests = [request(adapter, asked(tmp_path, seed)) for seed in range(3)]
    together = batch_run.run(adapter, requests, None)
    for one, alone in zip(together, requests, strict=True):
        assert isinstance(one, RunResult) and one.batch is not None
        wanted = single_run.run(adapter, alone, None).letter_logprobs
        assert one.letter_logprobs == pytest.approx(wanted, abs=1e-4)
    values = [one.letter_logprobs["A"] for one in together if isinstance(one, RunResult)]  # type: ignore[index]
    assert len(set(values)) == 3


class Count(Watcher):
    """Counts the calls of modules."""

    def __init__(self, adapter: Adapter) -> None:
        self.vision = self.head = 0
        self.stack = ExitStack()
        for module in adapter.vision_modules():
            self.stack.callback(module.register_forward_hook(self._saw).remove)
        self.stack.callback(adapter.decoder.head.register_forward_hook(self._spoke).remove)

    def _saw(self, *_: Any) -> None:
        self.vision += 1

    def _spoke(self, *_: Any) -> None:
        self.head += 1


@pytest.mark.parametrize("mode", ["decoupled", "hooked"])
@pytest.mark.parametrize("name", TINY[:2])
def test_a_run_is_the_same_without_choices(
    tiny_models: Path, tmp_path: Path, name: str, mode: str
) -> None:
    adapter, sample = registry.load(registry.entry(name)), asked(tmp_path)
    runs = []
    for one in (sample, replace(sample, choices=())):
        count = Count(adapter)
        with count.stack:
            result = single_run.run(adapter, request(adapter, one, mode=mode), None, count)
        runs.append((result, count))
    (with_, first), (without, second) = runs
    assert with_.letter_logprobs is not None and without.letter_logprobs is None
    assert with_.generation.token_ids == without.generation.token_ids
    assert with_.tensors == without.tensors and with_.notes == without.notes
    assert first.vision == second.vision > 0
    assert first.head - second.head == (1 if mode == "decoupled" else 0)


def test_rules_temperature_and_length_do_not_apply(adapter: Adapter, sample: Sample) -> None:
    plain = go(adapter, sample).letter_logprobs
    decode = DecodeConfig(max_new_tokens=4, min_new_tokens=4, temperature=2.0, top_p=0.5, seed=3)
    for mode in ("decoupled", "hooked"):
        found = go(adapter, sample, decode=decode, mode=mode)
        assert found.letter_logprobs == pytest.approx(plain, abs=1e-4)


def test_the_row_has_them(adapter: Adapter, sample: Sample) -> None:
    result = go(adapter, sample)
    row = ResultRow.from_result(result)
    assert row.letter_logprobs == result.letter_logprobs
    assert set(row.letter_logprobs or {}) == {"A", "B", "C"}


def test_tokens_of_letters_with_and_without_a_space() -> None:
    raw = Tokenizer(models.BPE({"A": 0, "B": 1, "Ġ": 2, "ĠA": 3, ":": 4, "AB": 5}, [("Ġ", "A")]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw)
    assert set(run_stages.letter_tokens(tokenizer, "A")) == {0, 3}
    assert run_stages.letter_tokens(tokenizer, "B") == (1,)
    assert run_stages.letter_tokens(tokenizer, "C") == ()  # control


def test_a_tokenizer_without_letters_gives_a_note(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        run_stages, "letter_tokens", lambda _, letter: (7,) if letter == "A" else ()
    )
    result = go(adapter, sample)
    assert result.letter_logprobs is None
    assert run_stages.NO_TOKENS.format(letters="B, C") in result.notes


def test_the_probabilities_of_a_letters_tokens_are_added(
    adapter: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = {"A": (5, 6), "B": (7,), "C": (8, 9)}
    monkeypatch.setattr(run_stages, "letter_tokens", lambda _, letter: tokens[letter])
    chances = torch.full((1, 20), 0.001)
    chances[0, 5:10] = torch.tensor([0.2, 0.3, 0.1, 0.15, 0.15])
    chances[0, 0] = 1 - chances[0, 1:].sum()
    scores = chances.log() + 7
    found = run_stages.letter_logprobs(adapter, request(adapter, sample), lambda: scores, [])
    assert found == pytest.approx({"A": math.log(0.5), "B": math.log(0.1),
                                   "C": math.log(0.3)}, abs=1e-5)  # fmt: skip


@pytest.mark.loads
def test_scores_that_are_unknown_or_excluded_give_a_note(adapter: Adapter, sample: Sample) -> None:
    own = request(adapter, sample)
    excluded = torch.full((1, len(adapter.tokenizer)), -torch.inf)
    excluded[0, 1] = 0.0
    for scores in (None, excluded):
        notes = list[str]()
        found = run_stages.letter_logprobs(adapter, own, lambda scores=scores: scores, notes)
        assert found is None and notes == [run_stages.NO_SCORES]


@pytest.fixture(autouse=True, scope="module")
def _freed() -> Iterator[None]:
    yield
    tiny.unload_all()


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
