"""Drafting: the request, the figures of its answers, and whether drafting was faster.

tokens per pass = tokens of all passes / passes of the target (the prefill gives the first token).
rate at position i = drafts accepted up to i / drafts of at least that length.  Measured speed-up:
time from the first to the last token, the target alone / drafted, pair by pair.  It is compared
with two predictions: that of analysis/acceptance.py, from both models' separate answers; and that
of the loop, tokens per pass / (c d + 1), with d drafted tokens per pass that cost c target tokens
each.  Both assume that a pass over several tokens costs as much as a single token; `pass_cost` is
the measured cost.  Pairs of one sample are not independent, nor are samples of one sequence.
With several samples a sequence therefore counts once in an interval, and a conclusion needs enough
sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any, Literal

from engine import quoting
from engine.analysis import acceptance, statistics
from engine.analysis.acceptance import Acceptance, Pair
from engine.errors import BadInput
from engine.media_options import COUNT_SPLIT
from engine.prompts import DEFAULT_QUESTION, check_question
from engine.types import DecodeConfig, MediaOptions, Sample

LOOKUP = "lookup"  # prompt lookup instead of a draft model
MAX_GAMMA, MAX_RUNS = 16, 100
FEWEST = statistics.MIN_CLUSTERS  # sequences (or pairs of one sample) for a conclusion
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
    gamma: int = acceptance.GAMMA
    prompt: str = DEFAULT_QUESTION
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    runs: int = FEWEST

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prompt", check_question(self.prompt))
        refuse_sampling(self.decode)
        for name, value, most in (("gamma", self.gamma, MAX_GAMMA), ("runs", self.runs, MAX_RUNS)):
            if not 1 <= value <= most:
                raise BadInput(
                    f"{name} is {quoting.whole(value)}: choose a value from 1 to {most:,}."
                )
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
    """One pass of the target: the drafted tokens, and how many of them it accepted.

    `tokens` is the number of tokens added to the answer: the accepted ones and one of the
    target's, unless the answer ended with an accepted one.
    """

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


@dataclass(frozen=True)
class UntriedSample:
    """A sample without an answer, and the reason."""

    sample: str
    error: str


@dataclass(frozen=True)
class DraftReport:
    """All figures of the samples; None if unknown.  The samples in `lost` are in no figure."""

    request: DraftRequest
    samples: tuple[SampleTrial, ...]
    lost: tuple[UntriedSample, ...]
    passes: int
    tokens_per_pass: float | None
    mean_accepted: float | None
    rates: tuple[float | None, ...]
    measured: statistics.Interval | None
    whole: statistics.Interval
    predicted: Acceptance | None
    own_prediction: float | None
    pass_cost: float | None
    off_script: tuple[str, ...]  # models that were not trained on the question

    @property
    def equal(self) -> bool:
        """Whether each drafted answer equals the target's, apart from ties within rounding."""
        return all(t.difference is None or t.difference.tied for t in self.samples)


