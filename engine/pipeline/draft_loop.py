"""Speculative decoding: something cheap drafts tokens, the target reads them in one pass.

Of a draft the target keeps what it would have said itself, up to the first token that it would not,
and adds one of its own (Leviathan, Kalman and Matias 2023, in the greedy case).  The answer is the
target's greedy answer whatever is drafted; a draft decides only how many passes it takes.  Drafts
come from another model, or from the text so far by prompt lookup (Saxena 2023: the n-gram at the
end is looked for earlier in the text, and what followed it there is the draft).

Boundary: decoders and ids as in decode.py; it knows nothing of pictures, prompts or text.  A pass
over several tokens may round otherwise than one over each: in float32 the answers are equal, in 16
bits two nearly equal logits may change places, which whoever compares has to look at (`margin`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from transformers import DynamicCache

from engine.decoding import decode
from engine.decoding.decode import Decoder
from engine.decoding.generation_rules import AnswerRules
from engine.pipeline.draft_results import Cycle, refuse_sampling
from engine.timing import synchronizer
from engine.types import DecodeConfig, Stop

NGRAM = 3  # ids of the longest tail that a lookup looks for


class Drafter(Protocol):
    def draft(self, ids: Sequence[int], most: int) -> list[int]:
        """At most `most` ids that may follow the new ids so far, of which there is one at least."""


@dataclass
class Drafted:
    """An answer and how it was made; milliseconds are spent drafting and in the target's passes."""

    ids: list[int] = field(default_factory=list)
    stop: Stop = "length"
    cycles: list[Cycle] = field(default_factory=list)
    draft_ms: float = 0.0
    target_ms: float = 0.0


class Lookup:
    """Drafts from the text itself: the question's ids and the answer so far."""

    def __init__(self, prompt: Sequence[int], longest: int = NGRAM) -> None:
        self._prompt, self._longest = list(prompt), longest

    def draft(self, ids: Sequence[int], most: int) -> list[int]:
        text = [*self._prompt, *ids]
        for size in range(min(self._longest, len(text) - 1), 0, -1):
            tail = text[-size:]
            for start in range(len(text) - size - 1, -1, -1):  # the latest place first
                if text[start : start + size] == tail:
                    return text[start + size : start + size + most]
        return []


class ModelDrafter:
    """Another model's greedy tokens, from its own prompt and pictures [1, S, hidden].

    Its cache follows the target's answer: what the target did not say is cut off again.
    """

    def __init__(
        self,
        decoder: Decoder,
        embeds: torch.Tensor,
        config: DecodeConfig,
        rules: AnswerRules | None = None,
    ) -> None:
        self._decoder, self._config, self._rules = decoder, config, rules
        _, self._cache = decode.prefill(decoder, embeds)
        self._read: list[int] = []  # new ids that the cache holds

    def draft(self, ids: Sequence[int], most: int) -> list[int]:
        same = _agreeing(self._read, ids[:-1])  # one is always left to read
        crop(self._cache, len(self._read) - same)
        self._read = self._read[:same]
        scores, drafted = self._advance(ids[same:]), list[int]()
        eos = list(self._decoder.eos_ids)
        while True:
            token = decode.choose(scores, [*ids, *drafted], self._config, eos, self._rules)
            drafted.append(token)
            if token in eos or len(drafted) == most:
                return drafted
            scores = self._advance([token])

    def _advance(self, ids: Sequence[int]) -> torch.Tensor:
        self._read += ids
        return read(self._decoder, ids, self._cache)[-1:]


def _agreeing(one: Sequence[int], two: Sequence[int]) -> int:
    count = 0
    for a, b in zip(one, two, strict=False):
        if a != b:
            break
        count += 1
    return count


def read(decoder: Decoder, ids: Sequence[int], cache: DynamicCache) -> torch.Tensor:
    """ids -> scores [ids, vocabulary] for what follows each; the cache grows by all of them."""
    tokens = torch.tensor([list(ids)], device=decoder.device)
    if len(ids) == 1:
        return decode.step(decoder, tokens, cache)
    out = decoder.language_model(input_ids=tokens, past_key_values=cache, use_cache=True)
    scores: torch.Tensor = decoder.head(out.last_hidden_state[0]).float()
    return scores


