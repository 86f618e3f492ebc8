"""The nouns of the engine: what passes from one stage to the next, and what a run leaves behind.

Boundary: frozen dataclasses only.  NumPy and torch appear in annotations alone, so that importing
this module costs nothing.  All durations are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from engine.errors import BadInput
from engine.prompts import check_question, plain_question
from engine.quoting import number, quoted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

    from engine.machine.clocks import Moment
    from engine.machine.load import MachineLoad

Image: TypeAlias = "npt.NDArray[np.uint8]"  # [H, W, 3] RGB
MediaKind = Literal["events", "video", "image"]
CachePolicy = Literal["use", "refresh", "off"]
Mode = Literal["decoupled", "hooked"]
Backend = Literal["auto", "eager", "compiled"]  # auto: compiled on CUDA, eager elsewhere
Ran = Literal["eager", "compiled", "generate"]  # what decoded; generate: the model's own
Pixels = Literal["exact", "fast"]
Extent = Literal["slice", "stream"]
StageName = Literal["load", "preprocess", "vision", "decode"]
Doing = Literal["compile"] | StageName  # compiling is no stage
Source = Literal["measured", "cached", "hook", "derived"]
Stop = Literal["eos", "length", "cancelled"]

STAGES: tuple[StageName, ...] = get_args(StageName)
BACKENDS: tuple[Backend, ...] = ("auto", "eager", "compiled")
FRAME_RULES = ("arange", "spread", "linspace")
PIXELS: tuple[Pixels, ...] = ("exact", "fast")  # how stage 2 resizes pictures
# How large pictures of raw events are: each as its own slice, or all as the whole stream.
EXTENTS: tuple[Extent, ...] = ("slice", "stream")
EXTENT_WORDS: Mapping[str, str] = {"slice": "sized by slice", "stream": "sized by stream"}
MAX_NEW_TOKENS = 4096
MIN_TEMPERATURE = 0.01  # below it scores overflow


@dataclass(frozen=True, eq=False)
class Events:
    """A stream of N brightness changes.  t in microseconds, p 1 for brighter and 0 for darker."""

    x: npt.NDArray[np.uint16]
    y: npt.NDArray[np.uint16]
    t: npt.NDArray[np.int64]
    p: npt.NDArray[np.uint8]
    width: int
    height: int
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.t)

    @property
    def duration_ms(self) -> float:
        """From the first to the last timestamp in the file's order."""
        return float(self.t.max() - self.t.min()) / 1000 if len(self.t) else 0.0


