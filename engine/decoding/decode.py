"""Stage 4: prefill, one token, the loop.

Boundary: takes embeddings [1, S, hidden] and gives token ids; knows no pictures, prompts or text.
Choosing a token follows transformers' generate() step by step (float32 scores, minimum length,
temperature, top-p, softmax, one draw from torch's global generator), so that equal scores and an
equal seed give equal tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from transformers import (
    DynamicCache,
    GenerationConfig,
    LogitsProcessor,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from engine.decoding import llama
from engine.decoding.generation_rules import AnswerRules, GenerationRules
from engine.errors import NotFinite
from engine.types import DecodeConfig, Stop


@dataclass(frozen=True, eq=False)
class Decoder:
    """The language model without its head, the head, and the ids that end an answer."""

    language_model: torch.nn.Module
    head: torch.nn.Module
    text_config: Any
    eos_ids: tuple[int, ...]

    @cached_property
    def device(self) -> torch.device:
        return next(self.head.parameters()).device

    @cached_property
    def llama(self) -> llama.Llama | None:
        """The language model as plain weights, or None if its own forward() is needed."""
        return llama.read(self.language_model)


def prefill(
    decoder: Decoder, embeds: torch.Tensor, past: DynamicCache | None = None
) -> tuple[torch.Tensor, DynamicCache]:
    """embeds [1, S, hidden] -> (scores for the first new token [1, vocabulary], filled cache).

    `past` is the cache of the tokens before the embeddings; it is extended.
    """
    cache = llama.cache(decoder.text_config) if past is None else past
    out = decoder.language_model(inputs_embeds=embeds, past_key_values=cache, use_cache=True)
    return decoder.head(out.last_hidden_state[:, -1]).float(), cache


def refuse_non_finite(scores: torch.Tensor) -> None:
    """NotFinite if a score is NaN or +infinity; argmax would turn such scores into an answer.

    -infinity is allowed: it excludes tokens.  Only the first token is checked, because the check
    waits for the device.
    """
    if bool((torch.isnan(scores) | torch.isposinf(scores)).any()):
        raise NotFinite(
            "Its logits are not finite (NaN or infinity): copy the checkpoint again, or choose a "
            "dtype with a wider range, such as bfloat16 or float32."
        )


class FirstScores(LogitsProcessor):
    """The same check inside a model's own generate(); does not change scores."""

    def __init__(self) -> None:
        self._looked = False

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if not self._looked:
            self._looked = True
            refuse_non_finite(scores)
        return scores


def step(decoder: Decoder, token: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
    """token [B, 1] -> scores for the next one [B, vocabulary]; the cache grows by one."""
    if decoder.llama is not None and decoder.llama.takes(token, cache):
        hidden = decoder.llama.token(token, cache)
    else:
        out = decoder.language_model(input_ids=token, past_key_values=cache, use_cache=True)
        hidden = out.last_hidden_state
    scores: torch.Tensor = decoder.head(hidden[:, -1]).float()
    return scores


def choose(
    scores: torch.Tensor,
    ids: list[int],
    config: DecodeConfig,
    eos: list[int],
    rules: AnswerRules | None = None,
) -> int:
    """scores [1, vocabulary] -> the next token's id, with the checkpoint's rules, if any."""
    if rules is not None:
        scores = rules(scores, ids)
    if len(ids) < config.min_new_tokens:
        for end in eos:
            scores[:, end] = -torch.inf
    if config.greedy:
        return int(scores.argmax(dim=-1))
    empty = torch.empty((1, 0), dtype=torch.long)
    if config.temperature != 1.0:
        scores = TemperatureLogitsWarper(config.temperature)(empty, scores)
    if config.top_p < 1.0:
        scores = TopPLogitsWarper(config.top_p)(empty, scores)
    return int(torch.multinomial(torch.softmax(scores, dim=-1), 1))


class Steps(Protocol):
    """The steps after the prefill: `start` once, then `next` for every token."""

    def start(
        self, kept: DynamicCache, config: DecodeConfig, rules: AnswerRules | None = None
    ) -> None: ...
    def next(self, ids: list[int]) -> int: ...


class EagerSteps:
    """Computes one step at a time."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder, self._eos = decoder, list(decoder.eos_ids)

    def start(
        self, kept: DynamicCache, config: DecodeConfig, rules: AnswerRules | None = None
    ) -> None:
        self._kept, self._config, self._rules = kept, config, rules

    def next(self, ids: list[int]) -> int:
        """The id that follows these new ones."""
        token = torch.tensor([[ids[-1]]], device=self._decoder.device)
        scores = step(self._decoder, token, self._kept)
        return choose(scores, ids, self._config, self._eos, self._rules)


def generate(
    decoder: Decoder,
    embeds: torch.Tensor,
    config: DecodeConfig,
    on_token: Callable[[int], None],
    cancelled: Callable[[], bool],
    steps: Steps | None = None,
    past: DynamicCache | None = None,
    rules: AnswerRules | None = None,
) -> tuple[list[int], Stop]:
    """New token ids (with EOS) and why they stop.  on_token is called for each token.

    `past` is as in prefill(), `rules` as in choose().
    """
    eos, ids = list(decoder.eos_ids), list[int]()
    scores, kept = prefill(decoder, embeds, past)
    refuse_non_finite(scores)
    token = choose(scores, ids, config, eos, rules)
    steps = steps or EagerSteps(decoder)
    steps.start(kept, config, rules)
    while True:
        ids.append(token)
        on_token(token)
        if token in eos:
            return ids, "eos"
        if len(ids) == config.max_new_tokens:
            return ids, "length"
        if cancelled():
            return ids, "cancelled"
        token = steps.next(ids)


def generation_config(
    config: DecodeConfig,
    eos_ids: tuple[int, ...],
    rules: GenerationRules | None = None,
    context: int = 0,
) -> GenerationConfig:
    """The same settings for a model's own generate() on a prompt of `context` tokens, with the
    checkpoint's rules only, not the checkpoint's other settings."""
    sampling = (
        {}
        if config.greedy
        else {"temperature": config.temperature, "top_p": config.top_p, "top_k": 0}
    )
    return GenerationConfig(
        max_new_tokens=config.max_new_tokens,
        do_sample=not config.greedy,
        eos_token_id=list(eos_ids),
        pad_token_id=eos_ids[0],
        **(rules or GenerationRules()).options(config, context),
        **sampling,
    )
