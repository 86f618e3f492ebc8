"""explain(): which parts of the input carry chosen words of an answer.

The plain input is scored, then a coarse map, then the fine cells of the coarse cells that lost
most, then frames or event images one by one (docs/attribution.md).  Features never come from the
cache and are never written to it.

Does any part of the picture matter to the words more than chance?  R sequences of random tokens are
scored at the places of the words' tokens, in the same passes.  Let l[c, i, r] be the loss, in nats,
of token i of sequence r when part c is removed; r = 0 are the words.  w[i] is the smallest
probability, on the plain picture, of the words' tokens before i, and w[0] = 1: without it, "A
pedestrian is on the left" said of an empty road would find the places that decide between left and
right.  With s[c, r] = sum over i of w[i] l[c, i, r], there are two figures:

    strength[r] = max over c of s[c, r]
    contrast[r] = strength[r] / mean over c of |s[c, r]|

p = (1 + number of random sequences with at least the words' value) / (1 + R), and the larger of the
two p counts.  Most random tokens are far less likely than any word that a model considers, so no
place is named for words of which it gives a token less than LEAST_PROBABLE, whatever p is.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import numpy.typing as npt
import torch
from msgspec.structs import replace as changed

from engine.attribution import wording as texts
from engine.attribution.explained import (
    TO_EXPLAIN,
    ExplainOptions,
    ExplainRequest,
    ExplainWatcher,
    Explanation,
    coarse_cells,
    cost_of,
    fine_cells,
    measured_ms,
)
from engine.attribution.occlusion import Occlusion, shown
from engine.attribution.wording import BY_CHANCE, LEAST_PROBABLE, ScoredWords, improbable
from engine.decoding import batched
from engine.errors import (
    BadInput,
    Cancelled,
    ContextTooLong,
    ModelUnavailable,
    NotFinite,
    OutOfMemory,
)
from engine.machine import device
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.pipeline.run_stages import text_ends
from engine.prompts import refuse_markers
from engine.storage.explanations import CellLoss, Chance, Cost, MomentLoss
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
NOT_FINITE = (
    "{}: the words' log-probability is not finite (NaN or infinity): copy the checkpoint again, or "
    "choose a dtype with a wider range, such as bfloat16 or float32."
)
TOO_LONG = (
    "{} has a context of {:,} tokens; the prompt has {:,} and the words end {:,} tokens later: "
    "choose earlier or shorter words."
)
SAMPLED = "The answer was sampled; its words are scored by the model's own probabilities."
Floats = npt.NDArray[np.float64]
RANDOM = 199  # sequences of random tokens; the smallest p is 1 / 200
SEED = 0xC4A9CE
BEYOND_CHANCE = (
    "A part of the picture matters more than chance (p = {:.3f}): these words lose more by its "
    "removal than at least 95 % of {:,} sequences of random words, and lose it more in one place."
)
WITHIN_CHANCE = (
    "No part of the picture matters more than chance (p = {:.2f}): sequences of random words lose "
    "as much, or lose it as much in one place."
)
UNLIKELY = (
    "The model gives a token of these words a probability of {:.2g}, below {:g}: no place is named."
)


def random_tokens(known: int, special: Collection[int], count: int) -> npt.NDArray[np.int64]:
    """[count, RANDOM]: tokens for each of the words' places, each as likely as any other."""
    ordinary = np.setdiff1d(np.arange(known), np.fromiter(special, np.int64))
    return np.random.default_rng(SEED).choice(ordinary, (count, RANDOM))


def weights(logprobs: Floats) -> Floats:
    """How much each token counts, from the words' log-probabilities [N] on the plain picture."""
    before = np.concatenate([[0.0], logprobs[:-1]])
    return np.asarray(np.exp(np.minimum.accumulate(before)))


def weighted(plain: Floats, changed: Floats) -> Floats:
    """s [1 + R] of one changed picture, from log-probabilities [N, 1 + R] on both pictures.  A
    random token that the model excludes (log-probability of minus infinity) loses nothing."""
    with np.errstate(invalid="ignore"):
        losses = np.nan_to_num(plain - changed, nan=0.0, posinf=0.0, neginf=0.0)
    return np.asarray(weights(plain[:, 0]) @ losses)