@dataclass(frozen=True)
class Sample:
    """One record of a dataset, with the files that exist and the reasons for those that do not.

    `missing` maps a media kind ("events", "video", "image") to why the sample cannot give it.
    `problems` are sentences about the record as a whole; `truth` is a scene's known content.
    """

    id: str
    sequence: str
    question: str = ""
    reference: str = ""
    event_images: tuple[Path, ...] = ()
    events: Path | None = None
    frames: tuple[Path, ...] = ()
    mp4: Path | None = None
    images: tuple[Path, ...] = ()
    truth: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Media:
    """Stage 1's result: the pictures one model is shown.

    `digest` is made of the file's content, the rule and the reader's version, never of a name:
    equal content under another name has the same digest.  `rule` is the frame rule, or the extent
    of pictures that were drawn from raw events; "" for pictures that are shown as they are.
    """

    kind: MediaKind
    images: tuple[Image, ...]
    digest: str
    source: str
    rule: str = ""
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The source and the rule in words."""
        rule = EXTENT_WORDS.get(self.rule, self.rule)
        return f"{self.source} ({rule})" if rule else self.source

    @property
    def extent(self) -> Extent | None:
        """How large event pictures were drawn; None where none were drawn."""
        return next((extent for extent in EXTENTS if extent == self.rule), None)


@dataclass(frozen=True)
class DecodeConfig:
    """How stage 4 chooses tokens; the only source of these values.

    temperature 0 is greedy; a temperature above 0 samples from the seed.
    """

    max_new_tokens: int = 256
    min_new_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        _check("max_new_tokens", self.max_new_tokens, 1, MAX_NEW_TOKENS)
        _check("min_new_tokens", self.min_new_tokens, 0, self.max_new_tokens)
        _check("temperature", self.temperature, 0.0, 5.0)
        if 0 < self.temperature < MIN_TEMPERATURE:
            raise BadInput(
                f"temperature is {self.temperature}: choose 0 (greedy) or at least "
                f"{MIN_TEMPERATURE}."
            )
        _check("top_p", self.top_p, 0.01, 1.0)
        _check("seed", self.seed, 0, 2**32 - 1)
        _among("backend", self.backend, BACKENDS)

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise BadInput(f"{name} is {number(value)}: choose a value from {low:,} to {high:,}.")


def _among(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadInput(f"{name} is {quoted(value)}: choose one of {', '.join(allowed)}.")


@dataclass(frozen=True)
class RunRequest:
    """One model, one sample, one question."""

    sample: Sample
    model: str
    prompt: str
    decode: DecodeConfig = DecodeConfig()
    frames: str = "arange"
    cache: CachePolicy = "use"
    mode: Mode = "decoupled"
    pixels: Pixels = "exact"
    prefix: bool = False  # go on from a prompt's beginning that was read before; never measured
    extent: Extent = "slice"  # how large pictures are drawn from raw events

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt", check_question(self.prompt))
        for name, value, allowed in (
            ("frames", self.frames, FRAME_RULES),
            ("cache", self.cache, ("use", "refresh", "off")),
            ("mode", self.mode, ("decoupled", "hooked")),
            ("pixels", self.pixels, PIXELS),
            ("extent", self.extent, EXTENTS),
        ):
            _among(name, value, allowed)
        self._check_prefix()

    def _check_prefix(self) -> None:
        for name, value, needed in (("cache", self.cache, "use"), ("mode", self.mode, "decoupled")):
            if self.prefix and value != needed:
                raise BadInput(
                    f"prefix goes with {name} {needed!r} and {name} is {value!r}: change one of "
                    "them."
                )


@dataclass(frozen=True, eq=False)
class Prepared:
    """Stage 2's result: pixels as the vision tower takes them, and the prompt's ids [1, S].

    `setting` says how the pixels were made; features of one setting are none of the other.
    """

    pixels: torch.Tensor
    input_ids: torch.Tensor
    digest: str
    context_tokens: int
    setting: Pixels = "exact"


@dataclass(frozen=True)
class FeatureSpec:
    """What cached features depend on; part of their key and checked when they are read."""

    model: str
    checkpoint: str
    processor: str
    dtype: str
    device: str
    code: str
    media: str
    quantization: str | None = None


@dataclass(frozen=True, eq=False)
class Features:
    """Stage 3's result, after projector, adaptor and pooling: visual rows [V, hidden]."""

    rows: torch.Tensor
    spec: FeatureSpec


@dataclass(frozen=True)
class TensorSpec:
    """Shape, dtype and size of what passed between two stages."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


@dataclass(frozen=True)
class Generation:
    """New tokens only; the EOS is counted.  token_ms are times since the run's start."""

    token_ids: tuple[int, ...]
    text: str
    stop: Stop
    prompt_tokens: int
    token_ms: tuple[float, ...]


@dataclass(frozen=True)
class PrefixUse:
    """What a run did with its prompt's prefix, which has so many tokens."""

    state: Literal["kept", "reused"]
    tokens: int


@dataclass(frozen=True)
class Span:
    """A stage (or "decode.prefill", "decode.steps") on the run's own clock, which starts at 0.

    `original_ms`: what a cached one took when it was computed; None where that is not known.
    `cpu_ms` is the CPU time of the process meanwhile, all its threads; None where another device
    computes.  `waited_ms`: how long the run's thread was ready and had no core; None: not known.
    """

    name: str
    start_ms: float
    ms: float
    source: Source = "measured"
    original_ms: float | None = None
    cpu_ms: float | None = None
    waited_ms: float | None = None


def _check_stages(spans: tuple[Span, ...]) -> None:
    """A stage that is not listed would be counted as unaccounted time, and nobody would notice."""
    for span in spans:
        if span.name.partition(".")[0] not in (*STAGES, "compile"):
            raise ValueError(f"{span.name} is no stage: add it to StageName.")


