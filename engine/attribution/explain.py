"""explain(): which parts of the input carry chosen words of an answer.

The plain input is scored, then a coarse map, then the fine cells of the coarse cells that lost
most, then frames or event images one by one (docs/attribution.md).

Boundary: one loaded model and one request; the caller owns the device.  Nothing is kept on disk,
and the feature cache is not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch

from engine.attribution import cells as grid
from engine.attribution import chance as chances
from engine.attribution import cost as costs
from engine.attribution import words as texts
from engine.attribution.chance import Floats
from engine.attribution.explained import (
    ExplainRequest,
    ExplainWatcher,
    Explanation,
)
from engine.attribution.forcing import Forcing
from engine.attribution.occlusion import Occlusion
from engine.attribution.shown import shown
from engine.attribution.words import ScoredWords
from engine.errors import BadInput, Cancelled, ModelUnavailable, OutOfMemory
from engine.machine import device, memory
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.pipeline.text_ends import text_ends
from engine.storage.explanations import CellLoss, Cost, MomentLoss
from engine.types import Media, RunRequest

NO_MAP = "{}: {}: choose another model to explain."
PAINTED = (
    "The event pictures are painted with their background, because the raw events that they were "
    "drawn from are not known."
)
ROUNDED = (
    "The model computes in {}: a small loss may be rounding, which differs from batch to batch."
)
HALVED = "A batch of {:,} inputs does not fit in memory: {:,} at a time."
SAMPLED = "The answer was sampled; its words are scored by the model's own probabilities."


def cost(adapter: Adapter, request: ExplainRequest) -> Cost:
    """What explain() will compute, from the sample's pictures; encodes nothing.

    The seconds are known once this process has measured the model.
    """
    refuse(adapter)
    return _cost(adapter, request, occlusion(adapter, request))


def measured_cost(adapter: Adapter, request: ExplainRequest) -> Cost:
    """The same, with seconds: the plain input is scored twice, because a first pass is slower."""
    refuse(adapter)
    with memory.guard(adapter.info.name, adapter.device), torch.inference_mode():
        hidden, words = occlusion(adapter, request), scored_words(adapter, request.words, ())
        wanted = _wanted(adapter, words)
        forcing = Forcing(adapter, request.run, words, wanted, 1, ExplainWatcher())
        list(forcing.tokens([hidden.plain] * 2))
        return _cost(adapter, request, hidden)


def explain(
    adapter: Adapter, request: ExplainRequest, watcher: ExplainWatcher | None = None
) -> Explanation:
    """How much each part of the input carries the words.

    BadInput for a user error or a model that cannot be explained, OutOfMemory after freeing the
    memory, NotFinite for scores that are no numbers, Cancelled between two batches.
    """
    refuse(adapter)
    watcher = watcher or ExplainWatcher()
    ids = request.token_ids or answer_ids(adapter, request.run, watcher)
    asked = request.options.batch
    size = _fitting(adapter, request)
    while True:
        now = replace(request, options=replace(request.options, batch=size))
        try:
            with memory.guard(adapter.info.name, adapter.device):
                found = _explained(adapter, now, ids, watcher)
        except OutOfMemory:
            if size == 1 or "batch" in adapter.refuses:
                raise
            size = (size + 1) // 2
        else:
            halved = (HALVED.format(asked, size),) if size < asked else ()
            return replace(found, notes=(*found.notes, *halved))


def _fitting(adapter: Adapter, request: ExplainRequest) -> int:
    """The batch that fits in memory.

    An accelerator reports when its memory is full.  On the CPU the system would end this process,
    so an estimate decides beforehand.
    """
    size = request.options.batch
    if adapter.device.type != "cpu" or "batch" in adapter.refuses:
        return size
    try:
        need = registry.needed(registry.entry(request.run.model), len(request.token_ids) or 1)
    except (ModelUnavailable, BadInput):  # removed from disk or from models.toml after loading
        return size
    free = device.memory_of(adapter.device).free
    while size > 1 and size * need.run > free:
        size = (size + 1) // 2
    return size


def refuse(adapter: Adapter) -> None:
    """BadInput for a model whose stages 3 and 4 cannot be run apart."""
    if why := adapter.refuses.get("decoupled"):
        raise BadInput(NO_MAP.format(adapter.info.name, why.rstrip(".")))


def occlusion(adapter: Adapter, request: ExplainRequest) -> Occlusion:
    """The pictures that the run shows, ready to be changed."""
    return shown(request.run, adapter.kind, request.options.fill)


def answer_ids(adapter: Adapter, run: RunRequest, watcher: ExplainWatcher) -> tuple[int, ...]:
    """The ids of the model's answer, computed now; Cancelled if it was cut short."""
    found = single_run.run(adapter, replace(run, cache="off", prefix=False), None, watcher)
    if found.generation.stop == "cancelled":
        raise Cancelled("The explanation was cancelled.")
    return found.generation.token_ids