def crop(cache: DynamicCache, count: int) -> None:
    """Forgets the last `count` tokens."""
    if count:
        cache.crop(-count)


def generate(
    target: Decoder,
    embeds: torch.Tensor,
    config: DecodeConfig,
    drafter: Drafter,
    gamma: int,
    on_token: Callable[[int], None],
    cancelled: Callable[[], bool],
    rules: AnswerRules | None = None,
) -> Drafted:
    """The target's greedy answer to embeds [1, S, hidden], at most `gamma` tokens drafted at once.

    `rules` are the target's own, as in decode.choose().  BadInput for a config that samples.
    on_token is called for each token, several in a row.
    """
    refuse_sampling(config)
    scores, cache = decode.prefill(target, embeds)
    decode.refuse_non_finite(scores)
    loop = _Loop(target, config, cache, on_token, scores.shape[-1], rules)
    loop.add(scores)
    while not loop.ended:
        if cancelled():
            loop.found.stop = "cancelled"
            break
        loop.cycle(drafter, gamma)
    return loop.found


class _Loop:
    """The answer so far and the target's cache, which holds all of it but the last token."""

    def __init__(
        self,
        target: Decoder,
        config: DecodeConfig,
        cache: DynamicCache,
        on_token: Callable[[int], None],
        known: int,
        rules: AnswerRules | None,
    ) -> None:
        self._rules = rules
        self.found, self.ended = Drafted(), False
        self._target, self._config, self._cache, self._on_token = target, config, cache, on_token
        self._eos = list(target.eos_ids)
        self._known = known
        self._sync = synchronizer(target.device)

    def add(self, scores: torch.Tensor) -> int:
        """The target's next token from scores [1, vocabulary]."""
        ids = self.found.ids
        token = decode.choose(scores, ids, self._config, self._eos, self._rules)
        ids.append(token)
        self._on_token(token)
        if token in self._eos:
            self.found.stop, self.ended = "eos", True
        elif len(ids) == self._config.max_new_tokens:
            self.found.stop, self.ended = "length", True
        return token

    def cycle(self, drafter: Drafter, gamma: int) -> None:
        """One draft and one pass of the target over it."""
        start = self._now()
        drafted = self._draft(drafter, gamma)
        middle = self._now()
        before = len(self.found.ids)
        scores = read(self._target, [self.found.ids[-1], *drafted], self._cache)
        accepted = self._judge(drafted, scores)
        crop(self._cache, len(drafted) - accepted)
        self.found.draft_ms += middle - start
        self.found.target_ms += self._now() - middle
        added = len(self.found.ids) - before
        self.found.cycles.append(Cycle(tuple(drafted), accepted, added))

    def _draft(self, drafter: Drafter, gamma: int) -> list[int]:
        """No more than can be used, and up to the first id that the target has no row for."""
        most = min(gamma, self._config.max_new_tokens - len(self.found.ids) - 1)
        drafted = drafter.draft(self.found.ids, most)[:most] if most > 0 else []
        known = [0 <= token < self._known for token in drafted]
        return drafted[: known.index(False)] if False in known else drafted

    def _judge(self, drafted: Sequence[int], scores: torch.Tensor) -> int:
        """Adds what the target says, for as long as the draft says so too; how long that was."""
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
        self._sync()
        return time.perf_counter() * 1000


@dataclass(frozen=True)
class Margin:
    """Two tokens at one place of an answer: how far apart their logits lie, and what rounding
    explains there: twice the noise between token by token and one pass."""

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
    rules: AnswerRules | None = None,
) -> Margin:
    """The answer's own token at this position against another, as the decoder alone sees both."""
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
    pair, last = (ids[position], other), alone[-1]
    if rules is not None:
        last = rules(last[None], ids[:position])[0]
    found = (float(last[pair[0]]), float(last[pair[1]]))
    return Margin(position, pair, found, rounding)
