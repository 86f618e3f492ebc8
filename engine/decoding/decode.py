"""Stage 4: prefill, one token, the loop.

Boundary: takes a prompt whose features are in place and gives token ids; knows no pictures and no
text.  A `Decoder` takes embeddings [1, S, hidden]; a `WholeModel` calls the model's own forward(),
which computes positions and masks that a family has of its own.
Choosing a token follows transformers' generate() step by step (float32 scores, minimum length,
temperature, top-p, softmax, one draw from torch's global generator), so that equal scores and an
equal seed give equal tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        self, prompt: Prompt, past: DynamicCache | None
    ) -> tuple[torch.Tensor, DynamicCache]:
        """As the function prefill()."""
        cache = llama.cache(self.text_config) if past is None else past
        out = self.language_model(inputs_embeds=prompt, past_key_values=cache, use_cache=True)
        return self.head(out.last_hidden_state[:, -1]).float(), cache

    def step(self, token: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
        """As the function step()."""
        if self.llama is not None and self.llama.takes(token, cache):
            hidden = self.llama.token(token, cache)
        else:
            out = self.language_model(input_ids=token, past_key_values=cache, use_cache=True)
            hidden = out.last_hidden_state
        scores: torch.Tensor = self.head(hidden[:, -1]).float()
        return scores


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """A prompt as keyword arguments of a model's own forward(), with `input_ids` [1, S]."""

    values: Mapping[str, Any]


Prompt = torch.Tensor | ModelInputs


@dataclass(frozen=True, eq=False)
class WholeModel(Decoder):
    """A decoder that calls the model's own forward() for the prefill and for every token.

    The model keeps what later steps need besides the cache (the rope deltas of M-RoPE), so one
    answer must end before the next one begins.
    """

    model: Any

    def prefill(
        self, prompt: Prompt, past: DynamicCache | None
    ) -> tuple[torch.Tensor, DynamicCache]:
        assert isinstance(prompt, ModelInputs)
        cache = self._empty() if past is None else past
        out = self.model(**prompt.values, past_key_values=cache, use_cache=True)
        return out.logits[:, -1].float(), out.past_key_values

    def step(self, token: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
        out = self.model(input_ids=token, past_key_values=cache, use_cache=True)
        scores: torch.Tensor = out.logits[:, -1].float()
        return scores

    def _empty(self) -> DynamicCache | None:
        """A cache that grows without copies; None if the model must create one of its own kind."""
        made = llama.cache(self.text_config)
        return made if all(isinstance(one, llama.RoomyLayer) for one in made.layers) else None


def prefill(
    decoder: Decoder, prompt: Prompt, past: DynamicCache | None = None
) -> tuple[torch.Tensor, DynamicCache]:
    """prompt -> (scores for the first new token [1, vocabulary], filled cache).

    `past` is the cache of the tokens before the prompt; it is extended.
    """
    return decoder.prefill(prompt, past)


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
    return decoder.step(token, cache)


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
    prompt: Prompt,
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
    scores, kept = prefill(decoder, prompt, past)
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
