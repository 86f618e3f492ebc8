"""Answers of a batch against the same prompts alone, and what makes them differ."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.decoding import batched, decode
from engine.decoding.generation_rules import AnswerRules
from engine.errors import NotFinite
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline.single_run import seeded
from engine.types import DecodeConfig

LOADS = pytest.mark.loads
NAMES = (
    "tiny-eventgpt",
    *(pytest.param(f"tiny-{one}", marks=LOADS) for one in ("video_llava", "llava")),
)
LENGTHS = (7, 40, 23, 11, 31)
PAD = batched.pad


@pytest.fixture(params=NAMES)
def adapter(request: pytest.FixtureRequest, tiny_models: Path) -> Adapter:
    return registry.load(registry.entry(request.param))


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


def prompts(adapter: Adapter) -> list[torch.Tensor]:
    """Embeddings [1, S, hidden] of random words, of LENGTHS."""
    draw = random.Random(5)
    embed = adapter.model.get_input_embeddings()
    size = embed.num_embeddings
    ids = [[draw.randrange(5, size) for _ in range(length)] for length in LENGTHS]
    return [embed(torch.tensor([row])) for row in ids]


def alone(adapter: Adapter, some: list[torch.Tensor], config: DecodeConfig) -> list[list[int]]:
    found = []
    for prompt in some:
        with seeded(config.seed, adapter.device):
            rules = AnswerRules(config, decoder(adapter).eos_ids)
            ids, _ = decode.generate(decoder(adapter), prompt, rules, lambda _: None, lambda: False)
        found.append(list(ids))
    return found


def together(adapter: Adapter, some: list[torch.Tensor], config: DecodeConfig) -> list[list[int]]:
    rules = [AnswerRules(config, decoder(adapter).eos_ids)] * len(some)
    answers = batched.generate(decoder(adapter), some, rules, lambda _: None, lambda: False)
    return [answer.ids for answer in answers]


def decoder(adapter: Adapter) -> decode.Decoder:
    """Some ids end an answer that random weights say often: answers end at different steps."""
    found = adapter.decoder
    ends = tuple(range(60, 68))
    return decode.Decoder(found.language_model, found.head, found.text_config, ends)


@pytest.mark.parametrize(
    "config",
    [
        DecodeConfig(max_new_tokens=40),
        DecodeConfig(max_new_tokens=40, min_new_tokens=12),
        DecodeConfig(max_new_tokens=9, min_new_tokens=9),
        DecodeConfig(max_new_tokens=40, temperature=1.0, seed=3),
        DecodeConfig(max_new_tokens=40, temperature=0.7, top_p=0.9, seed=4),
    ],
    ids=["greedy", "minimum", "forced", "sampled", "top-p"],
)
def test_each_answer_is_that_of_its_single_run(adapter: Adapter, config: DecodeConfig) -> None:
    some = prompts(adapter)
    wanted = alone(adapter, some, config)
    assert together(adapter, some, config) == wanted
    if config.min_new_tokens == 0:
        assert len({len(ids) for ids in wanted}) > 2  # they end at different steps


def padded_right(prompts: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    embeds, left, _ = PAD(prompts).values()
    lengths = left.sum(dim=1)
    turn = [torch.roll(row, int(n), 0) for row, n in zip(embeds, lengths, strict=True)]
    mask = torch.stack([torch.roll(m, int(n)) for m, n in zip(left, lengths, strict=True)])
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    return {"inputs_embeds": torch.stack(turn), "attention_mask": mask, "position_ids": positions}


def padding_shown(prompts: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    good = PAD(prompts)
    return good | {"attention_mask": torch.ones_like(good["attention_mask"])}


class PaddingCounted(batched.BatchDecoder):
    """Rotary positions are relative: a shift of all is none, one after the prompt is."""

    def __init__(self, language: decode.Decoder, found: dict[str, torch.Tensor]) -> None:
        super().__init__(language, found)
        self._next = torch.full_like(self._next, found["attention_mask"].shape[1])


@pytest.mark.parametrize(
    ("name", "fault"),
    [("pad", padded_right), ("pad", padding_shown), ("BatchDecoder", PaddingCounted)],
)
def test_a_wrong_padding_gives_other_answers(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch, name: str, fault: Any
) -> None:
    monkeypatch.setattr(batched, name, fault)
    some, config = prompts(adapter), DecodeConfig(max_new_tokens=20)
    assert together(adapter, some, config) != alone(adapter, some, config)


def test_prompts_stand_at_the_right_end() -> None:
    short, long = torch.full((1, 2, 3), 5.0), torch.full((1, 4, 3), 7.0)
    found = batched.pad([short, long])
    assert found["attention_mask"].tolist() == [[0, 0, 1, 1], [1, 1, 1, 1]]
    assert found["position_ids"].tolist() == [[0, 0, 0, 1], [0, 1, 2, 3]]
    assert found["inputs_embeds"][0, :, 0].tolist() == [0, 0, 5, 5]


def test_a_row_that_has_ended_counts_no_tokens(adapter: Adapter) -> None:
    some, steps = prompts(adapter), list[list[int]]()
    rules = [AnswerRules(DecodeConfig(max_new_tokens=40), decoder(adapter).eos_ids)] * len(some)
    answers = batched.generate(decoder(adapter), some, rules, steps.append, lambda: False)
    assert sum(map(len, steps)) == sum(len(answer.ids) for answer in answers)
    assert [len(step) for step in steps] == sorted((len(step) for step in steps), reverse=True)
    assert len(steps) == max(len(answer.ids) for answer in answers)
    for answer in answers:
        ends = [place for place, token in enumerate(answer.ids) if 60 <= token < 68]
        assert ends in ([], [len(answer.ids) - 1])
        assert answer.stop == ("eos" if ends else "length")


def test_cancelled_between_two_steps(adapter: Adapter) -> None:
    looks = iter([False, False, True])
    config = DecodeConfig(max_new_tokens=40, min_new_tokens=40)
    some, rules = prompts(adapter), AnswerRules(config, decoder(adapter).eos_ids)
    answers = batched.generate(
        decoder(adapter), some, [rules] * len(some), lambda _: None, lambda: next(looks)
    )
    assert [(len(answer.ids), answer.stop) for answer in answers] == [(3, "cancelled")] * 5


def test_one_prompt_without_numbers_is_no_batch(adapter: Adapter) -> None:
    some = prompts(adapter)
    some[2] = some[2] * torch.nan
    with pytest.raises(NotFinite):
        together(adapter, some, DecodeConfig(max_new_tokens=3))
