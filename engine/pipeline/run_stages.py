"""What a single run and a batch run share: entering a stage, loading media, cached features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import torch

from engine import media
from engine.decoding.decode import ModelInputs, Prompt
from engine.decoding.generation_rules import AnswerRules
from engine.errors import CacheError, Cancelled, ContextTooLong
from engine.models.adapter import Adapter
from engine.pipeline.watcher import Watcher
from engine.timing import Timeline
from engine.types import (
    DecodeConfig,
    Features,
    Image,
    Media,
    Prepared,
    RunRequest,
    StageName,
    TensorSpec,
)

if TYPE_CHECKING:
    from engine.pipeline.feature_cache import FeatureCache, StoredFeatures

NO_FEATURES = (
    "An entry of the feature cache has another shape than this model's features. The features "
    "were computed."
)
OWN_PIXELS = (
    "Fast pixels do not support this image processor or this Pillow: the processor's own pixels "
    "are used."
)
LIMITED = (
    "The limit of new tokens is {:,} instead of {:,}: {} has a context of {:,} tokens, "
    "and this prompt has {:,}."
)


class StagedRun:
    """Announces and times each stage of one run or one batch; starts none after a cancel."""

    adapter: Adapter
    cache: FeatureCache | None
    watcher: Watcher
    timeline: Timeline

    @contextmanager
    def _stage(self, name: StageName) -> Iterator[None]:
        self._enter(name)
        with self.timeline.span(name):
            yield

    def _enter(self, name: StageName) -> None:
        if self.watcher.cancelled():
            raise Cancelled(f"{self.adapter.info.name} was cancelled before its {name} stage.")
        self.watcher.stage(name)

    def _load_media(self, request: RunRequest) -> Media:
        with self._stage("load"):
            return media.load(request.sample, self.adapter.kind, request)

    def _cached_features(self, prepared: Prepared, notes: list[str]) -> StoredFeatures | None:
        """The cache's entry for this input; None, with a note if an entry cannot be used."""
        if self.cache is None:
            return None
        try:
            stored = self.cache.read(self.adapter.feature_spec(prepared))
        except CacheError as error:
            notes.append(f"{error} The features were computed.")
            return None
        if stored is not None and not self.adapter.takes(prepared, stored.features):
            notes.append(NO_FEATURES)
            return None
        return stored


def pixel_notes(adapter: Adapter, request: RunRequest) -> tuple[str, ...]:
    """A note where the requested pixel setting was not used."""
    return () if request.pixels == "exact" or adapter.has_fast_pixels else (OWN_PIXELS,)


def answer_rules(
    adapter: Adapter, prepared: Prepared, asked: DecodeConfig
) -> tuple[AnswerRules, tuple[str, ...]]:
    """What decides the answer to a prompt: the settings with as many new tokens as the context has
    room for, with a note if these are fewer, and the checkpoint's rules.

    ContextTooLong if there is room for none, or for fewer than `min_new_tokens`.
    """
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


def picture_specs(images: Sequence[Image]) -> list[TensorSpec]:
    """Stage 1's pictures [N, H, W, 3]; one entry for each size."""
    counts = Counter(image.shape for image in images)
    return [
        TensorSpec("images", (n, *shape), "uint8", n * prod(shape)) for shape, n in counts.items()
    ]


def feature_specs(features: Features) -> list[TensorSpec]:
    """The specs of features; a single tensor is called "features"."""
    found = features.tensors
    names = {name: f"features.{name}" if len(found) > 1 else "features" for name in found}
    return [tensor_spec(names[name], tensor) for name, tensor in found.items()]


def prompt_spec(prompt: Prompt) -> TensorSpec:
    """The spec of a decoder's prompt: its embeddings, or its ids where the model embeds them."""
    if isinstance(prompt, ModelInputs):
        return tensor_spec("prompt", prompt.values["input_ids"])
    return tensor_spec("embeddings", prompt)


def tensor_spec(name: str, tensor: torch.Tensor, shape: tuple[int, ...] = ()) -> TensorSpec:
    """A tensor's spec; `shape` overrides its shape, as for a whole padded batch."""
    shape = shape or tuple(tensor.shape)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorSpec(name, shape, dtype, prod(shape) * tensor.element_size())
