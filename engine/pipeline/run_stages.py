"""What a single run and a batch run share: entering a stage, stages 1 and 2, cached features, and
what a result says.

After the run's clock has stopped, it finds how much of an answer's text is known after each of its
tokens, for a replay, and the log-probability of each option's letter as the first token.  That is
the natural logarithm of the softmax, in float32, over the whole vocabulary, without rules of
generation and temperature.  The probabilities of a letter's tokens, with and without a leading
space, are added.  They are computed by one more prefill, or in hooked mode from the scores of the
model's own generate().
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import takewhile
from math import isfinite, prod
from operator import eq
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import torch
from tokenizers.decoders import DecodeStream
from transformers import PreTrainedModel

from engine.decoding.generation_rules import AnswerRules
from engine.errors import CacheError, Cancelled, ContextTooLong
from engine.machine import device
from engine.machine.load import Meter
from engine.models.adapter import Adapter
from engine.pipeline import Watcher
from engine.timing import UNKNOWN, Timeline, Usage
from engine.types import (
    DecodeConfig,
    Extent,
    Features,
    Generation,
    Media,
    Prepared,
    RunRequest,
    RunResult,
    StageName,
    Stop,
    TensorSpec,
)

if TYPE_CHECKING:
    from engine.pipeline.feature_cache import FeatureCache, StoredFeatures

NO_FEATURES = (
    "An entry of the feature cache has another shape than this model's features. The features "
    "were computed."
)
LIMITED = (
    "The limit of new tokens is {:,} instead of {:,}: {} has a context of {:,} tokens, "
    "and this prompt has {:,}."
)
NO_TOKENS = "No log-probabilities of the letters: the tokenizer has no single token for {letters}."
NO_SCORES = "No log-probabilities of the letters: the model's generate() shows no scores."
_BEFORE_LETTER = ("", ":")  # tokenizers may treat the first word of a text in another way
Scores = Callable[[], torch.Tensor | None]  # [1, vocabulary] of the first new token


class Asked:
    """A request, and what the stages have made of it so far."""

    prepared: Prepared  # after stage 2
    rules: AnswerRules  # after stage 2
    features: Features  # after stage 3, not in hooked mode
    own_scores: Scores | None = None  # of the first token in generate()

    def __init__(self, adapter: Adapter, request: RunRequest) -> None:
        self.request = request
        self.notes = list(adapter.notes)
        self.tensors: list[TensorSpec] = []
        self.shown = ""
        self.extent: Extent | None = None

    def record(self, name: str, tensor: torch.Tensor, shape: tuple[int, ...] = ()) -> None:
        """`shape` overrides that of the tensor, as for a whole padded batch."""
        shape = shape or tuple(tensor.shape)
        dtype = str(tensor.dtype).removeprefix("torch.")
        self.tensors.append(TensorSpec(name, shape, dtype, prod(shape) * tensor.element_size()))

    def record_features(self) -> None:
        """A single tensor is called "features"."""
        found = self.features.tensors
        for name, tensor in found.items():
            self.record(f"features.{name}" if len(found) > 1 else "features", tensor)


class StagedRun:
    """Announces and times each stage of one run or one batch; starts none after a cancel."""

    def __init__(self, adapter: Adapter, cache: FeatureCache | None, watcher: Watcher) -> None:
        self.adapter, self.cache, self.watcher = adapter, cache, watcher
        self.cold = adapter.use.runs == 0
        self.step_ms: list[float] = []  # when each new token, or row of tokens, was there
        self.first_usage = self.last_usage = UNKNOWN  # at the first and the last of them
        self.meter = Meter(torch.get_num_threads())
        self.timeline = Timeline(adapter.device)

    @contextmanager
    def _stage(self, name: StageName) -> Iterator[None]:
        self._enter(name)
        with self.timeline.span(name):
            yield

    def _enter(self, name: StageName) -> None:
        if self.watcher.cancelled():
            raise Cancelled(f"{self.adapter.info.name} was cancelled before its {name} stage.")
        self.watcher.stage(name)

    # stage 1
    def load(self, asked: Asked) -> Media:
        with self._stage("load"):
            loaded = self.watcher.load(asked.request.sample, self.adapter.kind, asked.request.how)
        asked.notes += loaded.notes
        asked.shown, asked.extent = self.adapter.shown(loaded), loaded.extent
        sizes = Counter(image.shape for image in loaded.images)
        for shape, count in sizes.items():  # pictures [N, H, W, 3] of one size
            spec = TensorSpec("images", (count, *shape), "uint8", count * prod(shape))
            asked.tensors.append(spec)
        return loaded

    # stage 2
    def preprocess(self, asked: Asked, loaded: Media) -> Prepared:
        adapter, request = self.adapter, asked.request
        with self._stage("preprocess"):
            prepared = adapter.preprocess(loaded, request.prompt)
            asked.rules, limited = answer_rules(adapter, prepared, request.how.decode)
        asked.notes += limited
        asked.record("pixels", prepared.pixels)
        asked.record("input_ids", prepared.input_ids)
        asked.prepared = prepared
        return prepared

    def _cached_features(self, prepared: Prepared, notes: list[str]) -> StoredFeatures | None:
        """The cache's entry for this input, on the device; None, noted if it cannot be used."""
        if self.cache is None:
            return None
        try:
            stored = self.cache.read(self.adapter.feature_spec(prepared))
        except CacheError as error:
            notes.append(f"{error} The features were computed.")
            return None
        if stored is not None and not self.adapter.takes(prepared, stored.features):
            notes.append(NO_FEATURES)
            stored = None
        on = self.adapter.device
        return stored and replace(stored, features=stored.features.changed(lambda one: one.to(on)))

    def _stepped(self) -> float:
        """Notes the end of a step; returns its time in milliseconds."""
        ms = round(self.timeline.now(), 6)  # the clock tells nanoseconds: no more is kept
        self.last_usage = self.timeline.usage()
        if not self.step_ms:
            self.first_usage = self.last_usage
        self.step_ms.append(ms)
        return ms

    def _split_decode(self, start: float, before: Usage) -> None:
        """Adds prefill and steps of stage 4, which began at `start` with the usage `before`."""
        if self.step_ms:
            first, last = self.step_ms[0], self.step_ms[-1]
            source = self.timeline.spans[-1].source
            prefill = self.first_usage.since(before)
            steps = self.last_usage.since(self.first_usage)
            self.timeline.add("decode.prefill", start, first - start, source, used=prefill)
            self.timeline.add("decode.steps", first, last - first, source, used=steps)

    def _stop_clock(self) -> float:
        """Ends the time line and reads the machine's load; the milliseconds since the start."""
        total_ms = self.timeline.end()
        self.machine_load = self.meter.read()
        self.adapter.use.runs += 1
        return total_ms

    def _result(
        self,
        asked: Asked,
        ids: Sequence[int],
        stop: Stop,
        token_ms: Sequence[float] = (),
        **rest: Any,
    ) -> RunResult:
        """The result, with what only a single run or only a batch knows; after the clock."""
        adapter, letters = self.adapter, None

        def scores() -> torch.Tensor | None:
            if asked.own_scores is not None:
                return asked.own_scores()
            return adapter.decoder.prefill(adapter.embed(asked.prepared, asked.features))[0]

        if stop != "cancelled":
            letters = letter_logprobs(adapter, asked.request, scores, asked.notes)
        return RunResult(
            request=asked.request,
            model=adapter.info,
            generation=Generation(
                token_ids=tuple(ids),
                text=adapter.text(ids),
                stop=stop,
                prompt_tokens=asked.prepared.context_tokens,
                token_ms=tuple(token_ms),
                text_ends=text_ends(adapter.tokenizer, ids) if token_ms else (),
            ),
            cold=self.cold,
            shown=asked.shown,
            tensors=tuple(asked.tensors),
            notes=tuple(asked.notes),
            environment=device.environment(adapter.device),
            extent=asked.extent,
            machine_load=self.machine_load,
            token_limit=asked.rules.config.max_new_tokens,
            letter_logprobs=letters,
            **rest,
        )


