"""Speculative decoding: a cheap drafter proposes tokens, and the target checks them in one pass.

The target accepts the drafted tokens up to the first one that differs from its own choice, and adds
its own next token (Leviathan, Kalman and Matias 2023, in the greedy case).  Drafts come from
another model or from prompt lookup (Saxena 2023: find the last n-gram earlier in the text, and
draft the tokens that follow it there).  The answer is always the target's greedy answer, but one
pass over several tokens may round differently from single steps: in 16 bits two nearly equal logits
may swap, so a comparison must check the `margin`.

try_sample() times stage 4 by the target alone and drafted, in alternating pairs; stages 1 to 3 run
once.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Protocol

import torch
from transformers import DynamicCache

from engine import media
from engine.decoding import decode
from engine.decoding.decode import Decoder
from engine.decoding.generation_rules import AnswerRules
from engine.errors import Cancelled
from engine.machine import device
from engine.models.adapter import Adapter
from engine.pipeline import Watcher
from engine.pipeline.drafts import (
    AnswerPiece,
    Cycle,
    Difference,
    DraftRequest,
    SampleTrial,
    State,
    Timing,
    refuse_sampling,
)
from engine.pipeline.run_stages import answer_rules
from engine.timing import Timeline, synchronizer
from engine.types import Sample, Stop

CANCELLED = "The drafting was cancelled."
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
    token_ms: list[float] = field(default_factory=list)  # since its start, if it was timed

    @property
    def timing(self) -> Timing:
        first, last = self.token_ms[0], self.token_ms[-1]
        return Timing(first, last - first, self.draft_ms, self.target_ms)


class PromptLookup:
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
    """Drafts another model's greedy tokens, from its own prompt embeddings [1, S, hidden].  Its KV
    cache follows the target's answer: rejected tokens are removed from it.  The target may have
    more ids (markers and padding of its own); on CUDA, reading one would end the process."""

    def __init__(self, decoder: Decoder, embeds: torch.Tensor, rules: AnswerRules) -> None:
        self._decoder, self._rules = decoder, rules
        self._rows: int = decoder.language_model.get_input_embeddings().num_embeddings  # type: ignore[operator]
        _, self._cache = decoder.prefill(embeds)
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
        return decoder.step(tokens, cache)
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
    """The target's greedy answer to embeds [1, S, hidden], at most `gamma` tokens per draft."""
    refuse_sampling(rules.config)
    scores, cache = target.prefill(embeds)
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
        start = self._now()
        drafted = self._draft(drafter, gamma)
        middle = self._now()
        before = len(self.answer.ids)
        scores = read(self._target, [self.answer.ids[-1], *drafted], self._cache)
        accepted = self._accept(drafted, scores)
        crop(self._cache, len(drafted) - accepted)
        self.answer.draft_ms += middle - start
        self.answer.target_ms += self._now() - middle
        self.answer.cycles.append(Cycle(tuple(drafted), accepted, len(self.answer.ids) - before))

    def _draft(self, drafter: Drafter, gamma: int) -> list[int]:
        """A draft without surplus tokens, cut at the first id outside the target's vocabulary."""
        most = min(gamma, self._rules.config.max_new_tokens - len(self.answer.ids) - 1)
        drafted = drafter.draft(self.answer.ids, most)[:most] if most > 0 else []
        valid = [0 <= token < self._vocabulary for token in drafted]
        return drafted[: valid.index(False)] if False in valid else drafted

    def _accept(self, drafted: Sequence[int], scores: torch.Tensor) -> int:
        """Adds the target's tokens up to the first mismatch; returns the number accepted."""
        for place, token in enumerate(drafted):
            if self.add(scores[place : place + 1]) != token:
                return place
            if self.ended:
                return place + 1
        self.add(scores[len(drafted) :])
        return len(drafted)

    def _now(self) -> float:
        synchronizer(self._target.device)()
        return time.perf_counter() * 1000


def margin(
    decoder: Decoder,
    embeds: torch.Tensor,
    ids: Sequence[int],
    position: int,
    other: int,
    rules: AnswerRules,
    texts: tuple[str, str],
) -> Difference:
    """Compares the answer's token at this position with `other`, both scored by the decoder.
    Rounding explains twice the noise between single steps and one pass."""
    scores, cache = decoder.prefill(embeds)
    steps = [scores[0], *(read(decoder, [token], cache)[0] for token in ids[:position])]
    alone = torch.stack(steps)
    again, cache = decoder.prefill(embeds)
    if position:
        again = torch.cat([again, read(decoder, ids[:position], cache)])
    unit = torch.finfo(next(decoder.head.parameters()).dtype).eps * float(alone.abs().max())
    rounding = 2 * max(float((alone - again).abs().max()), unit)
    last = rules(alone[-1][None], ids[:position])[0]
    logits = (float(last[ids[position]]), float(last[other]))
    return Difference(position, *texts, logits, rounding, abs(logits[0] - logits[1]) <= rounding)


@dataclass(frozen=True, eq=False)
class PreparedModel:
    """A model before stage 4: the prompt's embeddings, the question's ids, the time of stages 1
    to 3, and what decides the answer."""

    adapter: Adapter
    embeds: torch.Tensor
    question: tuple[int, ...]
    ms: float
    shown: str
    rules: AnswerRules
    notes: tuple[str, ...]


def try_sample(
    sample: Sample, request: DraftRequest, target: Adapter, draft: Adapter | None, watcher: Watcher
) -> SampleTrial:
    """Runs a warm-up and then the pairs of one sample; `draft` None means prompt lookup."""
    with device.guard(target.info.name, target.device):
        return _Trial(sample, request, target, draft, watcher).run()


