"""The engine's data types: what the stages pass to one another, and the result of a run.

Span, DecodeConfig and TensorSpec are also what a result row stores: msgspec writes them
and checks their types and ranges when it reads them.  NumPy and torch are imported for annotations
only, so importing this module is cheap.  All durations are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from engine.errors import BadInput
from engine.machine.load import MachineLoad, Moment
from engine.media_options import (
    COUNT_SPLIT,
    Option,
    Perturbation,
    Split,
    Window,
    check_options,
    check_range,
    option,
    options_of,
    perturbations,
)
from engine.media_options import split as read_split
from engine.media_options import window as read_window
from engine.plain_files import Count, Difference, Lasting, Time
from engine.prompts import MAX_ASKED_CHARS, check_question, plain_question
from engine.quoting import count

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

Image: TypeAlias = "npt.NDArray[np.uint8]"  # [H, W, 3] RGB
# left, top, right, bottom as shares of the picture, 0 to 1
Box: TypeAlias = tuple[float, float, float, float]
MediaKind = Literal["events", "video", "image"]
CachePolicy = Literal["use", "refresh", "off"]
Mode = Literal["decoupled", "hooked"]
Backend = Literal["auto", "eager", "compiled"]  # auto: compiled on CUDA, eager elsewhere
# What decoded; generate: the model's own method; server: nobody here.
Ran = Literal["eager", "compiled", "generate", "server"]
Extent = Literal["slice", "stream"]
ChoiceForm = Literal["letters", "words"]
StageName = Literal["load", "preprocess", "vision", "decode"]
Doing = Literal["compile", "server"] | StageName  # these two are no stages
Source = Literal["measured", "cached", "hook", "derived"]
Stop = Literal["eos", "length", "cancelled"]

STAGES: tuple[StageName, ...] = get_args(StageName)
SERVER = "server"  # the span of all that happens at a server, and its parts
FEW_TOKENS, AT_ONCE_MS = 4, 0.1  # fewer do not show it; of each token: quicker is no stream
SERVER_PARTS = ("server.upload", "server.first", "server.rest")
# The size of pictures of raw events: from each slice, or from the whole stream.
EXTENTS: tuple[Extent, ...] = get_args(Extent)
# Settings in words, for pages and reports.
FRAME_WORDS: Mapping[str, str] = {
    "arange": "evenly spaced",
    "spread": "first-to-last",
    "linspace": "first-to-last, rounded-down",
}
FRAME_RULES = tuple(FRAME_WORDS)
CACHE_WORDS = {"use": "cache on", "refresh": "cache refreshed", "off": "cache off"}
EXTENT_WORDS: Mapping[str, str] = {"slice": "sized by slice", "stream": "sized by stream"}
WHOLE = "the sample's whole recording or window"
OWN = "own files"  # the sequence of a sample of files that a user gave
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
    """Which frames of a clip, or of a folder (`clip` None), of `count` frames are shown.  `rate`:
    the clip's average number of frames per second; None if it does not say."""

    indices: tuple[int, ...]
    count: int
    clip: Path | None = None
    rate: float | None = None

    @property
    def shown_rate(self) -> float | None:
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
        rule = EXTENT_WORDS.get(self.rule, self.rule)
        return f"{self.source} ({rule})" if rule else self.source

    @property
    def extent(self) -> Extent | None:
        """The extent of pictures drawn from raw events; None if none were drawn."""
        return next((extent for extent in EXTENTS if extent == self.rule), None)


