"""Speculative decoding: a cheap drafter proposes tokens, and the target checks them in one pass.

The target accepts the drafted tokens up to the first one that differs from its own choice, and adds
its own next token (Leviathan, Kalman and Matias 2023, in the greedy case).  The answer is always
the target's greedy answer; the draft only changes the number of passes.  Drafts come from another
model or from prompt lookup (Saxena 2023: find the last n-gram earlier in the text, and draft the
tokens that follow it there).

One pass over several tokens may round differently from single steps.  In float32 the answers are
equal; in 16 bits two nearly equal logits may swap, so a comparison must check the `margin`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Protocol

import torch
from transformers import DynamicCache

from engine.analysis.drafting import Cycle, refuse_sampling
from engine.decoding import decode
from engine.decoding.decode import Decoder
from engine.decoding.generation_rules import AnswerRules
from engine.timing import synchronizer
from engine.types import Stop

NGRAM = 3  # length in ids of the longest n-gram that a lookup searches for


class Drafter(Protocol):
    def draft(self, ids: Sequence[int], most: int) -> list[int]:
        """Proposes at most `most` ids to follow `ids`, the answer so far (at least one id)."""


@dataclass
class DraftedAnswer:
    """An answer, its cycles, and the milliseconds of drafting and of the target's passes."""

    ids: list[int] = field(default_factory=list)
    stop: Stop = "length"
    cycles: list[Cycle] = field(default_factory=list)
    draft_ms: float = 0.0
    target_ms: float = 0.0


class PromptLookup:
    """Drafts from the question's ids and the answer so far."""

    def __init__(self, prompt: Sequence[int], longest: int = NGRAM) -> None:
        self._prompt, self._longest = list(prompt), longest

    def draft(self, ids: Sequence[int], most: int) -> list[int]:
        text = [*self._prompt, *ids]
        for size in range(min(self._longest, len(text) - 1), 0, -1):
            tail = text[-size:]
            for start in range(len(text) - size - 1, -1, -1):  # the latest match first
                if text[start : start + size] == tail:
                    return text[start + size : start + size + most]
        return []


class ModelDrafter:
    """Drafts another model's greedy tokens, from its own prompt embeddings [1, S, hidden].

    Its KV cache follows the target's answer: rejected tokens are removed from it.  The target may
    have more ids (markers and padding of its own); on CUDA, reading one would end the process.
    """

    def __init__(self, decoder: Decoder, embeds: torch.Tensor, rules: AnswerRules) -> None:
        self._decoder, self._rules = decoder, rules
        self._rows: int = decoder.language_model.get_input_embeddings().num_embeddings  # type: ignore[operator]
        _, self._cache = decode.prefill(decoder, embeds)
        self._read: list[int] = []  # new ids in the KV cache

    def draft(self, ids: Sequence[int], most: int) -> list[int]:
        """Nothing once the target has said an id that this model has no embedding for."""
        if max(ids) >= self._rows:
            return []
        pairs = zip(self._read, ids[:-1], strict=False)  # leaves at least one id to read
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        crop(self._cache, len(self._read) - same)
        self._read = self._read[:same]
        scores, drafted = self._advance(ids[same:]), list[int]()
        while True:
            token = decode.choose(scores, [*ids, *drafted], self._rules)
            drafted.append(token)
            if token in self._rules.eos_ids or len(drafted) == most:
                return drafted
            scores = self._advance([token])

    def _advance(self, ids: Sequence[int]) -> torch.Tensor:
        self._read += ids
        return read(self._decoder, ids, self._cache)[-1:]


def read(decoder: Decoder, ids: Sequence[int], cache: DynamicCache) -> torch.Tensor:
    """ids -> scores [ids, vocabulary] of the token after each; the cache grows by all ids."""
    tokens = torch.tensor([list(ids)], device=decoder.device)
    if len(ids) == 1:
        return decode.step(decoder, tokens, cache)
    out = decoder.language_model(input_ids=tokens, past_key_values=cache, use_cache=True)
    scores: torch.Tensor = decoder.head(out.last_hidden_state[0]).float()
    return scores


def crop(cache: DynamicCache, count: int) -> None:
    if count:
        cache.crop(-count)