def scored_words(adapter: Adapter, words: str, ids: Sequence[int]) -> ScoredWords:
    """The words' tokens in the answer with these ids, or those of the words alone.

    The words alone begin with a space if the answer does: some tokenizers have other tokens then.
    """
    known = adapter.model.get_input_embeddings().num_embeddings
    texts.refuse_ids(ids, known, adapter.info.name)
    tokenizer = adapter.tokenizer
    decode = partial(tokenizer.decode, skip_special_tokens=True)
    ends, begins = text_ends(decode, ids), " " if decode(ids[:1]).startswith(" ") else ""

    def tokenize(text: str) -> list[int]:
        texts.refuse_markers(text, tokenizer.all_special_tokens)
        found: list[int] = tokenizer(begins + text, add_special_tokens=False)["input_ids"]
        return found

    return texts.find(words, adapter.text(ids), ids, ends, tokenize)


@dataclass(frozen=True, eq=False)
class _Losses:
    """Scores inputs against the plain one; `sums` [1 + R] of each cell are for the chance test."""

    forcing: Forcing
    plain: Floats  # [N, 1 + R]
    sums: list[Floats] = field(default_factory=list)

    def of(self, inputs: Iterable[Media], cells: bool = False) -> list[float]:
        """The loss of each input in nats, summed over the words' tokens."""
        found = []
        for values in self.forcing.tokens(inputs):
            found.append(float((self.plain - values)[:, 0].sum()))
            if cells:
                self.sums.append(chances.weighted(self.plain, values))
        return found


@torch.inference_mode()
def _explained(
    adapter: Adapter, request: ExplainRequest, ids: Sequence[int], watcher: ExplainWatcher
) -> Explanation:
    words = scored_words(adapter, request.words, ids)
    hidden = occlusion(adapter, request)
    wanted = _wanted(adapter, words)
    forcing = Forcing(adapter, request.run, words, wanted, request.options.batch, watcher)
    forcing.of = _cost(adapter, request, hidden).encodings
    (plain,) = forcing.tokens([hidden.plain])
    watcher.planned(_cost(adapter, request, hidden))
    losses = _Losses(forcing, plain)
    cells = _map(losses, hidden, request)
    moments = _moments(losses, hidden) if request.options.time else ()
    return Explanation(
        request=request,
        answer=adapter.text(ids),
        words=words.words,
        said=words.said,
        token_ids=words.token_ids,
        scored=words.scored,
        logprob=float(plain[:, 0].sum()),
        cells=cells,
        moments=moments,
        chance=chances.permutation_test(np.stack(losses.sums), float(np.exp(plain[:, 0].min()))),
        cost=Cost(forcing.encodings, forcing.prefills, forcing.spent / 1000),
        ms=forcing.spent,
        removal=hidden.removal,
        pictures=hidden.shown(),
        notes=_notes(adapter, request, words, hidden),
    )


def _cost(adapter: Adapter, request: ExplainRequest, hidden: Occlusion) -> Cost:
    batched, pictures = "batch" not in adapter.refuses, len(hidden.plain.images)
    return costs.counted(request.options, pictures, hidden.raw, batched, adapter.info.name)


def _map(losses: _Losses, hidden: Occlusion, request: ExplainRequest) -> tuple[CellLoss, ...]:
    """The coarse map, and the fine cells where it lost most."""
    options = request.options
    coarse = _cells(losses, hidden, grid.coarse(options))
    if not coarse:
        return _cells(losses, hidden, grid.fine(options))
    strongest = sorted(coarse, key=lambda cell: -cell.nats)[: options.refined]
    fine = [cell for one in strongest for cell in grid.fine(options, one.box)]
    return (*coarse, *_cells(losses, hidden, fine))


def _cells(losses: _Losses, hidden: Occlusion, cells: Sequence[grid.Cell]) -> tuple[CellLoss, ...]:
    nats = losses.of((hidden.without(cell.removed) for cell in cells), cells=True)
    return tuple(cell.loss(one) for cell, one in zip(cells, nats, strict=True))


def _moments(losses: _Losses, hidden: Occlusion) -> tuple[MomentLoss, ...]:
    moments = tuple(hidden.moments())
    nats = losses.of(hidden.at(moment) for moment in moments)
    return tuple(
        MomentLoss(moment.index, moment.label, moment.how, one)
        for moment, one in zip(moments, nats, strict=True)
    )


def _wanted(adapter: Adapter, words: ScoredWords) -> torch.Tensor:
    """[N, 1 + R]: the words' tokens, and the random ones of the chance test."""
    tokenizer, (first, after) = adapter.tokenizer, words.scored
    known = min(len(tokenizer), adapter.model.get_input_embeddings().num_embeddings)
    random = chances.random_tokens(known, tokenizer.all_special_ids, after - first)
    return torch.from_numpy(np.column_stack([words.token_ids[first:after], random]))


def _notes(
    adapter: Adapter, request: ExplainRequest, words: ScoredWords, hidden: Occlusion
) -> tuple[str, ...]:
    notes = [*hidden.plain.notes, *words.notes]
    if hidden.removal == "painted":
        notes.append(PAINTED)
    if not request.run.decode.greedy and words.said:
        notes.append(SAMPLED)
    if adapter.dtype != torch.float32:
        notes.append(ROUNDED.format(str(adapter.dtype).removeprefix("torch.")))
    return tuple(notes)
