"""The ways to one answer, each watched from outside.

Boundary: runs the model and records; judges nothing.  What a way says about itself is not taken for
granted: logits come from a hook on the language model's head, and encodings are counted by hooks on
the vision modules, the same ones for every way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers.generation import StoppingCriteriaList

from engine import decode, media, pipeline
from engine.cache import FeatureCache
from engine.errors import Cancelled
from engine.models.base import Adapter, generate_options
from engine.pipeline import CancelBetweenTokens, Nobody, seeded
from engine.prefixes import Prefixes
from engine.types import DecodeConfig, Media, Prepared, Ran, RunRequest, RunResult, Sample
from engine.verify.verdict import VerifyRequest

ANOTHER_QUESTION = "Anything else?"  # asked first, so that its prefix is there
BRIEF = 48  # tokens
PREFIXES_MB = 2**20  # no bound of its own: what is verified is not how many fit


@dataclass(frozen=True)
class Seen:
    """What went through one vision module: its calls, and the pictures of all calls."""

    module: str
    calls: int
    pictures: int


@dataclass(frozen=True, eq=False)
class Answer:
    """New token ids of one way, and what was seen from outside while they were made.

    logits [steps, vocabulary] float32 are the head's, one row for each token computed; embeds
    [1, context, hidden] is what entered the language model first.
    """

    way: str
    ids: tuple[int, ...]
    logits: torch.Tensor
    embeds: torch.Tensor
    seen: tuple[Seen, ...]
    result: RunResult | None = None
    head_ms: tuple[float, ...] = ()  # when the head had computed each, since the watch began

    @property
    def context(self) -> int:
        """What entered the language model, and what it went on from as the run says."""
        prefix = self.result.prefix if self.result else None
        reused = prefix.tokens if prefix and prefix.state == "reused" else 0
        return reused + int(self.embeds.shape[1])

    @property
    def encodings(self) -> int:
        """Calls of the vision tower, which is the first of the vision modules."""
        return self.seen[0].calls


class Watch:
    """Hooks of our own on head, language model and vision modules, for the time of a `with`."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._rows: list[torch.Tensor] = []
        self._times: list[float] = []
        self._start = time.perf_counter()
        self._embeds: torch.Tensor | None = None
        self._calls: dict[int, int] = {}
        self._pictures: dict[int, int] = {}
        self._hooks = ExitStack()

    def __enter__(self) -> Watch:
        decoder = self._adapter.decoder
        self._add(decoder.head.register_forward_hook(self._scores))
        if self._adapter.compiled is not None:  # whose graph holds the head
            self._add(self._adapter.compiled.register_forward_hook(self._compiled_scores))
        self._add(decoder.language_model.register_forward_pre_hook(self._first, with_kwargs=True))
        for index, module in enumerate(self._adapter.vision_modules()):
            hook = self._count(index)
            self._add(module.register_forward_pre_hook(hook, with_kwargs=True))
        return self

    def __exit__(self, *exc: object) -> None:
        self._hooks.close()

    def _add(self, handle: torch.utils.hooks.RemovableHandle) -> None:
        self._hooks.callback(handle.remove)

    def _scores(self, module: Any, arguments: Any, out: torch.Tensor) -> None:
        self._times.append((time.perf_counter() - self._start) * 1000)
        row = out.detach().reshape(-1, out.shape[-1])[-1]
        self._rows.append(row.to("cpu", torch.float32, copy=True))  # tokens are ruled out in place

    def _compiled_scores(self, module: Any, arguments: Any, out: tuple[torch.Tensor, Any]) -> None:
        self._scores(module, arguments, out[0])

    def _first(self, module: Any, arguments: Any, named: dict[str, Any]) -> None:
        if self._embeds is None and named.get("inputs_embeds") is not None:
            self._embeds = named["inputs_embeds"].detach()

    def _count(self, index: int) -> Callable[..., None]:
        def hook(module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            tensors = (t for t in (*arguments, *named.values()) if isinstance(t, torch.Tensor))
            self._calls[index] = self._calls.get(index, 0) + 1
            self._pictures[index] = self._pictures.get(index, 0) + len(next(tensors))

        return hook

    def answer(self, way: str, ids: tuple[int, ...], result: RunResult | None = None) -> Answer:
        names = [type(module).__name__ for module in self._adapter.vision_modules()]
        seen = tuple(
            Seen(name, self._calls.get(index, 0), self._pictures.get(index, 0))
            for index, name in enumerate(names)
        )
        empty = torch.empty(0)
        logits = torch.stack(self._rows) if self._rows else empty
        return Answer(
            way,
            ids,
            logits,
            empty if self._embeds is None else self._embeds,
            seen,
            result,
            tuple(self._times),
        )

    @property
    def steps(self) -> int:
        """Tokens computed so far, as the head was called once for each."""
        return len(self._rows)


class Subject:
    """One model and one sample, loaded and preprocessed once; the ways to its answer."""

    def __init__(
        self,
        adapter: Adapter,
        sample: Sample,
        request: VerifyRequest,
        folder: Path,
        cancelled: Callable[[], bool],
    ) -> None:
        self.adapter, self.sample, self.request = adapter, sample, request
        self.cache = FeatureCache(folder, 4096)
        self.kept = Prefixes(PREFIXES_MB)
        self.cancelled = cancelled
        self.media = media.load(sample, adapter.kind, "arange")
        self.prepared: Prepared = self.prepare(self.media)
        adapter.check_context(self.prepared, request.max_new_tokens)

    @property
    def greedy(self) -> DecodeConfig:
        return DecodeConfig(
            max_new_tokens=self.request.max_new_tokens, backend=self.request.backend
        )

    @property
    def backend(self) -> Ran:
        """What decodes the decoupled way, once it has run."""
        step = self.adapter.step_for(self.run_request(self.greedy, "use"))
        return "compiled" if step is not None and not step.failure else "eager"

    @property
    def brief(self) -> DecodeConfig:
        """Greedy and short, for what is repeated and is compared at full length elsewhere."""
        config = self.greedy
        return replace(config, max_new_tokens=min(BRIEF, config.max_new_tokens))

    @property
    def sampled(self) -> DecodeConfig:
        return replace(self.brief, temperature=0.8, top_p=0.95, seed=1)

    @torch.inference_mode()
    def plain(self, config: DecodeConfig) -> Answer:
        """The model's own generate() on pixels, and nothing else."""
        with Watch(self.adapter) as watch, seeded(config.seed, self.adapter.device):
            out = self.adapter.generate(self.prepared, **self.options(config))
        return watch.answer("plain", self.new_ids(out, watch.steps))

    @torch.inference_mode()
    def features(self, config: DecodeConfig) -> Answer:
        """The model's own generate() on features that were encoded before."""
        rows = self.adapter.encode(self.prepared)
        with Watch(self.adapter) as watch, seeded(config.seed, self.adapter.device):
            out = self.adapter.generate_from_features(self.prepared, rows, **self.options(config))
        return watch.answer("features", self.new_ids(out, watch.steps))

    def hooked(self, config: DecodeConfig) -> Answer:
        return self._watched("hooked", self.run_request(config, "off", "hooked"))

    def computed(self, config: DecodeConfig) -> Answer:
        """Features encoded now and put on disk."""
        return self._watched("decoupled, computed", self.run_request(config, "refresh"))

    def decoupled(self, config: DecodeConfig) -> Answer:
        """Features read back from the disk."""
        return self._watched("decoupled", self.run_request(config, "use"))

    def reused(self, config: DecodeConfig) -> Answer:
        """Going on from the prefix that another question has left in memory."""
        request = replace(self.run_request(config, "use"), prefix=True)
        brief = replace(config, max_new_tokens=2, min_new_tokens=0)
        self.run(replace(request, prompt=ANOTHER_QUESTION, decode=brief))
        return self._watched("reused", request)

    def run_request(self, config: DecodeConfig, cache: Any, mode: Any = "decoupled") -> RunRequest:
        name, prompt = self.adapter.info.name, self.request.prompt
        pixels = self.request.pixels
        return RunRequest(self.sample, name, prompt, config, cache=cache, mode=mode, pixels=pixels)

    def pixels(self) -> tuple[float, bool]:
        """(grey levels between our pixels and the image processor's, whether ours are what ran)."""
        images, prepared = self.media.images, self.prepared.pixels
        ours = self.adapter.pixels(images, self.request.pixels)
        levels = self.adapter.grey_levels(ours, self.adapter.processed(images))
        return levels, torch.equal(prepared, ours.to(prepared.device, prepared.dtype))

    def prepare(self, shown: Media) -> Prepared:
        """Stage 2 with the setting that is verified."""
        return self.adapter.preprocess(shown, self.request.prompt, self.request.pixels)

    def run(self, request: RunRequest) -> RunResult:
        """The project's own pipeline, over caches of this verification's own."""
        watcher = _Cancelling(self.cancelled)
        return pipeline.run(self.adapter, request, self.cache, watcher, self.kept)

    def options(self, config: DecodeConfig) -> dict[str, Any]:
        stopping = StoppingCriteriaList([CancelBetweenTokens(self.cancelled)])
        chosen = decode.generation_config(config, self.adapter.eos_ids)
        return generate_options(chosen, None, stopping)

    def _watched(self, way: str, request: RunRequest) -> Answer:
        pipeline.prepare(self.cache)  # the watch and the run's clock then start together
        self.adapter.compile_ahead(request)
        with Watch(self.adapter) as watch:
            result = self.run(request)
        if result.generation.stop == "cancelled":
            raise Cancelled("The verification was cancelled.")
        return watch.answer(way, result.generation.token_ids, result)

    def new_ids(self, out: torch.Tensor, steps: int) -> tuple[int, ...]:
        """The new ids of what generate() returned: as many as the head computed."""
        if self.cancelled():
            raise Cancelled("The verification was cancelled.")
        ids = out[0].tolist()
        prompt = self.prepared.input_ids[0].tolist()
        if ids[: len(prompt)] == prompt and len(ids) == len(prompt) + steps:
            ids = ids[len(prompt) :]
        return tuple(ids)


class _Cancelling(Nobody):
    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self.cancelled = cancelled  # type: ignore[method-assign]


@torch.inference_mode()
def rounding(adapter: Adapter, plain: Answer) -> float:
    """How far logits may lie apart by rounding alone, here, in this dtype: twice the noise.

    The noise is the largest difference between plain's logits, computed token by token, and those
    of one pass over the same embeddings and tokens; at least one unit in the last place.
    """
    ids = torch.tensor([plain.ids[:-1]], dtype=torch.long, device=adapter.device)
    embeds = torch.cat([plain.embeds, adapter.model.get_input_embeddings()(ids)], dim=1)
    decoder = adapter.decoder
    hidden = decoder.language_model(inputs_embeds=embeds, use_cache=False).last_hidden_state
    again = decoder.head(hidden[0, -len(plain.ids) :]).float().cpu()
    unit = torch.finfo(adapter.dtype).eps * float(plain.logits.abs().max())
    return 2 * max(float((again - plain.logits).abs().max()), unit)