def permutation_test(sums: Floats, probability: float) -> Chance:
    """The test of a map, from s [cells, 1 + R]; column 0 are the words.  `probability`: that of the
    words' least likely token on the plain picture."""
    strength = sums.max(axis=0)
    mean = np.abs(sums).mean(axis=0)
    contrast = np.divide(strength, mean, out=np.zeros_like(strength), where=mean > 0)
    p = max(_at_least(strength), _at_least(contrast))
    random = sums.shape[1] - 1
    sentence = BEYOND_CHANCE.format(p, random) if p <= BY_CHANCE else WITHIN_CHANCE.format(p)
    if improbable(probability):
        sentence = UNLIKELY.format(probability, LEAST_PROBABLE)
    return Chance(p, random, sentence, probability)


def _at_least(values: Floats) -> float:
    """The share of values that are at least the first one, which counts itself."""
    return float((values >= values[0]).mean())


def measured_cost(adapter: Adapter, request: ExplainRequest) -> Cost:
    """What explain() will compute; the plain input is scored twice, as a first pass is slower."""
    refuse(adapter)
    with device.guard(adapter.info.name, adapter.device), torch.inference_mode():
        words = scored_words(adapter, request.words, ())
        forcing = Forcing(adapter, request, words, ExplainWatcher(), batch=1)
        list(forcing.tokens([forcing.hidden.plain] * 2))
        return _cost(adapter, request, forcing.hidden)


def explain(
    adapter: Adapter, request: ExplainRequest, watcher: ExplainWatcher | None = None
) -> Explanation:
    refuse(adapter)
    watcher = watcher or ExplainWatcher()
    ids = request.token_ids or answer_ids(adapter, request.run, watcher)
    asked = request.options.batch
    size = _fitting(adapter, request)
    while True:
        now = replace(request, options=replace(request.options, batch=size))
        try:
            with device.guard(adapter.info.name, adapter.device):
                found = _explained(adapter, now, ids, watcher)
        except OutOfMemory:
            if size == 1 or "batch" in adapter.refuses:
                raise
            size = (size + 1) // 2
        else:
            halved = (HALVED.format(asked, size),) if size < asked else ()
            return changed(found, notes=(*found.notes, *halved))


def _fitting(adapter: Adapter, request: ExplainRequest) -> int:
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


def answer_ids(adapter: Adapter, run: RunRequest, watcher: ExplainWatcher) -> tuple[int, ...]:
    """The ids of the model's answer, computed now; Cancelled if it was cut short."""
    found = single_run.run(adapter, replace(run, how=replace(run.how, cache="off")), None, watcher)
    if found.generation.stop == "cancelled":
        raise Cancelled("The explanation was cancelled.")
    return found.generation.token_ids


def scored_words(adapter: Adapter, words: str, ids: Sequence[int]) -> ScoredWords:
    """The words' tokens in the answer with these ids, or those of the words alone.  The words alone
    begin with a space if the answer does: some tokenizers have other tokens then."""
    texts.refuse_ids(ids, adapter.model.get_input_embeddings().num_embeddings, adapter.info.name)
    tokenizer = adapter.tokenizer
    first = tokenizer.decode(ids[:1], skip_special_tokens=True)
    ends, begins = text_ends(tokenizer, ids), " " if first.startswith(" ") else ""

    def tokenize(text: str) -> list[int]:
        refuse_markers(text, tuple(tokenizer.all_special_tokens), TO_EXPLAIN)
        found: list[int] = tokenizer(begins + text, add_special_tokens=False)["input_ids"]
        return found

    return texts.find(words, adapter.text(ids), ids, ends, tokenize)


