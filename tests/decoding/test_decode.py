"""Choosing tokens, and the loop's three ends, on a language model that is a table."""

from types import SimpleNamespace

import pytest
import torch
from transformers import LlamaConfig

from engine.decoding import decode
from engine.decoding.decode import Decoder, choose, generate, generation_config
from engine.decoding.generation_rules import AnswerRules
from engine.types import DecodeConfig

EOS = 3


class Counting(torch.nn.Module):
    """After token n it says n + 1."""

    def forward(self, input_ids=None, inputs_embeds=None, past_key_values=None, use_cache=True):  # type: ignore[no-untyped-def]
        token = input_ids if input_ids is not None else torch.zeros((1, 1), dtype=torch.long)
        return SimpleNamespace(last_hidden_state=torch.eye(8)[(token + 1) % 8])


@pytest.fixture
def decoder() -> Decoder:
    head = torch.nn.Linear(8, 8, bias=False)
    torch.nn.init.eye_(head.weight)
    return Decoder(Counting(), head, LlamaConfig(num_hidden_layers=1), (EOS,))


def loop(decoder: Decoder, cancelled: object = lambda: False, **options: int) -> tuple[object, ...]:
    seen: list[int] = []
    rules = AnswerRules(DecodeConfig(**options), (EOS,))
    with torch.inference_mode():
        ids, stop = generate(decoder, torch.zeros(1, 2, 8), rules, seen.append, cancelled)
    assert seen == ids
    return ids, stop


def test_ends_at_eos_and_counts_it(decoder: Decoder) -> None:
    assert loop(decoder, max_new_tokens=20) == ([1, 2, EOS], "eos")


def test_ends_at_the_limit(decoder: Decoder) -> None:
    assert loop(decoder, max_new_tokens=2) == ([1, 2], "length")


def test_an_eos_at_the_limit_is_an_eos(decoder: Decoder) -> None:
    assert loop(decoder, max_new_tokens=3) == ([1, 2, EOS], "eos")


def test_ends_between_two_tokens_when_cancelled(decoder: Decoder) -> None:
    answers = iter([False, True])
    assert loop(decoder, lambda: next(answers), max_new_tokens=20) == ([1, 2], "cancelled")


def test_eos_is_held_back_until_the_minimum() -> None:
    scores = torch.tensor([[0.0, 1.0, 9.0]])
    rules = AnswerRules(DecodeConfig(min_new_tokens=2), (2,))
    assert choose(scores.clone(), [0], rules) == 1
    assert choose(scores.clone(), [0, 0], rules) == 2


def test_a_seed_repeats_and_another_differs() -> None:
    rules = AnswerRules(DecodeConfig(temperature=1.0), ())

    def draw(seed: int) -> list[int]:
        torch.manual_seed(seed)
        return [choose(torch.zeros(1, 100), [], rules) for _ in range(8)]

    assert draw(1) == draw(1) != draw(2)


def test_top_p_leaves_out_the_tail() -> None:
    scores = torch.tensor([[5.0, 0.0, 0.0]])
    rules = AnswerRules(DecodeConfig(temperature=1.0, top_p=0.5), ())
    assert {choose(scores.clone(), [], rules) for _ in range(50)} == {0}


def test_a_tiny_top_p_is_greedy() -> None:
    """Even if the second token is nearly as likely."""
    config = DecodeConfig(temperature=1.0, top_p=0.01)
    assert decode.shares(torch.tensor([[0.9, 1.0, 0.0]]), config).tolist() == [[0.0, 1.0, 0.0]]


def test_generation_config_leaves_nothing_to_defaults() -> None:
    greedy = generation_config(AnswerRules(DecodeConfig(), (EOS,)))
    sampled = generation_config(AnswerRules(DecodeConfig(temperature=0.7, top_p=0.9), (EOS,)))
    assert not greedy.do_sample and greedy.eos_token_id == [EOS]
    assert sampled.do_sample and sampled.top_k == 0 and sampled.temperature == 0.7