@dataclass(frozen=True)
class DecodeConfig:
    """How stage 4 chooses tokens; the only source of these values.  Temperature 0 is greedy; above
    0, tokens are sampled with the seed."""

    max_new_tokens: int = option(
        256,
        title="Max new tokens",
        words=lambda how: how.decode.length,
        chip="length",
        box="decoding",
        help="The limit of an answer's length. A model may stop earlier. Prompt, pictures and new "
        "tokens must fit its context.",
        low=1,
        high=MAX_NEW_TOKENS,
        step=16,
        link="tokens",
    )
    min_new_tokens: int = option(0, title="Min new tokens")
    temperature: float = option(
        0.0,
        title="Temperature",
        words=lambda how: how.decode.sampling,
        chip="decoding",
        box="decoding",
        help="0: greedy, always the likeliest token.",
        low=0.0,
        high=5.0,
        step=0.05,
        slider=(0.05, 2.0, 0.7),
    )
    top_p: float = option(
        1.0,
        title="Top p",
        box="decoding",
        help="Tokens are sampled from the likeliest ones that have this share together.",
        low=0.01,
        high=1.0,
        step=0.05,
        slider=(0.05, 1.0, 0.95),
        needs="temperature",
    )
    seed: int = option(
        0,
        title="Seed",
        box="decoding",
        help="The same seed samples the same tokens.",
        low=0,
        high=2**32 - 1,
        needs="temperature",
    )
    backend: Backend = option(
        "auto",
        title="Token steps",
        words=lambda how: f"{how.decode.backend} token steps",
        box="decoding",
        help="How tokens after the first are computed. Eager: operation by operation. Compiled: as "
        "one program, built once per model (seconds to a minute, before the run's clock starts) "
        "and saved on disk. Auto: compiled on CUDA, eager elsewhere. The result says which was "
        "used.",
        choices={"auto": "Auto", "eager": "Eager", "compiled": "Compiled"},
    )

    def __post_init__(self) -> None:
        check_options(self)
        check_range("min_new_tokens", self.min_new_tokens, 0, self.max_new_tokens)
        if 0 < self.temperature < MIN_TEMPERATURE:
            raise BadInput(
                f"temperature is {self.temperature}: choose 0 (greedy) or at least "
                f"{MIN_TEMPERATURE}."
            )

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def forced(self) -> int | None:
        """The forced number of tokens of every answer, or None."""
        return self.max_new_tokens if self.min_new_tokens == self.max_new_tokens else None

    @property
    def length(self) -> str:
        if self.forced:
            return f"forced {self.forced:,} tokens"
        least = f"{self.min_new_tokens:,} to" if self.min_new_tokens else "at most"
        tokens = "new token" if self.max_new_tokens == 1 else "new tokens"
        return f"{least} {self.max_new_tokens:,} {tokens}"

    @property
    def sampling(self) -> str:
        if self.greedy:
            return "greedy"
        values = f"temperature {self.temperature:g}, top p {self.top_p:g}, seed {self.seed}"
        return f"sampled ({values})"