@dataclass
class _Trial:
    sample: Sample
    request: DraftRequest
    adapter: Adapter
    draft_adapter: Adapter | None
    watcher: Watcher

    @torch.inference_mode()
    def run(self) -> SampleTrial:
        target = self._prepare(self.adapter)
        draft = self._prepare(self.draft_adapter) if self.draft_adapter else None
        # Both models have the lower of their limits of new tokens.
        both = [target, *([draft] if draft else [])]
        low = min(both, key=lambda model: model.rules.config.max_new_tokens)
        self.notes, config = low.notes, low.rules.config
        self.target = replace(target, rules=replace(target.rules, config=config))
        self.draft = draft and replace(draft, rules=replace(draft.rules, config=config))
        runs, pairs = self.request.runs, list[tuple[DraftedAnswer, DraftedAnswer]]()
        for index in range(runs + 1):  # the first pair is the warm-up
            self.watcher.round(index, runs + 1)
            # The order alternates, so that a slowing machine affects both alike.
            drafted_first = self._answer(self.target, drafted=True) if index % 2 == 1 else None
            alone_now = self._answer(self.target)
            pairs.append((alone_now, drafted_first or self._answer(self.target, drafted=True)))
        alone, drafted = zip(*pairs[1:], strict=True)
        return self._result(alone, drafted)

    def _prepare(self, adapter: Adapter) -> PreparedModel:
        timeline = Timeline(adapter.device)
        with timeline.span("stages 1 to 3"):
            request = self.request
            shown = media.load(self.sample, adapter.kind, request)
            prepared = adapter.preprocess(shown, request.prompt)
            embeds = adapter.embed(prepared, adapter.encode(prepared))
            assert isinstance(embeds, torch.Tensor)  # other families refuse drafting
        question = tuple(adapter.question_ids(prepared)[0].tolist())
        rules = answer_rules(adapter, prepared, request.decode)
        ms = timeline.spans[0].ms
        return PreparedModel(adapter, embeds, question, ms, adapter.shown(shown), *rules)

    def _answer(self, model: PreparedModel, drafted: bool = False) -> DraftedAnswer:
        timeline, times = Timeline(model.adapter.device), list[float]()
        given, stop = (model.adapter.decoder, model.embeds, model.rules), self.watcher.cancelled

        def on_token(_: int) -> None:
            times.append(timeline.now())

        if drafted:
            drafter: Drafter = PromptLookup(model.question)
            if (draft := self.draft) is not None:
                drafter = ModelDrafter(draft.adapter.decoder, draft.embeds, draft.rules)
            made = generate(*given, drafter, self.request.gamma, on_token, stop)
        else:
            made = DraftedAnswer(*decode.generate(*given, on_token, stop))
        if made.stop == "cancelled":
            raise Cancelled(CANCELLED)
        made.token_ms = times
        return made

    def _result(
        self, alone: Sequence[DraftedAnswer], drafted: Sequence[DraftedAnswer]
    ) -> SampleTrial:
        own = None if self.draft is None else [self._answer(self.draft) for _ in range(3)]
        ids, first = alone[0].ids, drafted[0]
        other = next((answer for answer in drafted if answer.ids != ids), None)
        return SampleTrial(
            sample=self.sample.id,
            text=self.adapter.text(ids),
            ids=tuple(ids),
            cycles=tuple(first.cycles),
            marks=tuple(self._marks(first)),
            alone=tuple(answer.timing for answer in alone),
            drafted=tuple(answer.timing for answer in drafted),
            prepare_ms=(self.target.ms, self.draft.ms if self.draft else 0.0),
            draft_ids=tuple(own[0].ids) if own else None,
            draft_ms=statistics.median(o.timing.steps_ms for o in own) if own else None,
            difference=self._difference(ids, other.ids) if other else None,
            shown=self.target.shown,
            off_script=tuple(  # the models that were not trained on the question
                adapter.info.name
                for adapter in (self.adapter, self.draft_adapter)
                if adapter and adapter.info.off_script(self.request.prompt)
            ),
            notes=self.notes,
        )

    def _difference(self, ids: Sequence[int], other: Sequence[int]) -> Difference:
        """The first difference of two answers; if one is shorter, its end, which is no tie."""
        at = next((i for i, (a, b) in enumerate(zip(ids, other, strict=False)) if a != b), None)
        if at is None:
            at = min(len(ids), len(other))
            ends = ["".join(self.adapter.pieces(answer[at : at + 1])) for answer in (ids, other)]
            return Difference(at, ends[0], ends[1], (0.0, 0.0), 0.0, False)
        decoder, embeds, rules = self.adapter.decoder, self.target.embeds, self.target.rules
        alone, drafted = self.adapter.pieces([ids[at], other[at]])
        return margin(decoder, embeds, ids, at, other[at], rules, (alone, drafted))

    def _marks(self, answer: DraftedAnswer) -> list[AnswerPiece]:
        """The tokens in the order of decoding, with the rejected drafts."""
        marks, place = self._marked(answer.ids[:1], "own"), 1
        for cycle in answer.cycles:
            end = place + cycle.accepted
            marks += self._marked(answer.ids[place:end], "accepted")
            marks += self._marked(cycle.drafted[cycle.accepted :], "rejected")
            marks += self._marked(answer.ids[end : place + cycle.tokens], "own")
            place += cycle.tokens
        return marks

    def _marked(self, ids: Sequence[int], state: State) -> list[AnswerPiece]:
        return [AnswerPiece(piece, state) for piece in self.adapter.pieces(ids)]
