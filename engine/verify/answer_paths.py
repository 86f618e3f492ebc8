"""Computes one answer in several ways and records each from outside.  Nothing relies on what a way
reports: logits come from a hook on the language model's head, and hooks on the vision modules count
encodings, in the same manner for every way."""

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from transformers import GenerationConfig
from transformers.generation import LogitsProcessor

from engine.decoding.decode import ended_by
from engine.errors import Cancelled
from engine.models.adapter import Adapter
from engine.pipeline import Watcher, single_run
from engine.pipeline.feature_cache import FeatureCache
from engine.pipeline.run_stages import answer_rules
from engine.pipeline.single_run import seeded
from engine.types import (
    DecodeConfig,
    Media,
    Prepared,
    Ran,
    RunOptions,
    RunRequest,
    RunResult,
    Sample,
)
from engine.verify.verdict import VerifyRequest

WHOLE = ("plain", "hooked")  # ways of answering by the model's own generate()
WAYS = (*WHOLE, "computed", "decoupled", "features")
ANOTHER_QUESTION = "Anything else?"
# The generation settings that the user decides: length, and how tokens are drawn.
_DRAWN = ("max_length", "num_beams", "temperature", "top_k", "top_p", "min_p", "typical_p",
          "epsilon_cutoff", "eta_cutoff")  # fmt: skip
LEAST_ROOM = 16  # new tokens that the context must have room for: some checks need them


@dataclass(frozen=True)
class ModuleCalls:
    module: str
    calls: int
    pictures: int


@dataclass(frozen=True, eq=False)
class RecordedAnswer:
    """New token ids of one way, and what hooks recorded while they were computed.  logits [steps,
    vocabulary] float32: the head's output, one row per token; embeds [1, context, hidden]: the
    first input of the language model."""

    way: str
    ids: tuple[int, ...]
    logits: torch.Tensor
    embeds: torch.Tensor
    seen: tuple[ModuleCalls, ...]
    result: RunResult | None = None
    head_ms: tuple[float, ...] = ()  # when the head finished each token, since the run's start
    scores: torch.Tensor | None = None  # the logits after the checkpoint's own generation settings

    @property
    def context(self) -> int:
        """Tokens that entered the language model."""
        return int(self.embeds.shape[1])


class AnswerRecorder(ExitStack):
    """Hooks on head, language model and vision modules inside a `with`."""

    def __init__(self, adapter: Adapter) -> None:
        super().__init__()
        self._adapter = adapter
        self.rows: list[torch.Tensor] = []  # the head is called once per token
        self._times: list[float] = []  # seconds of the second clock
        self._embeds = torch.empty(0)
        # Of each vision module the pictures of each call.
        self._pictures = {module: list[int]() for module in adapter.vision_modules()}

    def __enter__(self) -> Self:
        decoder, compiled = self._adapter.decoder, self._adapter.use.compiled
        self.enter_context(decoder.head.register_forward_hook(self._scores))
        if compiled is not None:  # its graph contains the head
            self.enter_context(compiled.register_forward_hook(self._scores))
        model = decoder.language_model
        self.enter_context(model.register_forward_pre_hook(self._first, with_kwargs=True))
        for module in self._pictures:
            self.enter_context(module.register_forward_pre_hook(self._count, with_kwargs=True))
        return self

    def _scores(self, module: Any, arguments: Any, out: Any) -> None:
        scores = out[0] if isinstance(out, tuple) else out  # the compiled step's come with more
        row = scores.detach().reshape(-1, scores.shape[-1])[-1]
        self.rows.append(row.to("cpu", torch.float32, copy=True))  # later changed in place
        self._times.append(time.monotonic())  # after the copy, which waits for the device

    def _first(self, module: Any, arguments: Any, named: dict[str, Any]) -> None:
        if self._embeds.numel():
            return
        ids = named.get("input_ids", arguments[0] if arguments else None)
        if named.get("inputs_embeds") is not None:
            self._embeds = named["inputs_embeds"].detach()
        elif ids is not None:  # a model whose pictures do not stand among the prompt's tokens
            self._embeds = ids.detach()[..., None]

    def _count(self, module: Any, arguments: Any, named: dict[str, Any]) -> None:
        tensors = (t for t in (*arguments, *named.values()) if isinstance(t, torch.Tensor))
        self._pictures[module].append(len(next(tensors)))

    def answer(
        self, way: str, ids: tuple[int, ...], result: RunResult | None = None
    ) -> RecordedAnswer:
        seen = tuple(
            ModuleCalls(type(module).__name__, len(pictures), sum(pictures))
            for module, pictures in self._pictures.items()
        )
        logits = torch.stack(self.rows) if self.rows else torch.empty(0)
        head_ms: tuple[float, ...] = ()
        if result is not None and result.clocks is not None:
            zero = result.clocks[0].second_s
            head_ms = tuple((moment - zero) * 1000 for moment in self._times)
        return RecordedAnswer(way, ids, logits, self._embeds, seen, result, head_ms)


