"""One sample's answer, by the target alone and drafted, timed in alternating pairs.

Stages 1 to 3 run once, stage 4 repeatedly; neither features nor prefixes are cached.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from engine import media
from engine.analysis.drafting import (
    AnswerPiece,
    Cycle,
    Difference,
    DraftRequest,
    SampleTrial,
    State,
    Timing,
)
from engine.decoding import decode
from engine.decoding.generation_rules import AnswerRules
from engine.errors import Cancelled
from engine.machine import memory
from engine.models.adapter import Adapter
from engine.pipeline import draft_loop
from engine.pipeline.draft_loop import DraftedAnswer, Drafter, ModelDrafter, PromptLookup
from engine.pipeline.run_stages import answer_rules
from engine.pipeline.watcher import DraftWatcher
from engine.timing import Timeline
from engine.types import Sample, pixels_of

CANCELLED = "The drafting was cancelled."


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


@dataclass(frozen=True)
class TimedAnswer:
    """An answer and its times."""

    ids: tuple[int, ...]
    timing: Timing
    cycles: tuple[Cycle, ...]


def try_sample(
    sample: Sample,
    request: DraftRequest,
    target: Adapter,
    draft: Adapter | None,
    watcher: DraftWatcher,
) -> SampleTrial:
    """Runs a warm-up and then the pairs of one sample; `draft` None means prompt lookup.

    `draft` must share the target's vocabulary (refuse_other_vocabulary).  Raises BadInput (or its
    MediaError) for an unusable sample, Cancelled between two tokens.
    """
    with memory.guard(target.info.name, target.device):
        return _Trial(sample, request, target, draft, watcher).run()


@dataclass
class _Trial:
    """The state of one trial: the sample and both models."""

    sample: Sample
    request: DraftRequest
    adapter: Adapter
    draft_adapter: Adapter | None
    watcher: DraftWatcher

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
        runs, pairs = self.request.runs, list[tuple[TimedAnswer, TimedAnswer]]()
        for index in range(runs + 1):  # the first pair is the warm-up
            self.watcher.round(index, runs + 1)
            pairs.append(self._pair(index % 2 == 1))
        alone, drafted = zip(*pairs[1:], strict=True)
        return self._result(alone, drafted)

    def _prepare(self, adapter: Adapter) -> PreparedModel:
        timeline = Timeline(adapter.device)
        with timeline.span("stages 1 to 3"):
            request = self.request
            shown = media.load(self.sample, adapter.kind, request)
            setting = pixels_of(adapter.info.name) or request.pixels
            prepared = adapter.preprocess(shown, request.prompt, setting)
            embeds = adapter.embed(prepared, adapter.encode(prepared))
            assert isinstance(embeds, torch.Tensor)  # other families refuse drafting
        question = tuple(adapter.question_ids(prepared)[0].tolist())
        rules = answer_rules(adapter, prepared, request.decode)
        ms = timeline.spans[0].ms
        return PreparedModel(adapter, embeds, question, ms, adapter.shown(shown), *rules)

    def _pair(self, drafted_first: bool) -> tuple[TimedAnswer, TimedAnswer]:
        """Alone and drafted; the order alternates, so that a slowing machine affects both alike."""
        drafted = self._drafted() if drafted_first else None
        return self._alone(self.target), drafted or self._drafted()

    def _alone(self, ready: PreparedModel) -> TimedAnswer:
        given = ready.adapter.decoder, ready.embeds, ready.rules
        return self._timed(
            ready,
            lambda on_token: DraftedAnswer(
                *decode.generate(*given, on_token, self.watcher.cancelled)
            ),
        )

    def _drafted(self) -> TimedAnswer:
        ready, draft = self.target, self.draft

        def answer(on_token: Callable[[int], None]) -> DraftedAnswer:
            drafter: Drafter = PromptLookup(ready.question)
            if draft is not None:
                drafter = ModelDrafter(draft.adapter.decoder, draft.embeds, draft.rules)
            return draft_loop.generate(
                ready.adapter.decoder,
                ready.embeds,
                ready.rules,
                drafter,
                self.request.gamma,
                on_token,
                self.watcher.cancelled,
            )

        return self._timed(ready, answer)

    @staticmethod
    def _timed(
        ready: PreparedModel, answer: Callable[[Callable[[int], None]], DraftedAnswer]
    ) -> TimedAnswer:
        """The result of `answer`, and the times of its tokens in ms since its start."""
        timeline, times = Timeline(ready.adapter.device), list[float]()
        made = answer(lambda _: times.append(timeline.now()))
        if made.stop == "cancelled":
            raise Cancelled(CANCELLED)
        timing = Timing(times[0], times[-1] - times[0], made.draft_ms, made.target_ms)
        return TimedAnswer(tuple(made.ids), timing, tuple(made.cycles))

    def _result(self, alone: Sequence[TimedAnswer], drafted: Sequence[TimedAnswer]) -> SampleTrial:
        own = None if self.draft is None else [self._alone(self.draft) for _ in range(3)]
        ids, first = alone[0].ids, drafted[0]
        other = next((answer for answer in drafted if answer.ids != ids), None)
        return SampleTrial(
            sample=self.sample.id,
            text=self.adapter.text(ids),
            ids=ids,
            cycles=first.cycles,
            marks=tuple(self._marks(first)),
            alone=tuple(answer.timing for answer in alone),
            drafted=tuple(answer.timing for answer in drafted),
            prepare_ms=(self.target.ms, self.draft.ms if self.draft else 0.0),
            draft_ids=own[0].ids if own else None,
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
            ends = ["".join(self._pieces(answer[at : at + 1])) for answer in (ids, other)]
            return Difference(at, ends[0], ends[1], (0.0, 0.0), 0.0, False)
        decoder, embeds, rules = self.adapter.decoder, self.target.embeds, self.target.rules
        margin = draft_loop.margin(decoder, embeds, ids, at, other[at], rules)
        alone, drafted = self._pieces([ids[at], other[at]])
        return Difference(at, alone, drafted, margin.logits, margin.rounding, margin.tied)

    def _pieces(self, ids: Sequence[int]) -> list[str]:
        pieces = self.adapter.tokenizer.convert_ids_to_tokens(list(ids))
        return [str(piece).replace("\u2581", " ").replace("Ġ", " ") for piece in pieces]

    def _marks(self, answer: TimedAnswer) -> list[AnswerPiece]:
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
        return [AnswerPiece(piece, state) for piece in self._pieces(ids)]
