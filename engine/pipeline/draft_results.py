"""What a drafted answer was asked for, how it went, and whether it was worth it.

tokens per pass = tokens of all passes / passes of the target (the first token is the prefill's).
rate at position i = drafts accepted up to i / drafts that were so long.  Measured speed-up: time
from the first to the last token, the target alone / drafted, pair by pair.  Two predictions stand
beside it: the acceptance analysis' (from both models' separate answers, see acceptance.py), and the
loop's own, tokens per pass / (c d + 1), with d drafted tokens per pass at c target tokens each.
Both suppose that a pass over several tokens costs what a single token does; `pass_cost` says what
it did cost.  Pairs of one sample are not independent, nor are samples of one sequence: of several
samples a sequence counts once in an interval, and the number of sequences must suffice for a
conclusion.

Boundary: ids and milliseconds in, figures and sentences out; no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from engine import quoting
from engine.analysis import acceptance, statistics
from engine.analysis.acceptance import Acceptance, Pair
from engine.errors import BadInput
from engine.pipeline.watcher import Watcher
from engine.prompts import DEFAULT_QUESTION, check_question
from engine.types import DecodeConfig, Extent, Pixels, Sample, check_choices

LOOKUP = "lookup"  # in place of a draft model: prompt lookup
MAX_GAMMA, MAX_RUNS = 16, 100
FEWEST = statistics.MIN_CLUSTERS  # sequences (or pairs, of one sample) that a conclusion needs
State = Literal["accepted", "rejected", "own"]


def refuse_sampling(config: DecodeConfig) -> None:
    """BadInput for a temperature above 0: only greedy answers are the target's, token by token."""
    if not config.greedy:
        raise BadInput(
            f"Drafting is greedy and temperature is {config.temperature:g}: set it to 0."
        )


@dataclass(frozen=True)
class DraftRequest:
    """Whose answers are drafted, by what, at most `gamma` tokens at once; `runs` timed pairs."""

    samples: tuple[Sample, ...]
    target: str
    draft: str
    gamma: int = acceptance.GAMMA
    prompt: str = DEFAULT_QUESTION
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    runs: int = FEWEST
    frames: str = "arange"
    pixels: Pixels = "exact"
    extent: Extent = "slice"

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt", check_question(self.prompt))
        refuse_sampling(self.decode)
        for name, value, most in (("gamma", self.gamma, MAX_GAMMA), ("runs", self.runs, MAX_RUNS)):
            if not 1 <= value <= most:
                raise BadInput(
                    f"{name} is {quoting.number(value)}: choose a value from 1 to {most:,}."
                )
        check_choices(self)
        self._check_samples()

    def _check_samples(self) -> None:
        names = [sample.id for sample in self.samples]
        if not names:
            raise BadInput("No sample is chosen: name at least one.")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"Sample {twice} is named twice: name it once, and raise runs for more.")

    @property
    def how(self) -> str:
        """How both models answer, whatever backend and cache the settings name."""
        most = self.decode.max_new_tokens
        return f"{self.pixels} pixels, eager steps, at most {most:,} new tokens"


class DraftWatcher(Watcher):
    """Follows the rounds of a trial."""

    def round(self, done: int, of: int) -> None:
        """Round `done + 1` of `of` begins."""


@dataclass(frozen=True)
class Cycle:
    """One pass of the target: what was drafted, and how much of it the target says too.

    `tokens` is what the pass added to the answer: the accepted ones and one of the target's own,
    unless the answer ended with an accepted one.
    """

    drafted: tuple[int, ...]
    accepted: int
    tokens: int


@dataclass(frozen=True)
class Timing:
    """One answer: to its first token (a draft model's own prefill included), and from there to
    its last; of that, drafting and the target's passes (0 for the target alone)."""

    first_ms: float
    steps_ms: float
    draft_ms: float = 0.0
    passes_ms: float = 0.0


@dataclass(frozen=True)
class Difference:
    """Where a drafted answer parts from the target's own, with both logits of the target alone."""

    position: int
    alone: str
    drafted: str
    logits: tuple[float, float]
    rounding: float
    tied: bool


@dataclass(frozen=True)
class Mark:
    """A piece of text as it came: drafted and accepted, drafted and rejected, the target's own."""

    text: str
    state: State