@dataclass(frozen=True)
class Tower:
    """The shape of a CLIP vision tower: its width, depth and heads, and the pixels it takes."""

    hidden: int
    layers: int
    heads: int
    image_size: int
    patch_size: int

    @property
    def patches(self) -> int:
        return (self.image_size // self.patch_size) ** 2


@dataclass(frozen=True)
class ModelInfo:
    """A model's card: an entry of models.toml and what its checkpoint turned out to be.

    `headers` is the digest of the weights' names, shapes and sizes, `digest` that of every byte
    ("" if nobody has read them yet).  None stands for what is not known before the model is
    loaded; `missing` holds names of weights (a model that lacks one is never run), `extra` those
    that it has no place for.  `questions` is None for a checkpoint that declares no list of them.
    """

    name: str
    family: str
    checkpoint: str
    revision: str | None
    dtype: str
    demo: bool
    digest: str = ""
    device: str = ""
    quantization: str | None = None
    source: str = ""
    headers: str = ""
    parameters: int | None = None
    stored_dtype: str | None = None
    tower: Tower | None = None
    visual_tokens: int | None = None
    images: int | None = None  # of which visual_tokens are made
    context_limit: int | None = None
    missing: tuple[str, ...] | None = None
    extra: tuple[str, ...] | None = None
    questions: frozenset[str] | None = None  # plain_question() of all it was trained on
    generation: tuple[str, ...] = ()  # what of generation_config.json is followed, or is not

    @property
    def precision(self) -> str:
        """What computes: "float16", or "float16 4bit" for a quantized model."""
        return f"{self.dtype} {self.quantization}" if self.quantization else self.dtype

    def off_script(self, question: str) -> bool | None:
        """Whether the checkpoint declares its questions and this is none; None: it does not."""
        return None if self.questions is None else plain_question(question) not in self.questions


@dataclass(frozen=True)
class Batch:
    """What samples that were answered together took together; spans as in RunResult.

    None of it is a sample's own.  The vision span covers the `size - cached` samples whose
    features were computed; it is absent where all were read from the cache.
    """

    id: str
    size: int
    spans: tuple[Span, ...]
    total_ms: float
    tokens: int  # new ones, of all its samples
    cached: int = 0

    def __post_init__(self) -> None:
        _check_stages(self.spans)

    def span(self, name: str) -> Span | None:
        return next((span for span in self.spans if span.name == name), None)

    @property
    def tokens_per_s(self) -> float:
        """New tokens of all samples / seconds from the batch's start to its end."""
        return 1000 * self.tokens / self.total_ms

    @property
    def samples_per_s(self) -> float:
        return 1000 * self.size / self.total_ms


@dataclass(frozen=True)
class RunResult:
    """All that one run left behind.

    Of a sample that was answered in a `batch` only the answer is its own: it has no spans and no
    token times, and total_ms is the batch's.  `clocks` has the start and the end of the run's time
    line on two clocks.  `machine_load` is how busy the machine was meanwhile.
    """

    request: RunRequest
    model: ModelInfo
    spans: tuple[Span, ...]
    generation: Generation
    total_ms: float
    cold: bool
    backend: Ran = "eager"
    shown: str = ""  # what the model was shown: source, frames and their rule
    tensors: tuple[TensorSpec, ...] = ()
    notes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: PrefixUse | None = None
    batch: Batch | None = None
    extent: Extent | None = None  # of the event pictures; None where none were drawn
    clocks: tuple[Moment, Moment] | None = None
    machine_load: MachineLoad | None = None

    def __post_init__(self) -> None:
        _check_stages(self.spans)

    def span(self, name: str) -> Span | None:
        return next((span for span in self.spans if span.name == name), None)

    @property
    def off_script(self) -> bool | None:
        """Whether the model was not trained on the question; None where it declares no list."""
        return self.model.off_script(self.request.prompt)

    @property
    def new_tokens(self) -> int:
        return len(self.generation.token_ids)

    @property
    def ttft_ms(self) -> float | None:
        """Start of the run to the first new token (queueing is not part of a run)."""
        times = self.generation.token_ms
        return times[0] if times else None

    @property
    def tpot_ms(self) -> float | None:
        """(end of the run - TTFT) / (N - 1); None for N <= 1."""
        times = self.generation.token_ms
        return (self.total_ms - times[0]) / (len(times) - 1) if len(times) > 1 else None

    @property
    def tokens_per_s(self) -> float | None:
        """(N - 1) / time after the first token, in seconds."""
        return 1000 / self.tpot_ms if self.tpot_ms else None

    @property
    def unaccounted_ms(self) -> float:
        """What the four stages do not cover."""
        return self.total_ms - sum(s.ms for s in self.spans if s.name in STAGES)

    @property
    def uncached_total_ms(self) -> float | None:
        """The total with each cached stage at the time it took when it was computed.

        Parts of a stage ("decode.prefill") are in it already.  None where that time is not known
        of a cached stage: of the decode stage that went on from another question's prefix.
        """
        total = self.total_ms
        for span in self.spans:
            if span.name in STAGES and span.source == "cached":
                if span.original_ms is None:
                    return None
                total += span.original_ms - span.ms
        return total

    @property
    def cached(self) -> bool:
        return any(span.source == "cached" for span in self.spans)
