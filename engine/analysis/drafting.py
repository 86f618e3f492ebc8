"""Drafting: the figures of its answers, and whether drafting was faster.

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

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from engine.analysis import acceptance, statistics
from engine.analysis.acceptance import Acceptance, Pair
from engine.models import registry
from engine.pipeline.drafts import LOOKUP, DraftRequest, SampleTrial

FEWEST = statistics.MIN_CLUSTERS  # sequences (or pairs of one sample) for a conclusion


@dataclass(frozen=True)
class UntriedSample:
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
    draft = report.request.draft
    draft = "prompt lookup" if draft == LOOKUP else registry.label(draft)
    start = f"Drafted by {draft}, {registry.label(report.request.target)}"
    median = f"{found.median:.2f}x"
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