@dataclass(frozen=True)
class Tried:
    """One sample: the target's answer alone and drafted, in alternated pairs of timed runs.

    `prepare_ms`: stages 1 to 3 of target and draft.  `draft_ids`, `draft_ms`: the draft model's
    own whole answer and its token steps; None for lookup.  `shown`: what the target was shown;
    `off_script`: the models that were not trained on the question.
    """

    sample: str
    text: str
    ids: tuple[int, ...]
    cycles: tuple[Cycle, ...]
    marks: tuple[Mark, ...]
    alone: tuple[Timing, ...]
    drafted: tuple[Timing, ...]
    prepare_ms: tuple[float, float]
    draft_ids: tuple[int, ...] | None = None
    draft_ms: float | None = None
    difference: Difference | None = None
    shown: str = ""
    off_script: tuple[str, ...] = ()

    def ratios(self) -> list[float]:
        """Token steps alone / drafted, pair by pair; none for an answer of one token."""
        pairs = zip(self.alone, self.drafted, strict=True)
        return [a.steps_ms / b.steps_ms for a, b in pairs if b.steps_ms > 0 and a.steps_ms > 0]

    def whole_ratios(self) -> list[float]:
        """The same of whole runs, in which the draft's pictures and prefill cost too."""
        own, both = self.prepare_ms[0], sum(self.prepare_ms)
        pairs = zip(self.alone, self.drafted, strict=True)
        return [
            (own + a.first_ms + a.steps_ms) / (both + b.first_ms + b.steps_ms) for a, b in pairs
        ]


@dataclass(frozen=True)
class Lost:
    """A sample without an answer, and why."""

    sample: str
    error: str


@dataclass(frozen=True)
class DraftReport:
    """All figures of some samples; None is what they cannot say.  `lost` are in no figure."""

    target: str
    draft: str
    gamma: int
    how: str
    samples: tuple[Tried, ...]
    lost: tuple[Lost, ...]
    passes: int
    tokens_per_pass: float | None
    mean_accepted: float | None
    rates: tuple[float | None, ...]
    measured: statistics.Interval | None
    whole: statistics.Interval
    predicted: Acceptance | None
    own_prediction: float | None
    pass_cost: float | None
    off_script: tuple[str, ...] = ()  # models that were not trained on the question

    @property
    def equal(self) -> bool:
        """Every drafted answer is the target's own, or parts from it at a tie within rounding."""
        return all(one.difference is None or one.difference.tied for one in self.samples)


def report(request: DraftRequest, tried: Sequence[Tried], lost: Sequence[Lost] = ()) -> DraftReport:
    """The figures of at least one sample."""
    cycles = [cycle for one in tried for cycle in one.cycles]
    tokens = sum(cycle.tokens for cycle in cycles) / len(cycles) if cycles else None
    sequence = {sample.id: sample.sequence for sample in request.samples}
    named = [(sequence.get(one.sample, one.sample), one) for one in tried]
    measured = _interval([(name, one.ratios()) for name, one in named])
    whole = _interval([(name, one.whole_ratios()) for name, one in named])
    assert whole is not None  # each sample has at least one pair
    return DraftReport(
        target=request.target,
        draft=request.draft,
        gamma=request.gamma,
        how=request.how,
        samples=tuple(tried),
        lost=tuple(lost),
        passes=len(cycles),
        tokens_per_pass=tokens,
        mean_accepted=sum(c.accepted for c in cycles) / len(cycles) if cycles else None,
        rates=tuple(_rate(cycles, place) for place in range(request.gamma)),
        measured=measured,
        whole=whole,
        predicted=_predicted(request, tried),
        own_prediction=_own_prediction(tried, tokens, len(cycles)),
        pass_cost=_pass_cost(tried, len(cycles)),
        off_script=tuple(dict.fromkeys(name for one in tried for name in one.off_script)),
    )


def _interval(found: Sequence[tuple[str, Sequence[float]]]) -> statistics.Interval | None:
    """Over (sequence, ratios) of each sample; of one sample alone, over its pairs."""
    ratios = [ratio for _, some in found for ratio in some]
    groups = [sequence for sequence, some in found for _ in some]
    if not ratios:
        return None
    several = sum(bool(some) for _, some in found) > 1
    return statistics.median_interval(ratios, groups if several else None, ratios=True)


def _rate(cycles: Sequence[Cycle], place: int) -> float | None:
    reached = [cycle for cycle in cycles if len(cycle.drafted) > place]
    return sum(c.accepted > place for c in reached) / len(reached) if reached else None