class Forcing:
    """Scores the words on one input after another; `spent` is in milliseconds.  `wanted` [N, 1 +
    R]: the words' tokens, and the random ones of the chance test, which are scored in their places.
    `sums` [1 + R] of each cell are for this test."""

    def __init__(
        self,
        adapter: Adapter,
        request: ExplainRequest,
        words: ScoredWords,
        watcher: ExplainWatcher,
        batch: int,
    ) -> None:
        self.adapter, self.run, self.words, self.watcher = adapter, request.run, words, watcher
        self.hidden = shown(request.run, adapter.kind, request.options.fill)
        self.batch = 1 if "batch" in adapter.refuses else batch
        self.of = _cost(adapter, request, self.hidden).encodings
        tokenizer, (first, after) = adapter.tokenizer, words.scored
        known = min(len(tokenizer), adapter.model.get_input_embeddings().num_embeddings)
        random = random_tokens(known, tokenizer.all_special_ids, after - first)
        self.wanted = torch.from_numpy(np.column_stack([words.token_ids[first:after], random]))
        self.plain: Floats = np.empty((0, 0))
        self.sums: list[Floats] = []
        self.encodings, self.prefills, self.spent = 0, 0, 0.0

    def tokens(self, inputs: Iterable[Media]) -> Iterator[Floats]:
        """The log-probabilities [N, 1 + R] of the wanted tokens on each input, in nats.  Up to
        `batch` inputs are encoded and scored together if the model takes batches.  Cancelled
        between two batches; NotFinite if a score of the words is no number."""
        rest = iter(inputs)
        while group := list(islice(rest, self.batch)):
            if self.watcher.cancelled():
                raise Cancelled("The explanation was cancelled.")
            start = time.perf_counter()
            found = self._scored(group)
            self.encodings, self.prefills = self.encodings + len(group), self.prefills + 1
            self.spent += (time.perf_counter() - start) * 1000
            measured_ms[self.adapter.info.name] = self.spent / self.encodings
            self.watcher.done(self.encodings, self.of)
            if not all(np.isfinite(values[:, 0]).all() for values in found):
                raise NotFinite(NOT_FINITE.format(self.adapter.info.name))
            yield from found

    def _scored(self, group: list[Media]) -> list[Floats]:
        """[N, 1 + R] of each input of a batch; of a model without batches it has one input."""
        adapter, run, after = self.adapter, self.run, self.words.scored[1]
        prepared = [adapter.preprocess(media, run.prompt) for media in group]
        context, limit = max(one.context_tokens for one in prepared), adapter.context_limit
        if context + after > limit:
            raise ContextTooLong(TOO_LONG.format(adapter.info.name, limit, context, after))
        pairs = zip(prepared, adapter.encode_batch(prepared), strict=True)
        prompts = [adapter.embed(*pair) for pair in pairs]
        ids = self.words.token_ids[:after]
        logs = batched.forced_logprobs(adapter.decoder, prompts, ids, self.wanted)
        return list(logs.double().cpu().numpy())

    def cells(self, cells: Sequence[CellLoss]) -> tuple[CellLoss, ...]:
        """The cells with their losses, summed over the words' tokens."""
        found = []
        inputs = (self.hidden.without(cell.removed) for cell in cells)
        for cell, values in zip(cells, self.tokens(inputs), strict=True):
            found.append(changed(cell, nats=float((self.plain - values)[:, 0].sum())))
            self.sums.append(weighted(self.plain, values))
        return tuple(found)

    def map(self, options: ExplainOptions) -> tuple[CellLoss, ...]:
        """The coarse map, and the fine cells where it lost most."""
        coarse = self.cells(coarse_cells(options))
        if not coarse:
            return self.cells(fine_cells(options))
        strongest = sorted(coarse, key=lambda cell: -cell.nats)[: options.refined]
        fine = [cell for one in strongest for cell in fine_cells(options, one.box)]
        return (*coarse, *self.cells(fine))

    def moments(self) -> tuple[MomentLoss, ...]:
        moments = tuple(self.hidden.moments())
        inputs = (self.hidden.at(moment) for moment in moments)
        return tuple(
            changed(moment, nats=float((self.plain - values)[:, 0].sum()))
            for moment, values in zip(moments, self.tokens(inputs), strict=True)
        )


@torch.inference_mode()
def _explained(
    adapter: Adapter, request: ExplainRequest, ids: Sequence[int], watcher: ExplainWatcher
) -> Explanation:
    words = scored_words(adapter, request.words, ids)
    forcing = Forcing(adapter, request, words, watcher, request.options.batch)
    hidden = forcing.hidden
    (plain,) = forcing.tokens([hidden.plain])
    forcing.plain = plain
    watcher.planned(_cost(adapter, request, hidden))
    cells = forcing.map(request.options)
    moments = forcing.moments() if request.options.time else ()
    notes = [*hidden.plain.notes, *words.notes]
    if hidden.removal == "painted":
        notes.append(PAINTED)
    if not request.run.how.decode.greedy and words.said:
        notes.append(SAMPLED)
    if adapter.dtype != torch.float32:
        notes.append(ROUNDED.format(str(adapter.dtype).removeprefix("torch.")))
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
        chance=permutation_test(np.stack(forcing.sums), float(np.exp(plain[:, 0].min()))),
        cost=Cost(forcing.encodings, forcing.prefills, forcing.spent / 1000),
        ms=forcing.spent,
        removal=hidden.removal,
        pictures=hidden.shown(),
        notes=tuple(notes),
    )


def _cost(adapter: Adapter, request: ExplainRequest, hidden: Occlusion) -> Cost:
    batched, pictures = "batch" not in adapter.refuses, len(hidden.plain.images)
    return cost_of(request.options, pictures, hidden.raw, batched, adapter.info.name)