def answer_rules(
    adapter: Adapter, prepared: Prepared, asked: DecodeConfig
) -> tuple[AnswerRules, tuple[str, ...]]:
    """What decides the answer to a prompt: the settings with as many new tokens as the context has
    room for, with a note if these are fewer, and the checkpoint's rules."""
    name, context, prompt = adapter.info.name, adapter.context_limit, prepared.context_tokens
    room = context - prompt
    if asked.max_new_tokens <= room:
        return adapter.rules_for(prepared, asked), ()
    if room >= max(asked.min_new_tokens, 1):
        note = LIMITED.format(room, asked.max_new_tokens, name, context, prompt)
        return adapter.rules_for(prepared, replace(asked, max_new_tokens=room)), (note,)
    forced, fix = "", "shorten the question"
    visual = prompt - int((~adapter.visual_places(prepared.input_ids)).sum())
    if adapter.kind != "image" and visual > context // 4:
        fix = "show it fewer pictures, such as one image, or shorten the question"
    if room > 0:
        forced, fix = f" and needs {asked.min_new_tokens:,} new ones", f"force at most {room:,}"
    raise ContextTooLong(
        f"{name} has a context of {context:,} tokens; this prompt has {prompt:,}{forced}: {fix}."
    )


def text_ends(tokenizer: Any, ids: Sequence[int]) -> tuple[int, ...]:
    """For each id, the number of known characters of the answer's text without white space around
    it; the last is all.  An id is decoded with all before it only where the parts do not add up to
    the whole text."""
    decode = partial(tokenizer.decode, skip_special_tokens=True)
    whole = decode(ids)
    parts = _parts(tokenizer, ids)
    if "".join(parts) != whole:
        parts = _exact_parts(decode, ids, whole)
    text, lead = whole.strip(), len(whole) - len(whole.lstrip())
    ends, known = [], -lead
    for part in parts:
        known += len(part)
        ends.append(min(max(known, 0), len(text)))
    return (*ends[:-1], len(text)) if ends else ()