@dataclass(frozen=True, kw_only=True)
class MediaOptions:
    """What a sample's files become in stage 1.  `extent`, `window` and `split` are of pictures
    drawn from raw events; `window` None is that of the sample.  `perturb` changes the events, from
    `perturb_seed` on."""

    frames: str = option(
        "arange",
        title="Frames",
        label="Which 8 frames",
        words=lambda how: f"8 {FRAME_WORDS[how.frames]} frames",
        box="pipeline",
        help="The rule that chooses the frames of video models: evenly from the first (arange), "
        "first to last (spread), first to last rounded down (linspace). The result names it.",
        choices={
            "arange": "evenly from the first (arange)",
            "spread": "first to last (spread)",
            "linspace": "first to last, rounded down (linspace)",
        },
    )
    extent: Extent = option(
        "slice",
        title="Event pictures",
        words=lambda how: f"event pictures {EXTENT_WORDS[how.extent]}",
        box="pipeline",
        help="For event models, if a sample has no prepared event images. Per slice: each picture "
        "is as large as the area of its own events, as in EventGPT's published code. Common "
        "(stream): all are as large as the whole recording. The result says which was used.",
        choices={"slice": "Per slice", "stream": "Common"},
    )
    window: Window | None = option(
        None,
        title="Window",
        words=lambda how: f"window {how.window}" if how.window else WHOLE,
        box="recording",
        help="The part of a recording of raw events that is shown: START+LENGTH in us, ms, s, min "
        "or h, as in 1.25s+50ms; a LENGTH alone begins at the first event. Empty: the sample's own "
        "window, or all of the recording. For models that are shown event images drawn from raw "
        "events.",
        read=read_window,
        form="START+LENGTH",
        example="1.25s+50ms",
    )
    split: Split = option(
        COUNT_SPLIT,
        title="Split",
        words=lambda how: f"split into {how.split.words}",
        box="recording",
        help="How a recording of raw events becomes event images. Equal counts: each shows the "
        "same number of events, as in EventGPT. Equal times: each shows the same time. Densest 25 "
        "ms: each shows the 25 ms with the most events of its time, as in EventGPT-Plus. Another "
        "split than the default is drawn from raw events even if the sample has prepared event "
        "images.",
        read=read_split,
        form="count|time|densest[:PARTS]",
    )
    perturb: tuple[Perturbation, ...] = option(
        (),
        title="Perturbation",
        label="Perturb",
        words=lambda how: f"perturbed by {how.perturbed}" if how.perturbed else "not perturbed",
        box="recording",
        help="Changes the raw events before the model sees them, as in drop:0.3 or "
        "drop:0.3,jitter:500us. Shares from 0 to 1: drop loses events, hot makes pixels fire, "
        "window shortens the window, rate removes events evenly; jitter is noise on the times. "
        "Empty: none.",
        read=perturbations,
        form="CHANGE:STRENGTH,...",
        example="drop:0.3",
    )
    perturb_seed: int = option(
        0,
        title="Perturbation seed",
        label="Perturb seed",
        box="recording",
        help="The same seed changes the same events.",
        low=0,
        high=2**32 - 1,
        needs="perturb",
    )

    def __post_init__(self) -> None:
        check_options(self)

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
        found = ",".join(str(one) for one in self.perturb if one.strength)
        return f"{found} seed {self.perturb_seed}" if found else ""


DEFAULT_MEDIA = MediaOptions()


@dataclass(frozen=True, kw_only=True)
class RunOptions(MediaOptions):
    decode: DecodeConfig = DecodeConfig()
    cache: CachePolicy = option(
        "use",
        title="Feature cache",
        words=lambda how: CACHE_WORDS[how.cache],
        box="pipeline",
        help="Use: read stage 3's features from the cache, or compute and store them. Refresh: "
        "always compute and store them. Off: neither read nor write the cache.",
        choices={"use": "Use", "refresh": "Refresh", "off": "Off"},
        answers=False,
    )
    mode: Mode = option(
        "decoupled",
        title="Mode",
        words=lambda how: how.mode,
        box="pipeline",
        help="Decoupled: the four stages run separately, so stage 3 can come from the cache. "
        "Hooked: the model's own generate() runs as a whole, and hooks time its vision part.",
        choices={"decoupled": "Decoupled", "hooked": "Hooked"},
    )

    def ask(self, sample: Sample, model: str, prompt: str) -> RunRequest:
        values: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(RunOptions)}
        return RunRequest(sample, model, prompt, RunOptions(**values))

    @property
    def settings(self) -> dict[str, str]:
        """Every option in words, by the name of its chip."""
        return {one.chip or name: one.words(self) for name, one in OPTIONS.items() if one.words}


OPTIONS: Mapping[str, Option] = options_of(DecodeConfig) | options_of(RunOptions)
OFFERED = {name: one for name, one in OPTIONS.items() if one.box}
# The title of each of RunOptions.settings.
TITLES = {
    one.chip or name: one.chip.capitalize() or one.title
    for name, one in OPTIONS.items()
    if one.words
}


def value_of(options: RunOptions | type[RunOptions], name: str) -> Any:
    """The value of an option, or its default in this class."""
    return getattr(options.decode if name in options_of(DecodeConfig) else options, name)