def _predicted(request: DraftRequest, tried: Sequence[Tried]) -> Acceptance | None:
    if any(one.draft_ids is None for one in tried):
        return None
    pairs = [_pair(one, request.prompt) for one in tried]
    return acceptance.analyse(pairs, request.draft, request.target, request.gamma)


def _pair(one: Tried, question: str) -> Pair:
    """Times of token steps, of which an answer has one fewer than tokens."""
    draft = one.draft_ids or ()
    return Pair(
        sample=one.sample,
        draft=draft,
        target=one.ids,
        question=question,
        draft_ms=one.draft_ms,
        target_ms=_middle([timing.steps_ms for timing in one.alone]),
        draft_tokens=len(draft) - 1,
        target_tokens=len(one.ids) - 1,
    )


def _middle(values: Sequence[float]) -> float:
    return statistics.spread(values).median


def _token_ms(tried: Sequence[Tried]) -> float | None:
    """The target alone: milliseconds per token step, over all samples."""
    steps = sum(len(one.ids) - 1 for one in tried)
    spent = sum(_middle([timing.steps_ms for timing in one.alone]) for one in tried)
    return spent / steps if steps and spent else None


def _own_prediction(tried: Sequence[Tried], tokens: float | None, passes: int) -> float | None:
    token_ms = _token_ms(tried)
    if token_ms is None or tokens is None:
        return None
    spent = sum(_middle([timing.draft_ms for timing in one.drafted]) for one in tried)
    return tokens / (spent / passes / token_ms + 1)


def _pass_cost(tried: Sequence[Tried], passes: int) -> float | None:
    """What a pass of the target over a draft costs, in its single tokens."""
    token_ms = _token_ms(tried)
    if token_ms is None or not passes:
        return None
    spent = sum(_middle([timing.passes_ms for timing in one.drafted]) for one in tried)
    return spent / passes / token_ms


def sentence(found: DraftReport) -> str:
    """The outcome, computed: what was gained or lost, or that it cannot be told."""
    if not found.equal:
        return "A drafted answer is not the target's own, and no tie explains it: a fault."
    by = "prompt lookup" if found.draft == LOOKUP else found.draft
    one = found.measured
    if one is None:
        return "Its answers have a single token: there is nothing to draft."
    samples = sum(bool(tried.ratios()) for tried in found.samples)
    enough, of = _weight(samples, one)
    start = f"Drafted by {by}, {found.target}"
    if not enough:
        return f"{start} runs at {one.median:.2f}x its speed alone; {of}."
    interval = f"{one.median:.2f}x, 95 % interval {one.low:.2f} to {one.high:.2f}, {of}"
    return f"{start} is {_outcome(one)} ({interval})."


def _weight(samples: int, one: statistics.Interval) -> tuple[bool, str]:
    """Whether so many suffice for a conclusion, and of what it is one, or what is missing."""
    enough = one.clusters >= FEWEST
    need = f"{FEWEST} or more are needed"
    if samples == 1:
        few = f"pairs: {one.n}, too few to conclude from ({need})"
        return enough, f"{one.n} pairs of this sample" if enough else few
    if one.clusters == samples:
        few = f"too few samples to conclude from ({samples}; {need})"
        return enough, f"{samples} samples, {one.n} pairs" if enough else few
    few = f"too few sequences to conclude from ({one.clusters}; {need})"
    of = f"{samples} samples of {one.clusters} sequences, {one.n} pairs"
    return enough, of if enough else few


def _outcome(one: statistics.Interval) -> str:
    """By the interval as it is printed: an end of 1.00 does not exclude that both are equal."""
    if round(one.low, 2) > 1:
        return "faster"
    return "slower" if round(one.high, 2) < 1 else "neither faster nor slower for certain"


def as_row(found: DraftReport) -> dict[str, Any]:
    """One JSON object: every figure, every sample, the outcome in words."""
    row: dict[str, Any] = asdict(found)
    if found.predicted is not None:
        one = found.predicted
        row["predicted"] |= {
            "first_window": one.first_window,
            "expected_tokens": one.expected_tokens,
            "cost_ratio": one.cost_ratio,
            "ceiling": one.ceiling,
        }
    return row | {"equal": found.equal, "sentence": sentence(found)}
