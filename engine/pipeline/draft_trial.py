"""One sample's answer, the target alone and drafted, timed in alternated pairs.

Boundary: runs stages 1 to 3 once, then stage 4 again and again; neither features nor prefixes are
cached.  The figures are drafts.py's.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from engine import media
from engine.decoding import decode
from engine.decoding.generation_rules import AnswerRules
from engine.errors import Cancelled
from engine.machine import memory
from engine.models.adapter import Adapter
from engine.pipeline import draft_loop
from engine.pipeline.draft_loop import Drafted, Drafter, Lookup, ModelDrafter
from engine.pipeline.draft_results import (
    Cycle,
    Difference,
    DraftRequest,
    DraftWatcher,
    Mark,
    State,
    Timing,
    Tried,
)
from engine.timing import Timeline
from engine.types import DecodeConfig, Sample, Stop

A = TypeVar("A")
CANCELLED = "The drafting was cancelled."


@dataclass(frozen=True, eq=False)
class Ready:
    """A model before stage 4: the prompt's embeddings, the question's ids, what that took, and
    the checkpoint's rules for the answer."""

    adapter: Adapter
    embeds: torch.Tensor
    question: tuple[int, ...]
    ms: float
    shown: str
    rules: AnswerRules | None = None


@dataclass(frozen=True)
class Timed:
    """An answer with the time of its first token and from there to its last."""

    ids: tuple[int, ...]
    timing: Timing
    cycles: tuple[Cycle, ...] = ()


def try_sample(
    sample: Sample,
    request: DraftRequest,
    target: Adapter,
    draft: Adapter | None,
    watcher: DraftWatcher,
) -> Tried:
    """The pairs of one sample after a warm-up, with `draft` None for lookup.

    `draft` must share the target's vocabulary (refuse_other).  MediaError or another BadInput for
    a sample that cannot be asked, Cancelled between two tokens.
    """
    with memory.guard(target.info.name, target.device):
        return _Trial(sample, request, target, draft, watcher).run()