def generate(
    target: Decoder,
    embeds: torch.Tensor,
    rules: AnswerRules,
    drafter: Drafter,
    gamma: int,
    on_token: Callable[[int], None],
    cancelled: Callable[[], bool],
) -> DraftedAnswer:
    """The target's greedy answer to embeds [1, S, hidden], with at most `gamma` tokens per draft.

    `rules` are the target's; raises BadInput if they sample.  on_token is called for each token.
    """
    refuse_sampling(rules.config)
    scores, cache = decode.prefill(target, embeds)
    decode.refuse_non_finite(scores)
    loop = _Loop(target, rules, cache, on_token, scores.shape[-1])
    loop.add(scores)
    while not loop.ended:
        if cancelled():
            loop.answer.stop = "cancelled"
            break
        loop.cycle(drafter, gamma)
    return loop.answer


@dataclass
class _Loop:
    """The answer so far and the target's KV cache, which lacks only the last token."""

    _target: Decoder
    _rules: AnswerRules
    _cache: DynamicCache
    _on_token: Callable[[int], None]
    _vocabulary: int
    answer: DraftedAnswer = field(default_factory=DraftedAnswer)
    ended: bool = False

    def add(self, scores: torch.Tensor) -> int:
        """Adds the target's next token from scores [1, vocabulary]."""
        ids = self.answer.ids
        token = decode.choose(scores, ids, self._rules)
        ids.append(token)
        self._on_token(token)
        if token in self._rules.eos_ids:
            self.answer.stop, self.ended = "eos", True
        elif len(ids) == self._rules.config.max_new_tokens:
            self.answer.stop, self.ended = "length", True
        return token

    def cycle(self, drafter: Drafter, gamma: int) -> None:
        """One draft and one pass of the target over it."""
        start = self._now()
        drafted = self._draft(drafter, gamma)
        middle = self._now()
        before = len(self.answer.ids)
        scores = read(self._target, [self.answer.ids[-1], *drafted], self._cache)
        accepted = self._accept(drafted, scores)
        crop(self._cache, len(drafted) - accepted)
        self.answer.draft_ms += middle - start
        self.answer.target_ms += self._now() - middle
        added = len(self.answer.ids) - before
        self.answer.cycles.append(Cycle(tuple(drafted), accepted, added))

    def _draft(self, drafter: Drafter, gamma: int) -> list[int]:
        """A draft without surplus tokens, cut at the first id outside the target's vocabulary."""
        room = self._rules.config.max_new_tokens - len(self.answer.ids)
        most = min(gamma, room - 1)
        drafted = drafter.draft(self.answer.ids, most)[:most] if most > 0 else []
        valid = [0 <= token < self._vocabulary for token in drafted]
        return drafted[: valid.index(False)] if False in valid else drafted

    def _accept(self, drafted: Sequence[int], scores: torch.Tensor) -> int:
        """Adds the target's tokens up to the first mismatch; returns the number accepted."""
        accepted = 0
        for place in range(len(drafted) + 1):
            token = self.add(scores[place : place + 1])
            if place == len(drafted) or token != drafted[place]:
                break
            accepted += 1
            if self.ended:
                break
        return accepted

    def _now(self) -> float:
        synchronizer(self._target.device)()
        return time.perf_counter() * 1000


@dataclass(frozen=True)
class Margin:
    """The logits of two tokens at one position of an answer, and the difference that rounding
    explains: twice the noise between single steps and one pass."""

    position: int
    tokens: tuple[int, int]
    logits: tuple[float, float]
    rounding: float

    @property
    def tied(self) -> bool:
        return abs(self.logits[0] - self.logits[1]) <= self.rounding


def margin(
    decoder: Decoder,
    embeds: torch.Tensor,
    ids: Sequence[int],
    position: int,
    other: int,
    rules: AnswerRules,
) -> Margin:
    """Compares the answer's token at this position with `other`, both scored by the decoder."""
    scores, cache = decode.prefill(decoder, embeds)
    steps = [scores[0]]
    for token in ids[:position]:
        steps.append(read(decoder, [token], cache)[0])
    alone = torch.stack(steps)
    again, cache = decode.prefill(decoder, embeds)
    if position:
        again = torch.cat([again, read(decoder, ids[:position], cache)])
    dtype = next(decoder.head.parameters()).dtype
    unit = torch.finfo(dtype).eps * float(alone.abs().max())
    rounding = 2 * max(float((alone - again).abs().max()), unit)
    pair, last = (ids[position], other), rules(alone[-1][None], ids[:position])[0]
    logits = (float(last[pair[0]]), float(last[pair[1]]))
    return Margin(position, pair, logits, rounding)
