"""The engine's data types: what the stages pass to one another, and the result of a run.

Boundary: frozen dataclasses only.  NumPy and torch are imported for annotations only, so importing
this module is cheap.  All durations are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from engine.errors import BadInput
from engine.media_options import COUNT_SPLIT, Perturbation, Split, Window, perturbed_text
from engine.prompts import MAX_ASKED_CHARS, check_question, plain_question
from engine.quoting import number, quoted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

    from engine.machine.clocks import Moment
    from engine.machine.load import MachineLoad

Image: TypeAlias = "npt.NDArray[np.uint8]"  # [H, W, 3] RGB
# left, top, right, bottom as shares of the picture, 0 to 1
Box: TypeAlias = tuple[float, float, float, float]
MediaKind = Literal["events", "video", "image"]
CachePolicy = Literal["use", "refresh", "off"]
Mode = Literal["decoupled", "hooked"]
Backend = Literal["auto", "eager", "compiled"]  # auto: compiled on CUDA, eager elsewhere
Ran = Literal["eager", "compiled", "generate"]  # what decoded; generate: the model's own method
Pixels = Literal["exact", "fast"]
Extent = Literal["slice", "stream"]
ChoiceForm = Literal["letters", "words"]
StageName = Literal["load", "preprocess", "vision", "decode"]
Doing = Literal["compile"] | StageName  # compiling is not a stage
Source = Literal["measured", "cached", "hook", "derived"]
Stop = Literal["eos", "length", "cancelled"]

STAGES: tuple[StageName, ...] = get_args(StageName)
BACKENDS: tuple[Backend, ...] = get_args(Backend)
FRAME_RULES: tuple[str, ...] = ("arange", "spread", "linspace")
CACHES: tuple[CachePolicy, ...] = get_args(CachePolicy)
MODES: tuple[Mode, ...] = get_args(Mode)
PIXELS: tuple[Pixels, ...] = get_args(Pixels)  # how stage 2 resizes pictures
# The size of pictures of raw events: from each slice, or from the whole stream.
EXTENTS: tuple[Extent, ...] = get_args(Extent)
CHOICES: Mapping[str, tuple[str, ...]] = {
    "backend": BACKENDS,
    "frames": FRAME_RULES,
    "cache": CACHES,
    "mode": MODES,
    "pixels": PIXELS,
    "extent": EXTENTS,
}
# Settings in words, for pages and reports.
FRAME_WORDS: Mapping[str, str] = {
    "arange": "evenly spaced",
    "spread": "first-to-last",
    "linspace": "first-to-last, rounded-down",
}
CACHE_WORDS = {"use": "cache on", "refresh": "cache refreshed", "off": "cache off"}
EXTENT_WORDS: Mapping[str, str] = {"slice": "sized by slice", "stream": "sized by stream"}
VARIANT_MARK = "@"  # between a model's name and the words of a variant, joined by "+"
MAX_NEW_TOKENS = 4096
MIN_TEMPERATURE = 0.01  # lower values overflow the scores


@dataclass(frozen=True, eq=False)
class Events:
    """A stream of N brightness changes.  t in microseconds; p is 1 for brighter, 0 for darker."""

    x: npt.NDArray[np.uint16]
    y: npt.NDArray[np.uint16]
    t: npt.NDArray[np.int64]
    p: npt.NDArray[np.uint8]
    width: int
    height: int
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.t)

    def take(self, which: slice | npt.NDArray[Any]) -> Events:
        """The chosen events: a slice, a mask or indices."""
        x, y, t, p = self.x[which], self.y[which], self.t[which], self.p[which]
        return replace(self, x=x, y=y, t=t, p=p)

    @property
    def duration_ms(self) -> float:
        """Between the smallest and the largest timestamp."""
        return float(self.t.max() - self.t.min()) / 1000 if len(self.t) else 0.0


@dataclass(frozen=True)
class Sample:
    """One record of a dataset: the files that exist, and why others are missing.

    `missing` maps a media kind ("events", "video", "image") to the reason why it is missing.
    `problems` are sentences about the whole record; `truth` is the known content of a scene.
    `window`: the part of the recording that the sample is; None for all of it.  `boxes`: where the
    things of a generated scene are, in its middle frame and on the canvas of its event stream.

    Of a multiple-choice question: `choices` are its options; `question` holds the whole text as
    it is asked; `choice_form`: whether the answer is a letter or the words of an option; `answer`:
    the letter of the right option, "" if not known; `task`: its kind in the benchmark.
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
    window: Window | None = None
    choices: tuple[str, ...] = ()
    choice_form: ChoiceForm = "letters"
    answer: str = ""
    task: str = ""
    boxes: Mapping[str, tuple[Box, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ChosenFrames:
    """Which frames of a clip, or of a folder (`clip` None), of `count` frames are shown.

    `rate`: the clip's average number of frames per second; None if it does not say.
    """

    indices: tuple[int, ...]
    count: int
    clip: Path | None = None
    rate: float | None = None

    @property
    def shown_rate(self) -> float | None:
        """The average number of shown frames per second of the clip."""
        span = self.indices[-1] - self.indices[0]
        return self.rate * (len(self.indices) - 1) / span if self.rate and span > 0 else None


@dataclass(frozen=True, eq=False)
class Media:
    """Stage 1's result: the pictures that a model receives.

    `digest` depends on the file's content, the rule and the reader's version, but not on a file
    name.  `rule` is the frame rule, or the extent of pictures drawn from raw events; "" for
    pictures that are shown unchanged.  images[i] is frame frames.indices[i]; `frames` is None for
    event pictures.
    """

    kind: MediaKind
    images: tuple[Image, ...]
    digest: str
    source: str
    rule: str = ""
    notes: tuple[str, ...] = ()
    frames: ChosenFrames | None = None

    @property
    def shown(self) -> str:
        """The source and the rule in words."""
        rule = EXTENT_WORDS.get(self.rule, self.rule)
        return f"{self.source} ({rule})" if rule else self.source

    @property
    def extent(self) -> Extent | None:
        """The extent of pictures drawn from raw events; None if none were drawn."""
        return next((extent for extent in EXTENTS if extent == self.rule), None)


@dataclass(frozen=True)
class DecodeConfig:
    """How stage 4 chooses tokens; the only source of these values.

    Temperature 0 is greedy; above 0, tokens are sampled with the seed.
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
        check_choices(self)

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise BadInput(f"{name} is {number(value)}: choose a value from {low:,} to {high:,}.")


def check_choices(options: object) -> None:
    """Raises BadInput if a field listed in CHOICES has another value than those."""
    for name, allowed in CHOICES.items():
        value = getattr(options, name, None)
        if value is not None and value not in allowed:
            raise BadInput(f"{name} is {quoted(value)}: choose one of {', '.join(allowed)}.")


@dataclass(frozen=True, kw_only=True)
class MediaOptions:
    """What a sample's files become in stage 1.

    `extent`, `window` and `split` are of pictures drawn from raw events; `window` None is that of
    the sample.  `perturb` changes the events or the frames, from `perturb_seed` on.
    """

    frames: str = "arange"
    extent: Extent = "slice"
    window: Window | None = None
    split: Split = COUNT_SPLIT
    perturb: tuple[Perturbation, ...] = ()
    perturb_seed: int = 0

    def __post_init__(self) -> None:
        check_choices(self)
        _check("perturb_seed", self.perturb_seed, 0, 2**32 - 1)

    def window_of(self, sample: Sample) -> Window | None:
        """The part of the sample's recording that is shown; None: all of it."""
        return self.window or sample.window

    @property
    def media(self) -> MediaOptions:
        """These options alone, without those of a subclass."""
        return MediaOptions(**{one.name: getattr(self, one.name) for one in fields(MediaOptions)})

    @property
    def perturbed(self) -> str:
        """The changes of strength above 0 and their seed; "" for none."""
        return perturbed_text(tuple(one for one in self.perturb if one.strength), self.perturb_seed)


DEFAULT_MEDIA = MediaOptions()


@dataclass(frozen=True, kw_only=True)
class RunOptions(MediaOptions):
    """The settings of a run, apart from its model, sample and question."""

    decode: DecodeConfig = DecodeConfig()
    cache: CachePolicy = "use"
    mode: Mode = "decoupled"
    pixels: Pixels = "exact"

    def ask(self, sample: Sample, model: str, prompt: str, prefix: bool = False) -> RunRequest:
        """The request for one answer with these options."""
        values: dict[str, Any] = {
            option.name: getattr(self, option.name) for option in fields(RunOptions)
        }
        return RunRequest(sample, model, prompt, prefix, **values)


@dataclass(frozen=True)
class RunRequest(RunOptions):
    """One model, one sample, one question.

    With `prefix` the run continues from a prompt prefix that an earlier run kept; such a run is
    never measured.  `pixels` is that of the model's name, if it has one.
    """

    sample: Sample
    model: str
    prompt: str
    prefix: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prompt", check_question(self.prompt, MAX_ASKED_CHARS))
        object.__setattr__(self, "pixels", pixels_of(self.model) or self.pixels)
        for name, value, needed in (("cache", self.cache, "use"), ("mode", self.mode, "decoupled")):
            if self.prefix and value != needed:
                raise BadInput(
                    f"prefix needs {name} {needed!r}, but {name} is {value!r}: change one of them."
                )


def pixels_of(model: str) -> Pixels | None:
    """The pixel setting in the name of a variant, as in NAME@fast; None if it has none."""
    words = model.partition(VARIANT_MARK)[2].split("+")
    return next((setting for setting in PIXELS if setting in words), None)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Stage 2's result: pixels for the vision tower, and the prompt's ids [1, S].

    `setting` is how the pixels were made; features of the two settings are kept apart.  `inputs`
    holds what else the checkpoint's processor gives, such as grids and token types.
    """

    pixels: torch.Tensor
    input_ids: torch.Tensor
    digest: str
    context_tokens: int
    setting: Pixels = "exact"
    pixel_name: str = "pixel_values"  # as the model's own generate() calls the pixels
    inputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Features:
    """Stage 3's result: named tensors after projector and pooling, before they meet the text.

    The three families with an adapter of their own have a single tensor "rows" [V, hidden].
    """

    tensors: Mapping[str, torch.Tensor]

    @property
    def rows(self) -> torch.Tensor:
        """The tensor "rows" [V, hidden]; KeyError for features of another form."""
        return self.tensors["rows"]

    def changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Features:
        """The same names with changed tensors, such as on another device or zeros."""
        return Features({name: change(tensor) for name, tensor in self.tensors.items()})


@dataclass(frozen=True)
class FeatureSpec:
    """Everything that cached features depend on: hashed into their key and checked on reading."""

    model: str
    checkpoint: str
    processor: str
    dtype: str
    device: str
    code: str
    media: str
    quantization: str | None = None
    question: str = ""  # of features that depend on it, as a Q-Former's do


@dataclass(frozen=True)
class TensorSpec:
    """Shape, dtype and size of a tensor that passed between two stages."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


@dataclass(frozen=True)
class Generation:
    """New tokens only, with the EOS token.  token_ms are times since the start of the run.

    text_ends: the number of characters of the text that are known after each token; () if unknown.
    """

    token_ids: tuple[int, ...]
    text: str
    stop: Stop
    prompt_tokens: int
    token_ms: tuple[float, ...]
    text_ends: tuple[int, ...] = ()


@dataclass(frozen=True)
class PrefixUse:
    """What a run did with its prompt's prefix, and the number of its tokens."""

    state: Literal["kept", "reused"]
    tokens: int


@dataclass(frozen=True)
class Span:
    """A stage (or "decode.prefill", "decode.steps") on the run's clock, which starts at 0.

    `original_ms`: for a cached stage, its time when it was computed; None if unknown.
    `cpu_ms`: CPU time of all threads of the process; None on other devices.  `waited_ms`: how long
    the run's thread was ready but had no core; None if unknown.
    """

    name: str
    start_ms: float
    ms: float
    source: Source = "measured"
    original_ms: float | None = None
    cpu_ms: float | None = None
    waited_ms: float | None = None


def _check_stages(spans: tuple[Span, ...]) -> None:
    """Rejects a stage that is not listed, because its time would count as unaccounted."""
    for span in spans:
        if span.name.partition(".")[0] not in (*STAGES, "compile"):
            raise ValueError(f"{span.name} is no stage: add it to StageName.")


@dataclass(frozen=True)
class Tower:
    """The shape of a vision tower: width, depth, heads, and its input in pixels.

    None: config.json does not say, or the tower takes pictures of any size.
    """

    hidden: int | None
    layers: int | None
    heads: int | None
    image_size: int | None
    patch_size: int | None

    @property
    def patches(self) -> int:
        if self.image_size is None or self.patch_size is None:
            raise ValueError("the number of patches of this tower is not fixed")
        return (self.image_size // self.patch_size) ** 2


@dataclass(frozen=True)
class ModelInfo:
    """A model's card: its entry in models.toml and what is known of its checkpoint.

    `shows`: what the model is shown; None means what its family usually gets.

    `headers` is the digest of the weights' names, shapes and sizes; `digest` that of every byte
    ("" if not computed yet).  None means unknown until the model is loaded.  `missing` names the
    weights that the checkpoint lacks (such a model is never run), `extra` those that the model has
    no place for.  `questions` is None if the checkpoint declares no list of questions.
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
    images: int | None = None  # number of pictures that give visual_tokens
    context_limit: int | None = None
    missing: tuple[str, ...] | None = None
    extra: tuple[str, ...] | None = None
    questions: frozenset[str] | None = None  # plain_question() of each trained one
    generation: tuple[str, ...] = ()  # which of its generation settings are followed
    shows: MediaKind | None = None

    @property
    def precision(self) -> str:
        """The computing dtype: "float16", or "float16 4bit" for a quantized model."""
        return f"{self.dtype} {self.quantization}" if self.quantization else self.dtype

    def off_script(self, question: str) -> bool | None:
        """Whether the question is not on the checkpoint's list; None if it declares no list."""
        return None if self.questions is None else plain_question(question) not in self.questions


@dataclass(frozen=True)
class Batch:
    """Times of several samples that were answered together; spans as in RunResult.

    No figure belongs to a single sample.  The vision span covers the `size - cached` samples whose
    features were computed; it is absent if all features came from the cache.
    """

    id: str
    size: int
    spans: tuple[Span, ...]
    total_ms: float
    tokens: int  # new tokens of all samples
    cached: int = 0

    def __post_init__(self) -> None:
        _check_stages(self.spans)

    def span(self, name: str) -> Span | None:
        return next((span for span in self.spans if span.name == name), None)

    @property
    def tokens_per_s(self) -> float:
        """New tokens of all samples / duration of the batch in seconds."""
        return 1000 * self.tokens / self.total_ms

    @property
    def samples_per_s(self) -> float:
        return 1000 * self.size / self.total_ms


@dataclass(frozen=True)
class RunResult:
    """The result of one run.

    A sample of a `batch` has its own answer but no spans and no token times; its total_ms is that
    of the batch.  `clocks` holds the start and the end of the run on two clocks.  `machine_load`
    is how busy the machine was during the run.
    """

    request: RunRequest
    model: ModelInfo
    spans: tuple[Span, ...]
    generation: Generation
    total_ms: float
    cold: bool
    backend: Ran = "eager"
    shown: str = ""  # the model's input: source, frames and their rule
    tensors: tuple[TensorSpec, ...] = ()
    notes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: PrefixUse | None = None
    batch: Batch | None = None
    extent: Extent | None = None  # of the event pictures; None if none were drawn
    clocks: tuple[Moment, Moment] | None = None
    machine_load: MachineLoad | None = None
    token_limit: int | None = None  # of new tokens: as requested, or what the context has room for
    letter_logprobs: Mapping[str, float] | None = None  # of a lettered question: letter_scores.py

    def __post_init__(self) -> None:
        _check_stages(self.spans)

    def span(self, name: str) -> Span | None:
        return next((span for span in self.spans if span.name == name), None)

    @property
    def off_script(self) -> bool | None:
        """Whether the model was not trained on the question; None if it declares no list."""
        return self.model.off_script(self.request.prompt)

    @property
    def new_tokens(self) -> int:
        return len(self.generation.token_ids)

    @property
    def ttft_ms(self) -> float | None:
        """From the start of the run to the first new token, without time in the queue."""
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
        """Total time minus the time of the four stages."""
        return self.total_ms - sum(s.ms for s in self.spans if s.name in STAGES)

    @property
    def uncached_total_ms(self) -> float | None:
        """The total without cache: each cached stage counts with its time when it was computed.

        Parts of a stage ("decode.prefill") are not added again.  None if a stage's original time
        is unknown, as for a decode stage that reused another question's prefix.
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
