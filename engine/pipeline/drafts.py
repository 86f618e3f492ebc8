"""What a drafting asks for, and what the trial of a sample measured."""

from dataclasses import dataclass, field
from typing import Literal

from engine.errors import BadInput
from engine.media_options import COUNT_SPLIT, check_range
from engine.prompts import DEFAULT_QUESTION, check_question
from engine.types import DecodeConfig, MediaOptions, Sample

LOOKUP = "lookup"  # prompt lookup instead of a draft model
GAMMA, MAX_GAMMA = 5, 16  # tokens of a draft: usual, and at most
RUNS, MAX_RUNS = 6, 100  # timed pairs: as many as a conclusion needs, and at most
State = Literal["accepted", "rejected", "own"]


def refuse_sampling(config: DecodeConfig) -> None:
    """Raises BadInput for a temperature above 0: drafting keeps only greedy answers equal."""
    if not config.greedy:
        raise BadInput(
            f"Drafting is greedy, but temperature is {config.temperature:g}: set it to 0."
        )


@dataclass(frozen=True)
class DraftRequest(MediaOptions):
    """A target and its draft on some samples: `gamma` tokens per draft, `runs` timed pairs."""

    samples: tuple[Sample, ...]
    target: str
    draft: str
    gamma: int = GAMMA
    prompt: str = DEFAULT_QUESTION
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    runs: int = RUNS

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prompt", check_question(self.prompt))
        refuse_sampling(self.decode)
        check_range("gamma", self.gamma, 1, MAX_GAMMA)
        check_range("runs", self.runs, 1, MAX_RUNS)
        names = [sample.id for sample in self.samples]
        if not names:
            raise BadInput("No sample is chosen: name at least one.")
        if double := next((name for name in names if names.count(name) > 1), None):
            raise BadInput(f"Sample {double} is named twice: name it once; use runs to repeat it.")

    @property
    def how(self) -> str:
        """The fixed settings of both models; backend and cache settings do not apply."""
        shown = [f"window {self.window}"] if self.window else []
        shown += [f"split into {self.split.words}"] if self.split != COUNT_SPLIT else []
        shown += [f"perturbed by {self.perturbed}"] if self.perturbed else []
        most = f"at most {self.decode.max_new_tokens:,} new tokens"
        return ", ".join(("eager steps", most, *shown))


@dataclass(frozen=True)
class Cycle:
    """One pass of the target: the drafted tokens, and how many of them it accepted.  `tokens` is
    the number of tokens added to the answer: the accepted ones and one of the target's, unless the
    answer ended with an accepted one."""

    drafted: tuple[int, ...]
    accepted: int
    tokens: int


@dataclass(frozen=True)
class Timing:
    """Times of one answer: to the first token (with a draft model's prefill), and from there to
    the last; of the latter, drafting and the target's passes (0 for the target alone)."""

    first_ms: float
    steps_ms: float
    draft_ms: float = 0.0
    passes_ms: float = 0.0


@dataclass(frozen=True)
class Difference:
    """The first difference between a drafted answer and the target's own, and both logits."""

    position: int
    alone: str
    drafted: str
    logits: tuple[float, float]
    rounding: float
    tied: bool


@dataclass(frozen=True)
class AnswerPiece:
    """One token's text: drafted and accepted, drafted and rejected, or the target's own."""

    text: str
    state: State


@dataclass(frozen=True)
class SampleTrial:
    """One sample: the target's answer alone and drafted, in alternating pairs of timed runs.

    `prepare_ms`: stages 1 to 3 of target and draft.  `draft_ids`, `draft_ms`: the draft model's
    whole answer and the time of its token steps; None for lookup.  `shown`: the target's input;
    `off_script`: the models that were not trained on the question.
    """

    sample: str
    text: str
    ids: tuple[int, ...]
    cycles: tuple[Cycle, ...]
    marks: tuple[AnswerPiece, ...]
    alone: tuple[Timing, ...]
    drafted: tuple[Timing, ...]
    prepare_ms: tuple[float, float]
    draft_ids: tuple[int, ...] | None = None
    draft_ms: float | None = None
    difference: Difference | None = None
    shown: str = ""
    off_script: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def ratios(self) -> list[float]:
        """Token steps alone / drafted, pair by pair; none for an answer of one token."""
        pairs = zip(self.alone, self.drafted, strict=True)
        return [a.steps_ms / b.steps_ms for a, b in pairs if b.steps_ms > 0 and a.steps_ms > 0]

    def whole_ratios(self) -> list[float]:
        """Whole runs alone / drafted, with stages 1 to 3 and the draft model's prefill."""
        own, both = self.prepare_ms[0], sum(self.prepare_ms)
        pairs = zip(self.alone, self.drafted, strict=True)
        return [
            (own + a.first_ms + a.steps_ms) / (both + b.first_ms + b.steps_ms) for a, b in pairs
        ]