def _parts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """The text that each id adds; "" while a character is unfinished.  [] if the tokenizer changes
    earlier text, or is none of the library tokenizers."""
    stream = DecodeStream(skip_special_tokens=True)
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None:
        return []
    try:
        return [stream.step(fast, one) or "" for one in ids]
    except Exception:  # noqa: BLE001 - the library raises no other class
        return []


def _exact_parts(
    decode: Callable[[Sequence[int]], str], ids: Sequence[int], whole: str
) -> list[str]:
    """What the text of the first ids has in common with the whole text, id by id."""
    parts, known = [], 0
    for end in range(1, len(ids) + 1):
        same = takewhile(bool, map(eq, decode(ids[:end]), whole))
        found = max(known, sum(1 for _ in same))
        parts.append(whole[known:found])
        known = found
    return parts


def wants_letters(request: RunRequest) -> bool:
    """Whether the request asks the sample's own question with lettered options."""
    sample = request.sample
    lettered = bool(sample.choices) and sample.choice_form == "letters"
    return lettered and request.prompt == sample.question.strip()


def letter_logprobs(
    adapter: Adapter, request: RunRequest, scores: Scores, notes: list[str]
) -> Mapping[str, float] | None:
    """The log-probabilities by letter of the sample; None if they were not asked for or are
    unknown, which a note then says.  Computes the scores only if it can."""
    if not wants_letters(request):
        return None
    letters = ascii_uppercase[: len(request.sample.choices)]
    tokens = {letter: letter_tokens(adapter.tokenizer, letter) for letter in letters}
    if lacking := [letter for letter, ids in tokens.items() if not ids]:
        notes.append(NO_TOKENS.format(letters=", ".join(lacking)))
        return None
    if (found := scores()) is not None:
        logs = torch.log_softmax(found[0].float(), dim=-1)
        values = {
            letter: float(torch.logsumexp(logs[list(ids)], dim=0)) for letter, ids in tokens.items()
        }
        if all(map(isfinite, values.values())):  # -infinity: a token that the model excludes
            return values
    notes.append(NO_SCORES)
    return None


def letter_tokens(tokenizer: Any, letter: str) -> tuple[int, ...]:
    """The single tokens of a letter, with and without a leading space."""
    found: dict[int, None] = {}
    for before in _BEFORE_LETTER:
        begin = _letter_ids(tokenizer, before)
        for text in (letter, f" {letter}"):
            ids = _letter_ids(tokenizer, before + text)
            if ids[:-1] == begin and tokenizer.decode(ids[-1:]).strip() == letter:
                found[ids[-1]] = None
    return tuple(found)


def _letter_ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
    return ids


@contextmanager
def first_scores(model: torch.nn.Module, request: RunRequest) -> Iterator[Scores]:
    """Keeps the scores of the first new token inside a model's own generate(), if they are wanted:
    those of the outermost model that gives any."""
    found: dict[torch.nn.Module, torch.Tensor] = {}
    inside = model.modules() if wants_letters(request) else ()
    models = [one for one in inside if isinstance(one, PreTrainedModel)]

    def keep(module: torch.nn.Module, _: Any, out: Any) -> None:
        logits = getattr(out, "logits", None)
        if module not in found and isinstance(logits, torch.Tensor):
            found[module] = logits[:, -1].clone()

    with ExitStack() as stack:
        for one in models:
            stack.callback(one.register_forward_hook(keep).remove)
        yield lambda: next((found[one] for one in models if one in found), None)