def arranged(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by option as the fields of a RunOptions."""
    inside = options_of(DecodeConfig).keys() & values.keys()
    decode = DecodeConfig(**{name: values[name] for name in inside})
    others = {name: value for name, value in values.items() if name not in inside}
    return others | {"decode": decode}


@dataclass(frozen=True)
class RunRequest:
    sample: Sample
    model: str
    prompt: str
    how: RunOptions = RunOptions()

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt", check_question(self.prompt, MAX_ASKED_CHARS))


@dataclass(frozen=True, eq=False)
class Prepared:
    """Stage 2's result: pixels for the vision tower, and the prompt's ids [1, S].  `inputs` holds
    what else the checkpoint's processor gives, such as grids and token types."""

    pixels: torch.Tensor
    input_ids: torch.Tensor
    digest: str
    context_tokens: int
    pixel_name: str = "pixel_values"  # as the model's own generate() calls the pixels
    inputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Features:
    """Stage 3's result: named tensors after projector and pooling, before they meet the text.  The
    three families with an adapter of their own have a single tensor "rows" [V, hidden]."""

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
    name: str
    shape: tuple[Count, ...]
    dtype: str
    bytes: Count


@dataclass(frozen=True)
class Generation:
    """New tokens only, with the EOS token.  token_ms are times since the start of the run.

    text_ends: the number of characters of the text that are known after each token; () if unknown.
    """

    token_ids: tuple[int, ...]
    text: str
    stop: Stop
    prompt_tokens: int | None  # None: a server does not tell
    token_ms: tuple[float, ...]
    text_ends: tuple[int, ...] = ()


@dataclass(frozen=True)
class Span:
    """A stage (or "decode.prefill", "decode.steps") on the run's clock, which starts at 0.

    `original_ms`: for a cached stage, its time when it was computed.
    `cpu_ms`: CPU time of all threads of the process; None on other devices.  `waited_ms`: how long
    the run's thread was ready but had no core; None if unknown.
    """

    name: str
    start_ms: Difference
    ms: Lasting
    source: Source = "measured"
    original_ms: Difference | None = None
    cpu_ms: Difference | None = None
    waited_ms: Difference | None = None


class Timed:
    """What has spans.  A stage that is not listed is refused: its time would be unaccounted."""

    spans: tuple[Span, ...]

    def __post_init__(self) -> None:
        for span in self.spans:
            if span.name.partition(".")[0] not in (*STAGES, "compile", SERVER):
                raise ValueError(f"{span.name} is no stage: add it to StageName.")

    def span(self, name: str) -> Span | None:
        return next((span for span in self.spans if span.name == name), None)


@dataclass(frozen=True)
class Tower:
    """The shape of a vision tower: width, depth, heads, and its input in pixels.  None: config.json
    does not say, or the tower takes pictures of any size."""

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

    @property
    def words(self) -> str:
        """The known sizes: "24 layers of 1,024, 16 heads, 336 px in patches of 14 px"."""
        depth = "" if self.layers is None else count(self.layers, "layer")
        width = "" if self.hidden is None else f"{self.hidden:,}"
        heads = "" if self.heads is None else count(self.heads, "head")
        side = "" if self.image_size is None else f"{self.image_size} px"
        patch = "" if self.patch_size is None else f"patches of {self.patch_size} px"
        body = " of ".join(filter(None, [depth or ("layers" if width else ""), width]))
        return ", ".join(filter(None, [body, heads, " in ".join(filter(None, [side, patch]))]))


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
class Batch(Timed):
    """Times of several samples that were answered together; spans as in RunResult.  No figure
    belongs to a single sample.  The vision span covers the `size - cached` samples whose features
    were computed; it is absent if all features came from the cache."""

    id: str
    size: int
    spans: tuple[Span, ...]
    total_ms: float
    tokens: int  # new tokens of all samples
    cached: int = 0

    @property
    def tokens_per_s(self) -> float:
        """New tokens of all samples / duration of the batch in seconds."""
        return 1000 * self.tokens / self.total_ms

    @property
    def samples_per_s(self) -> float:
        return 1000 * self.size / self.total_ms


@dataclass(frozen=True)
class Served:
    """What is known of an answer that a server gave.

    `arrivals_ms`: when each piece of text came, since the start of the run; `text_ends`: the
    characters of the text up to its end.  A piece is not a token.  `tokens`: the server's count of
    new tokens, None if it does not tell.  `told`: its usage and its own timings, in its words.
    The other moments are those of the sending, of the headers and of the end.
    """

    host: str
    tokens: Count | None
    sent_ms: Time
    headers_ms: Time
    end_ms: Time
    arrivals_ms: tuple[Time, ...]
    text_ends: tuple[Count, ...]
    retries: Count = 0
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The time at the server, and its parts, of which the server tells nothing more."""
        first = self.arrivals_ms[0] if self.arrivals_ms else self.end_ms
        moments = (self.sent_ms, self.headers_ms, first, self.end_ms)
        parts = zip(SERVER_PARTS, pairwise(moments), strict=True)
        whole = Span(SERVER, self.sent_ms, self.end_ms - self.sent_ms)
        return whole, *(Span(name, at, end - at) for name, (at, end) in parts)

    @property
    def buffered(self) -> bool:
        """Whether its tokens came all at once, so that their arrivals tell nothing of each."""
        last = self.arrivals_ms[-1] - self.arrivals_ms[0] if self.arrivals_ms else 0.0
        tokens = self.tokens or len(self.arrivals_ms)
        return tokens >= FEW_TOKENS and last < AT_ONCE_MS * (tokens - 1)

    @property
    def token_ms(self) -> tuple[float, ...]:
        """The arrivals, if as many pieces came as the server counts tokens, or one fewer: the token
        that ends an answer has no text.  Otherwise a piece is not a token: ()."""
        one_each = self.tokens is not None and 0 <= self.tokens - len(self.arrivals_ms) <= 1
        return self.arrivals_ms if one_each and not self.buffered else ()


COLD_VISION = "Vision was computed in a cold run."  # a note about cached features


@dataclass(frozen=True)
class RunResult(Timed):
    """The result of one run.  A sample of a `batch` has its own answer but no spans and no token
    times; its total_ms is that of the batch.  `clocks` holds the start and the end of the run on
    two clocks.  `machine_load` is how busy the machine was during the run."""

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
    batch: Batch | None = None
    extent: Extent | None = None  # of the event pictures; None if none were drawn
    clocks: tuple[Moment, Moment] | None = None
    machine_load: MachineLoad | None = None
    token_limit: int | None = None  # of new tokens: as requested, or what the context has room for
    letter_logprobs: Mapping[str, float] | None = None  # of a lettered question: run_stages.py
    served: Served | None = None

    @property
    def off_script(self) -> bool | None:
        """Whether the model's checkpoint lists what it was trained on, and this is not: another
        question, or a user's own files."""
        asked = self.model.off_script(self.request.prompt)
        return asked if asked is None else asked or self.request.sample.sequence == OWN

    @property
    def new_tokens(self) -> int | None:
        """None: a server does not tell."""
        return self.served.tokens if self.served else len(self.generation.token_ids)

    @property
    def ttft_ms(self) -> float | None:
        """From the start of the run to the first new token, without time in the queue; of a server
        to its first text."""
        times = self.served.arrivals_ms if self.served else self.generation.token_ms
        return times[0] if times else None

    @property
    def tpot_ms(self) -> float | None:
        """(end of the run - TTFT) / (N - 1); None for N <= 1, if N is not told, or if a server sent
        all tokens at once."""
        if self.served and self.served.buffered:
            return None
        first, tokens = self.ttft_ms, self.new_tokens or 0
        return None if first is None or tokens < 2 else (self.total_ms - first) / (tokens - 1)

    @property
    def tokens_per_s(self) -> float | None:
        """(N - 1) / time after the first token, in seconds."""
        return 1000 / self.tpot_ms if self.tpot_ms else None

    @property
    def unaccounted_ms(self) -> float:
        """Total time minus the time of the four stages, or of the server."""
        return self.total_ms - sum(s.ms for s in self.spans if s.name in (*STAGES, SERVER))

    @property
    def uncached_total_ms(self) -> float:
        """The total without cache: each cached stage counts with its time when it was computed."""
        found = [span for span in self.spans if span.source == "cached"]
        return self.total_ms + sum((span.original_ms or 0.0) - span.ms for span in found)

    @property
    def cached(self) -> bool:
        return any(span.source == "cached" for span in self.spans)