def report(
    request: DraftRequest, trials: Sequence[SampleTrial], lost: Sequence[UntriedSample] = ()
) -> DraftReport:
    """The figures of at least one sample."""
    cycles = [cycle for trial in trials for cycle in trial.cycles]
    longer = [[c for c in cycles if len(c.drafted) > place] for place in range(request.gamma)]
    steps = sum(len(trial.ids) - 1 for trial in trials)
    alone_ms = _total([timing.steps_ms for timing in trial.alone] for trial in trials)
    drafting_ms = _total([timing.draft_ms for timing in trial.drafted] for trial in trials)
    passes_ms = _total([timing.passes_ms for timing in trial.drafted] for trial in trials)
    one_each = len(cycles) * alone_ms / steps if steps else 0.0  # a token step for every pass
    tokens = _mean([cycle.tokens for cycle in cycles])
    sequences = {sample.id: sample.sequence for sample in request.samples}
    groups = [statistics.cluster_of(sequences.get(one.sample), one.sample) for one in trials]
    whole = _interval(groups, [trial.whole_ratios() for trial in trials])
    predicted = None  # from both models' separate answers
    if all(trial.draft_ids is not None for trial in trials):
        pairs = [
            Pair(
                trial.sample,
                ids,
                trial.ids,
                request.prompt,
                draft_ms=trial.draft_ms,
                target_ms=_total([[timing.steps_ms for timing in trial.alone]]),
                draft_tokens=len(ids) - 1,  # an answer has one token step fewer than tokens
                target_tokens=len(trial.ids) - 1,
            )
            for trial in trials
            if (ids := trial.draft_ids) is not None
        ]
        predicted = acceptance.analyse(pairs, request.draft, request.target, request.gamma)
    assert whole is not None  # each sample has at least one pair
    return DraftReport(
        request=request,
        samples=tuple(trials),
        lost=tuple(lost),
        passes=len(cycles),
        tokens_per_pass=tokens,
        mean_accepted=_mean([cycle.accepted for cycle in cycles]),
        rates=tuple(_mean([c.accepted > at for c in some]) for at, some in enumerate(longer)),
        measured=_interval(groups, [trial.ratios() for trial in trials]),
        whole=whole,
        predicted=predicted,
        own_prediction=tokens / (drafting_ms / one_each + 1) if tokens and one_each else None,
        pass_cost=passes_ms / one_each if one_each else None,
        off_script=tuple(dict.fromkeys(name for trial in trials for name in trial.off_script)),
    )


def _total(times: Iterable[Sequence[float]]) -> float:
    """The sum of each sample's median."""
    return sum(statistics.spread(values).median for values in times)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _interval(groups: Sequence[str], ratios: Sequence[list[float]]) -> statistics.Interval | None:
    """Over the sequences (`groups`) of all samples; of a single sample, over its pairs."""
    values = list(chain(*ratios))
    several = [group for group, some in zip(groups, ratios, strict=True) for _ in some]
    alone = sum(bool(some) for some in ratios) == 1
    found = None if alone else several
    return statistics.median_interval(values, found, ratios=True) if values else None


def sentence(report: DraftReport) -> str:
    """The outcome in words: faster, slower, or not enough data."""
    if not report.equal:
        return "A drafted answer differs from the target's, and no tie explains it: a fault."
    found = report.measured
    if found is None:
        return "The answers have a single token: there is nothing to draft."
    samples = sum(bool(trial.ratios()) for trial in report.samples)
    basis, what, number = f"{found.n} pairs of this sample", "pairs", found.n
    if samples > 1:
        basis, what, number = f"{samples} samples, {found.n} pairs", "samples", samples
    if samples > 1 and found.clusters != samples:
        what, number = "sequences", found.clusters
        basis = f"{samples} samples of {number} sequences, {found.n} pairs"
    draft = "prompt lookup" if report.request.draft == LOOKUP else report.request.draft
    start, median = f"Drafted by {draft}, {report.request.target}", f"{found.median:.2f}x"
    if found.clusters < FEWEST:
        few = f"too few {what} for a conclusion ({number}; {FEWEST} or more are needed)"
        return f"{start} runs at {median} its speed alone; {few}."
    # As printed: with a limit of 1.00 both may be equally fast.
    outcome = "neither clearly faster nor clearly slower"
    outcome = "slower" if round(found.high, 2) < 1 else outcome
    outcome = "faster" if round(found.low, 2) > 1 else outcome
    limits = f"95 % interval {found.low:.2f} to {found.high:.2f}"
    return f"{start} is {outcome} ({median}, {limits}, {basis})."


def as_row(report: DraftReport) -> dict[str, Any]:
    """One JSON object: all figures, all samples, and the outcome in words."""
    request = {name: getattr(report.request, name) for name in ("target", "draft", "gamma", "how")}
    row: dict[str, Any] = {**request, **asdict(report)}
    del row["request"]
    if (predicted := report.predicted) is not None:
        names = ("first_window", "expected_tokens", "cost_ratio", "ceiling")
        row["predicted"] |= {name: getattr(predicted, name) for name in names}
    return row | {"equal": report.equal, "sentence": sentence(report)}