class _Trial:
    """Both models with the sample before them."""

    def __init__(
        self,
        sample: Sample,
        request: DraftRequest,
        target: Adapter,
        draft: Adapter | None,
        watcher: DraftWatcher,
    ) -> None:
        self.sample, self.request, self.watcher = sample, request, watcher
        self.adapter, self.draft_adapter = target, draft

    @torch.inference_mode()
    def run(self) -> Tried:
        self.target = self._ready(self.adapter)
        self.draft = self._ready(self.draft_adapter) if self.draft_adapter else None
        runs, pairs = self.request.runs, list[tuple[Timed, Timed]]()
        for index in range(runs + 1):  # the first one warms up
            self.watcher.round(index, runs + 1)
            pairs.append(self._pair(index % 2 == 1))
        alone, drafted = zip(*pairs[1:], strict=True)
        return self._tried(alone, drafted)

    def _ready(self, adapter: Adapter) -> Ready:
        config = self.request.decode
        timeline = Timeline(adapter.device)
        with timeline.span("stages 1 to 3"):
            asked = self.request
            shown = media.load(self.sample, adapter.kind, asked.frames, asked.extent)
            prepared = adapter.preprocess(shown, asked.prompt, asked.pixels)
            adapter.check_context(prepared, config.max_new_tokens)
            embeds = adapter.embed(prepared, adapter.encode(prepared))
        question = tuple(adapter.question_ids(prepared)[0].tolist())
        rules = adapter.rules_for(prepared, config)
        return Ready(adapter, embeds, question, timeline.spans[0].ms, shown.shown, rules)

    def _pair(self, turned: bool) -> tuple[Timed, Timed]:
        """Alone and drafted, in alternating order, as a machine that slows down slows both."""
        if turned:
            drafted = self._drafted()
            return self._alone(self.target), drafted
        return self._alone(self.target), self._drafted()

    def _alone(self, ready: Ready) -> Timed:
        def answer(on_token: Callable[[int], None]) -> tuple[list[int], Stop]:
            decoder, config = ready.adapter.decoder, self.request.decode
            cancelled, rules = self.watcher.cancelled, ready.rules
            return decode.generate(decoder, ready.embeds, config, on_token, cancelled, rules=rules)

        (ids, stop), times = self._timed(ready, answer)
        self._refuse_cancelled(stop)
        return Timed(tuple(ids), Timing(times[0], times[-1] - times[0]))

    def _drafted(self) -> Timed:
        decoder, config = self.target.adapter.decoder, self.request.decode

        def answer(on_token: Callable[[int], None]) -> Drafted:
            return draft_loop.generate(
                decoder,
                self.target.embeds,
                config,
                self._drafter(config),
                self.request.gamma,
                on_token,
                self.watcher.cancelled,
                self.target.rules,
            )

        found, times = self._timed(self.target, answer)
        self._refuse_cancelled(found.stop)
        timing = Timing(times[0], times[-1] - times[0], found.draft_ms, found.target_ms)
        return Timed(tuple(found.ids), timing, tuple(found.cycles))

    def _drafter(self, config: DecodeConfig) -> Drafter:
        if self.draft is None:
            return Lookup(self.target.question)
        draft = self.draft
        return ModelDrafter(draft.adapter.decoder, draft.embeds, config, draft.rules)

    @staticmethod
    def _timed(ready: Ready, answer: Callable[[Callable[[int], None]], A]) -> tuple[A, list[float]]:
        """What answers, and when it gave each token, in ms since it began."""
        timeline, times = Timeline(ready.adapter.device), list[float]()
        found = answer(lambda _: times.append(timeline.now()))
        return found, times

    @staticmethod
    def _refuse_cancelled(stop: Stop) -> None:
        if stop == "cancelled":
            raise Cancelled(CANCELLED)

    def _tried(self, alone: Sequence[Timed], drafted: Sequence[Timed]) -> Tried:
        own = None if self.draft is None else [self._alone(self.draft) for _ in range(3)]
        ids, said = alone[0].ids, drafted[0]
        other = next((one for one in drafted if one.ids != ids), None)
        return Tried(
            sample=self.sample.id,
            text=self.adapter.text(ids),
            ids=ids,
            cycles=said.cycles,
            marks=tuple(self._marks(said)),
            alone=tuple(one.timing for one in alone),
            drafted=tuple(one.timing for one in drafted),
            prepare_ms=(self.target.ms, self.draft.ms if self.draft else 0.0),
            draft_ids=own[0].ids if own else None,
            draft_ms=statistics.median(o.timing.steps_ms for o in own) if own else None,
            difference=self._difference(ids, other.ids) if other else None,
            shown=self.target.shown,
            off_script=self._off_script(),
        )

    def _off_script(self) -> tuple[str, ...]:
        """The models that were not trained on the question."""
        models = [adapter.info for adapter in (self.adapter, self.draft_adapter) if adapter]
        return tuple(info.name for info in models if info.off_script(self.request.prompt))

    def _difference(self, ids: Sequence[int], other: Sequence[int]) -> Difference:
        """Where two answers part; one that only ends sooner parts where it ends, at no tie."""
        at = next((i for i, (a, b) in enumerate(zip(ids, other, strict=False)) if a != b), None)
        if at is None:
            at = min(len(ids), len(other))
            pieces = [self._pieces(one[at : at + 1]) for one in (ids, other)]
            return Difference(at, "".join(pieces[0]), "".join(pieces[1]), (0.0, 0.0), 0.0, False)
        decoder, embeds, rules = self.adapter.decoder, self.target.embeds, self.target.rules
        found = draft_loop.margin(decoder, embeds, ids, at, other[at], rules)
        one, two = self._pieces([ids[at], other[at]])
        return Difference(at, one, two, found.logits, found.rounding, found.tied)

    def _pieces(self, ids: Sequence[int]) -> list[str]:
        pieces = self.adapter.tokenizer.convert_ids_to_tokens(list(ids))
        return [str(piece).replace("\u2581", " ").replace("Ġ", " ") for piece in pieces]

    def _marks(self, said: Timed) -> list[Mark]:
        """The answer in the order it came about, with what was drafted and not said."""
        found, place = self._marked(said.ids[:1], "own"), 1
        for cycle in said.cycles:
            end = place + cycle.accepted
            found += self._marked(said.ids[place:end], "accepted")
            found += self._marked(cycle.drafted[cycle.accepted :], "rejected")
            found += self._marked(said.ids[end : place + cycle.tokens], "own")
            place += cycle.tokens
        return found

    def _marked(self, ids: Sequence[int], state: State) -> list[Mark]:
        return [Mark(piece, state) for piece in self._pieces(ids)]
