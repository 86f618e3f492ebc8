"""Stage 4: prefill, one token, the loop.

It takes a prompt whose features are in place and gives token ids; it knows no pictures and no text.
A `Decoder` takes embeddings [1, S, hidden]; a `WholeModel` calls the model's own forward(),
which computes positions and masks that a family has of its own.
Choosing a token follows transformers' generate() step by step (float32 scores, minimum length,
temperature, top-p, softmax, one draw from torch's global generator), so that equal scores and an
equal seed give equal tokens.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from transformers import (
    DynamicCache,
    GenerationConfig,
    LogitsProcessor,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation import BaseStreamer, StoppingCriteriaList

from engine.decoding import llama
from engine.decoding.generation_rules import AnswerRules
from engine.errors import NotFinite
from engine.types import DecodeConfig, Stop

# Its name from 5.24 on is `cache`; older versions know this one alone, which goes in 5.40.
warnings.filterwarnings("ignore", "`past_key_values` is deprecated", FutureWarning)


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

    def prefill(self, prompt: Prompt) -> tuple[torch.Tensor, DynamicCache]:
        """prompt -> (scores for the first new token [1, vocabulary], filled cache)."""
        cache = llama.cache(self.text_config)
        out = self.language_model(inputs_embeds=prompt, past_key_values=cache, use_cache=True)
        return self.head(out.last_hidden_state[:, -1]).float(), cache

    def step(self, token: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
        """token [B, 1] -> scores for the next one [B, vocabulary]; the cache grows by one."""
        if self.llama is not None and self.llama.takes(token, cache):
            hidden = self.llama.token(token, cache)
        else:
            out = self.language_model(input_ids=token, past_key_values=cache, use_cache=True)
            hidden = out.last_hidden_state
        scores: torch.Tensor = self.head(hidden[:, -1]).float()
        return scores


# Embeddings [1, S, hidden], or arguments of a model's own forward(), with `input_ids` [1, S].
Prompt = torch.Tensor | dict[str, Any]


@dataclass(frozen=True, eq=False)
class WholeModel(Decoder):
    """A decoder that calls the model's own forward() for the prefill and for every token.  The
    model keeps what later steps need besides the cache (the rope deltas of M-RoPE), so one answer
    must end before the next one begins."""

    model: Any

    def prefill(self, prompt: Prompt) -> tuple[torch.Tensor, DynamicCache]:
        assert isinstance(prompt, dict)
        made = llama.cache(self.text_config)  # grows without copies
        plain = all(isinstance(one, llama.RoomyLayer) for one in made.layers)
        past = made if plain else None  # the model creates one of its own kind
        out = self.model(**prompt, past_key_values=past, use_cache=True)
        return out.logits[:, -1].float(), out.past_key_values

    def step(self, token: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
        out = self.model(input_ids=token, past_key_values=cache, use_cache=True)
        scores: torch.Tensor = out.logits[:, -1].float()
        return scores


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


def choose(scores: torch.Tensor, ids: list[int], rules: AnswerRules) -> int:
    """scores [1, vocabulary] after these new ids -> the next token's id."""
    return int(chosen(scores, ids, rules))


def chosen(
    scores: torch.Tensor,
    ids: list[int],
    rules: AnswerRules,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """The same on the device, [1]; drawn with this generator instead of torch's global one."""
    config, scores = rules.config, rules(scores, ids)
    if len(ids) < config.min_new_tokens:
        for end in rules.eos_ids:
            scores[:, end] = -torch.inf
    if config.greedy:
        return scores.argmax(dim=-1)
    return torch.multinomial(shares(scores, config), 1, generator=generator)[0]


def shares(scores: torch.Tensor, config: DecodeConfig) -> torch.Tensor:
    """scores [1, vocabulary] -> the probabilities with which a token is drawn."""
    empty = torch.empty((len(scores), 0), dtype=torch.long)
    if config.temperature != 1.0:
        scores = TemperatureLogitsWarper(config.temperature)(empty, scores)
    if config.top_p < 1.0:
        scores = TopPLogitsWarper(config.top_p)(empty, scores)
    return torch.softmax(scores, dim=-1)


def generate(
    decoder: Decoder,
    prompt: Prompt,
    rules: AnswerRules,
    on_token: Callable[[int], None],
    cancelled: Callable[[], bool],
    steps: Any = None,
) -> tuple[list[int], Stop]:
    """New token ids (with EOS) and why they stop; `steps`: a compiled step, None: the eager."""
    ids = list[int]()
    scores, kept = decoder.prefill(prompt)
    refuse_non_finite(scores)
    token = choose(scores, ids, rules)
    if steps is not None:
        steps.start(kept, rules)
    while True:
        ids.append(token)
        on_token(token)
        if token in rules.eos_ids:
            return ids, "eos"
        if len(ids) == rules.config.max_new_tokens:
            return ids, "length"
        if cancelled():
            return ids, "cancelled"
        if steps is not None:
            token = steps.next(ids)
        else:
            last = torch.tensor([[token]], device=decoder.device)
            token = choose(decoder.step(last, kept), ids, rules)


def generation_config(rules: AnswerRules) -> GenerationConfig:
    """The same for a model's own generate(): with the checkpoint's rules only, not the
    checkpoint's other settings."""
    config = rules.config
    drawn = {"temperature": config.temperature, "top_p": config.top_p, "top_k": 0}
    return GenerationConfig(
        max_new_tokens=config.max_new_tokens,
        do_sample=not config.greedy,
        eos_token_id=list(rules.eos_ids),
        pad_token_id=rules.eos_ids[0],
        **rules.options(),
        **({} if config.greedy else drawn),
    )


def own_options(
    rules: AnswerRules, on_token: Callable[[int], None], cancelled: Callable[[], bool]
) -> dict[str, Any]:
    """Keyword arguments with which a model's own generate() does what generate() does here."""
    return {
        "generation_config": generation_config(rules),
        "streamer": TokenStreamer(on_token),
        "stopping_criteria": ended_by(cancelled),
        "logits_processor": [FirstScores()],
    }


class FirstScores(LogitsProcessor):
    """Refuses scores that are not finite at the first token; does not change scores."""

    def __init__(self) -> None:
        self._looked = False

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if not self._looked:
            self._looked = True
            refuse_non_finite(scores)
        return scores


class TokenStreamer(BaseStreamer):
    """Passes on each new token of generate(); the first call of put() holds the prompt."""

    def __init__(self, on_token: Callable[[int], None]) -> None:
        self._on_token = on_token
        self._prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        for token in value.flatten().tolist():
            self._on_token(token)

    def end(self) -> None: ...


def ended_by(cancelled: Callable[[], bool]) -> StoppingCriteriaList:
    """What ends a model's own generate() between two tokens when `cancelled` returns True."""

    def ended(input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return input_ids.new_full(input_ids.shape[:1], cancelled(), dtype=torch.bool)

    return StoppingCriteriaList([ended])
