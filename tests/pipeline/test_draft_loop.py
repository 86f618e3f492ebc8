"""The drafted answer is the target's greedy answer, whatever is drafted; and the tests can fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine.decoding import decode
from engine.decoding.decode import Decoder
from engine.decoding.generation_rules import AnswerRules
from engine.errors import BadInput
from engine.pipeline import draft_loop
from engine.pipeline.draft_loop import DraftedAnswer, ModelDrafter, PromptLookup, generate
from engine.types import DecodeConfig

pytestmark = pytest.mark.loads

VOCABULARY, HIDDEN, EOS = 17, 16, 2
CONFIGS = (
    DecodeConfig(max_new_tokens=24),
    DecodeConfig(max_new_tokens=13, min_new_tokens=9),
    DecodeConfig(max_new_tokens=2),
)


def tiny(seed: int, loud: float = 3.0, vocabulary: int = VOCABULARY) -> LlamaForCausalLM:
    """A language model of a few hundred random weights; few ids, so that drafts are often right."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
    )
    model = LlamaForCausalLM(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.copy_(torch.randn(weight.shape, generator=generator) * loud / HIDDEN**0.5)
    return model


def decoder_of(model: LlamaForCausalLM, eos: tuple[int, ...] = (EOS,)) -> Decoder:
    return Decoder(model.model, model.lm_head, model.config, eos)


def prompt(seed: int, length: int = 7) -> torch.Tensor:
    return torch.randn((1, length, HIDDEN), generator=torch.Generator().manual_seed(seed))


def of(decoder: Decoder, config: DecodeConfig) -> AnswerRules:
    return AnswerRules(config, decoder.eos_ids)


@torch.inference_mode()
def alone(target: Decoder, embeds: torch.Tensor, config: DecodeConfig) -> tuple[list[int], str]:
    return decode.generate(target, embeds, of(target, config), lambda _: None, lambda: False)


@torch.inference_mode()
def drafted(
    target: Decoder,
    embeds: torch.Tensor,
    config: DecodeConfig,
    drafter: Any,
    gamma: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> DraftedAnswer:
    seen: list[int] = []
    rules = of(target, config)
    found = generate(target, embeds, rules, drafter, gamma, seen.append, cancelled)
    assert seen == found.ids
    assert 1 + sum(cycle.tokens for cycle in found.cycles) == len(found.ids)
    assert found.draft_ms >= 0 and (found.target_ms > 0) == bool(found.cycles)
    return found


@dataclass
class Endless:
    """A target that never ends its answer, asked for `most` tokens."""

    seed: int = 0
    most: int = 25

    def __post_init__(self) -> None:
        self.target, self.embeds = decoder_of(tiny(self.seed), ()), prompt(self.seed)
        self.config = DecodeConfig(max_new_tokens=self.most)
        self.ids = alone(self.target, self.embeds, self.config)[0]

    def drafted(self, drafter: Any, gamma: int, **more: Any) -> DraftedAnswer:
        return drafted(self.target, self.embeds, self.config, drafter, gamma, **more)


class Answer:
    """Drafts from a known answer, each id changed by `change`."""

    def __init__(self, answer: Sequence[int], change: Callable[[int], int] = lambda i: i) -> None:
        self._answer, self._change = list(answer), change

    def draft(self, ids: Sequence[int], most: int) -> list[int]:
        return [self._change(i) for i in self._answer[len(ids) : len(ids) + most]]


def test_a_model_that_drafts_for_itself_is_always_right() -> None:
    asked = Endless(1)
    with torch.inference_mode():
        own = ModelDrafter(asked.target, asked.embeds, of(asked.target, asked.config))
    found = asked.drafted(own, 5)
    assert all(cycle.accepted == len(cycle.drafted) for cycle in found.cycles)


def test_an_end_inside_a_draft_ends_the_answer_there() -> None:
    asked = Endless(3, 30)
    ids = asked.ids
    place = next(i for i in range(2, 20) if ids[i] not in ids[:i])
    target = decoder_of(tiny(3), (ids[place],))
    found = drafted(target, asked.embeds, asked.config, Answer(ids), 8)
    assert found.ids == ids[: place + 1] and found.stop == "eos"
    assert found.cycles[-1].tokens == found.cycles[-1].accepted < len(found.cycles[-1].drafted)


def test_no_more_is_drafted_than_may_still_be_said() -> None:
    found = Endless(4, 4).drafted(Answer([1] * 40), 8)
    assert len(found.ids) == 4 and found.stop == "length"
    assert all(len(cycle.drafted) <= 2 for cycle in found.cycles)


def test_an_id_that_the_target_has_no_row_for_ends_the_draft() -> None:
    asked = Endless(4, 9)
    ids = asked.ids
    odd = [*ids[:3], VOCABULARY, -200, *ids[5:]]
    found = asked.drafted(Answer(odd), 8)
    assert found.ids == ids and found.cycles[0].drafted == tuple(ids[1:3])


def test_an_id_that_the_drafter_has_no_row_for_ends_its_drafts() -> None:
    """A drafter with fewer ids than its target, as EventGPT beside Video-LLaVA."""
    config, embeds = DecodeConfig(24, 24), prompt(0)
    target = decoder_of(tiny(0))
    expected = alone(target, embeds, config)[0]
    few = max(set(expected) - {max(expected)}) + 1  # all but the largest id that is said
    assert 0 < expected.index(max(expected)) < len(expected) - 2
    small = decoder_of(tiny(1, vocabulary=few))
    drafter = ModelDrafter(small, embeds, of(small, config))
    found = drafted(target, embeds, config, drafter, 3)
    assert found.ids == expected
    drafts = [len(cycle.drafted) for cycle in found.cycles]
    assert drafts[0] > 0 and drafts[-2:] == [0, 0]


def test_cancelled_between_two_passes() -> None:
    answers = iter([False, True])
    found = Endless().drafted(PromptLookup([]), 3, cancelled=lambda: next(answers))
    assert found.stop == "cancelled" and len(found.cycles) == 1


def test_sampling_is_refused_in_a_sentence() -> None:
    config = DecodeConfig(temperature=0.7)
    with pytest.raises(BadInput, match=r"greedy, but temperature is 0\.7: set it to 0"):
        drafted(decoder_of(tiny(0)), prompt(0), config, PromptLookup([]), 3)


def one_too_many(self: Any, draft: Sequence[int], scores: torch.Tensor) -> int:
    """Takes a rejected token for accepted."""
    accepted = 0
    for place in range(len(draft) + 1):
        token = self.add(scores[place : place + 1])
        if place == len(draft):
            break
        accepted += 1
        if self.ended or token != draft[place]:
            break
    return accepted


def accepts_every_draft(self: Any, draft: Sequence[int], scores: torch.Tensor) -> int:
    """Says what the draft says."""
    for token in draft:
        self.answer.ids.append(token)
        self._on_token(token)
    self.add(scores[-1:])
    return len(draft)


@pytest.mark.parametrize(
    "fault", [one_too_many, accepts_every_draft, "crops nothing", "crops too much"]
)
def test_control_a_faulty_loop_gives_another_answer(
    fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if callable(fault):
        monkeypatch.setattr(draft_loop._Loop, "_accept", fault)
    else:
        crop, more = draft_loop.crop, {"crops nothing": None, "crops too much": 1}[fault]
        monkeypatch.setattr(
            draft_loop, "crop", lambda cache, count: more and crop(cache, count + more)
        )
    different = 0
    for seed in range(8):
        asked = Endless(seed, 24)
        wrong = Answer(asked.ids, lambda i: i if i % 3 else (i + 1) % VOCABULARY)
        different += asked.drafted(wrong, 4).ids != asked.ids
    assert different > 4


def test_a_drafters_cache_is_cut_back_to_what_was_said() -> None:
    small, embeds = decoder_of(tiny(5), ()), prompt(5)
    config = DecodeConfig(max_new_tokens=30)
    with torch.inference_mode():
        used, fresh = (ModelDrafter(small, embeds, of(small, config)) for _ in range(2))
        used.draft([1], 6)
        used.draft([1, 9, 9], 6)
        assert used.draft([1, 8], 6) == fresh.draft([1, 8], 6)
        assert used._cache.get_seq_length() == embeds.shape[1] + len(used._read)


def test_a_margin_tells_a_tie_from_a_difference() -> None:
    asked = Endless(6, 6)
    target, embeds, ids = asked.target, asked.embeds, asked.ids
    given = of(target, asked.config), ("a", "b")
    with torch.inference_mode():
        own = draft_loop.margin(target, embeds, ids, 3, ids[3], *given)
        scores, _ = target.prefill(embeds)
        worst = draft_loop.margin(target, embeds, ids, 0, int(scores.argmin()), *given)
    assert own.tied and own.logits[0] == own.logits[1]
    assert not worst.tied and worst.logits[0] > worst.logits[1]