class Subject:
    """One model and one sample, loaded and preprocessed once, with all ways to answer."""

    def __init__(
        self,
        adapter: Adapter,
        sample: Sample,
        request: VerifyRequest,
        folder: Path,
        cancelled: Callable[[], bool],
        shown: Media | None = None,
    ) -> None:
        """`shown` replaces the sample's pictures in every way."""
        self.adapter, self.sample, self.request = adapter, sample, request
        self.cache = FeatureCache(folder, 4096)
        self.cancelled, self.watcher = cancelled, watching(cancelled, shown)
        self.media = self.watcher.load(sample, adapter.kind, request)
        self.prepared: Prepared = adapter.preprocess(self.media, request.prompt)
        most = request.max_new_tokens
        asked = DecodeConfig(max(most, LEAST_ROOM), LEAST_ROOM, backend=request.backend)
        rules, self.notes = answer_rules(adapter, self.prepared, asked)
        most = min(most, rules.config.max_new_tokens)
        self.greedy = replace(rules.config, max_new_tokens=most, min_new_tokens=0)
        # plain, if the checkpoint's settings change scores
        self.judged: RecordedAnswer | None = None

    @property
    def ways(self) -> tuple[str, ...]:
        return WHOLE if "decoupled" in self.adapter.refuses else WAYS

    @property
    def backend(self) -> Ran:
        """The decode backend of the decoupled way, after it has run."""
        if "decoupled" in self.adapter.refuses:
            return "generate"
        step = self.adapter.step_for(self.run_request(self.greedy, "use"))
        return "compiled" if step is not None and not step.failure else "eager"

    @torch.inference_mode()
    def plain(self, config: DecodeConfig) -> RecordedAnswer:
        """The model's own generate() on pixels; seeded here, not by the code that seeds runs."""
        seen, on = _ScoreRecorder(), self.adapter.device
        options = self.options(config) | {"logits_processor": [seen]}
        devices = [] if on.type == "cpu" else [on]
        kept = torch.random.fork_rng(devices, device_type=on.type if devices else "cuda")
        with AnswerRecorder(self.adapter) as watch, kept:
            torch.manual_seed(config.seed)
            out = self.adapter.generate(self.prepared, **options)
        answer = watch.answer("plain", self.new_ids(out, len(watch.rows)))
        if self.adapter.rules and config.greedy:
            answer = self.judged = replace(answer, scores=torch.stack(seen.rows))
        return answer

    @torch.inference_mode()
    def features(self, config: DecodeConfig) -> RecordedAnswer:
        """The model's own generate() on features encoded before."""
        found = self.adapter.encode(self.prepared)
        with AnswerRecorder(self.adapter) as watch, seeded(config.seed, self.adapter.device):
            out = self.adapter.generate_from_features(self.prepared, found, **self.options(config))
        return self._scored(watch.answer("features", self.new_ids(out, len(watch.rows))))

    @torch.inference_mode()
    def units(self) -> int | None:
        """What the vision tower takes for the pictures in one encoding, as tiles or patches; None
        if it takes the pictures themselves."""
        if self.adapter.tower_takes_pictures:
            return None
        with AnswerRecorder(self.adapter) as watch:
            self.adapter.see(self.prepared)
        return watch.answer("encoded alone", ()).seen[0].pictures

    def hooked(self, config: DecodeConfig) -> RecordedAnswer:
        return self._watched("hooked", self.run_request(config, "off", "hooked"))

    def computed(self, config: DecodeConfig) -> RecordedAnswer:
        """The decoupled way with features that are encoded now and written to disk."""
        return self._watched("decoupled, computed", self.run_request(config, "refresh"))

    def decoupled(self, config: DecodeConfig) -> RecordedAnswer:
        """The decoupled way with features read back from disk."""
        return self._watched("decoupled", self.run_request(config, "use"))

    def run_request(self, config: DecodeConfig, cache: Any, mode: Any = "decoupled") -> RunRequest:
        how = RunOptions(decode=config, cache=cache, mode=mode, **vars(self.request.media))
        return RunRequest(self.sample, self.adapter.info.name, self.request.prompt, how)

    def run(self, request: RunRequest) -> RunResult:
        """Runs the project's pipeline with a cache that only this verification uses."""
        return single_run.run(self.adapter, request, self.cache, self.watcher)

    def options(self, config: DecodeConfig) -> dict[str, Any]:
        stopping = ended_by(self.cancelled)
        return {"generation_config": self.own_generation(config), "stopping_criteria": stopping}

    def own_generation(self, config: DecodeConfig) -> GenerationConfig:
        """The checkpoint's configuration; only length and drawing are the user's choice."""
        chosen = copy.deepcopy(self.adapter.own_generation)
        for name in _DRAWN:
            setattr(chosen, name, None)
        least = max(chosen.min_new_tokens or 0, config.min_new_tokens)
        chosen.min_new_tokens = min(least, config.max_new_tokens) or None
        chosen.max_new_tokens, chosen.do_sample = config.max_new_tokens, not config.greedy
        if chosen.min_length:
            most = self.prepared.context_tokens + config.max_new_tokens
            chosen.min_length = min(chosen.min_length, most)
        if not config.greedy:
            chosen.temperature, chosen.top_p, chosen.top_k = config.temperature, config.top_p, 0
        chosen.eos_token_id = list(self.adapter.eos_ids)
        chosen.pad_token_id = self.adapter.eos_ids[0]
        return chosen

    def _watched(self, way: str, request: RunRequest) -> RecordedAnswer:
        single_run.prepare(self.cache)
        self.adapter.compile_ahead(request)
        with AnswerRecorder(self.adapter) as watch:
            result = self.run(request)
        if result.generation.stop == "cancelled":
            raise Cancelled("The verification was cancelled.")
        return self._scored(watch.answer(way, result.generation.token_ids, result))

    def _scored(self, answer: RecordedAnswer) -> RecordedAnswer:
        """Adds plain's scores if the tokens are equal, as the settings then give equal scores."""
        same = self.judged is not None and answer.ids == self.judged.ids
        return replace(answer, scores=self.judged.scores) if same and self.judged else answer

    def text(self, ids: Sequence[int]) -> str:
        """Ids as text: special tokens are removed first, then the tokenizer decodes the rest."""
        tokenizer = self.adapter.tokenizer
        added = tokenizer.added_tokens_decoder.items()
        special = {*tokenizer.all_special_ids, *(one for one, token in added if token.special)}
        kept = [one for one in ids if one not in special]
        return str(tokenizer.decode(kept, skip_special_tokens=False)).strip()

    def new_ids(self, out: torch.Tensor, steps: int) -> tuple[int, ...]:
        """The new ids in generate()'s result: as many as the head computed."""
        if self.cancelled():
            raise Cancelled("The verification was cancelled.")
        ids = out[0].tolist()
        prompt = self.prepared.input_ids[0].tolist()
        if ids[: len(prompt)] == prompt and len(ids) == len(prompt) + steps:
            ids = ids[len(prompt) :]
        return tuple(ids)


def watching(cancelled: Callable[[], bool], shown: Media | None = None) -> Watcher:
    watcher = Watcher()
    watcher.cancelled = cancelled  # type: ignore[method-assign]
    if shown is not None:
        watcher.load = lambda *_: shown  # type: ignore[method-assign]
    return watcher


class _ScoreRecorder(LogitsProcessor):
    """Records the scores that generate() chooses from: logits after the checkpoint's settings."""

    def __init__(self) -> None:
        self.rows: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.rows.append(scores[0].detach().float().cpu())
        return scores


@torch.inference_mode()
def rounding(adapter: Adapter, prepared: Prepared, plain: RecordedAnswer) -> float:
    """The largest difference of logits that rounding explains in this dtype: twice the noise.  The
    noise is the largest difference between plain's logits, computed token by token, and the logits
    of one pass over the same prompt and tokens; at least one unit in the last place."""
    unit = torch.finfo(adapter.dtype).eps * float(plain.logits.abs().max())
    again = adapter.again(plain.embeds, prepared, plain.ids)
    if again is None:  # its forward() needs the pixels
        return 2 * unit
    noise = (again.float().cpu() - plain.logits[: len(again)]).abs()
    return 2 * max(float(noise.max()), unit)
