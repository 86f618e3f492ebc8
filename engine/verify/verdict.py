"""The result of a check: an outcome, a sentence, a figure with its bound, and the evidence.

Boundary: frozen data and texts; no torch.  Evidence is plain JSON, so that a certificate can store
it and a page can show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine import quoting
from engine.errors import BadInput
from engine.media_options import same_option
from engine.pipeline.watcher import Watcher
from engine.prompts import DEFAULT_QUESTION, check_question
from engine.storage.schemas import PASSED, Outcome
from engine.types import Backend, DecodeConfig, MediaOptions, Pixels, RunOptions, Sample

MAX_RUNS = 100
MIN_TOKENS, MAX_TOKENS = 8, 512  # one token would not reach the decode loop

# check -> (title, question); tables use this order
CHECKS: dict[str, tuple[str, str]] = {
    "answer": ("Answers", "Does the model load, accept the sample and answer?"),
    "pixels": (
        "Pixels",
        "Are the pixels those of the checkpoint's image processor, within the setting's limit?",
    ),
    "equal_hooked": ("Hooked = plain", "Does generate() under the probe give the same tokens?"),
    "equal_decoupled": (
        "Decoupled = plain",
        "Do features from disk and the project's decode loop give the same tokens?",
    ),
    "equal_features": (
        "Features = plain",
        "Does generate() on the features, without pixels, give the same tokens?",
    ),
    "equal_prefix": (
        "Prefix = plain",
        "Does an answer that continues from a cached prefix have the same tokens?",
    ),
    "equal_sampled": (
        "Equal with sampling",
        "Do all ways draw the same tokens with the same seed?",
    ),
    "settings": (
        "Sampling settings",
        "Do temperature, top_p, seed and minimum length act as in the model's own generate()?",
    ),
    "equal_batch": ("Batch = plain", "Does each answer of a batch equal its single run?"),
    "shapes": (
        "Picture shapes",
        "Are the answers to wide and tall pictures equal, and are their shapes given to the model?",
    ),
    "long": ("Long answers", "Are the tokens equal if the answer is forced past position 256?"),
    "ends": ("Natural end", "Does each way end where generate() does, with one end token?"),
    "comparison": (
        "Comparison",
        "Does the comparison find planted differences, also at the last token?",
    ),
    "greedy": ("Greedy", "Is each token the one with the highest logit?"),
    "counted": ("Tokens counted", "Does the result hold exactly the computed tokens?"),
    "encoded_once": (
        "Encoded once",
        "Does the vision tower encode every picture once, and none if features are cached?",
    ),
    "rows": (
        "Visual rows",
        "Do the visual rows equal a float64 computation from the tower's output and the weights?",
    ),
    "probe": ("Probe covers stage 3", "Does the probe time every layer of stage 3?"),
    "frames": ("Frames shown", "Is the model shown the frames that each rule names?"),
    "work": ("Work in its stage", "Does each stage do exactly its own work in every run?"),
    "synchronised": (
        "Device synchronised",
        "Does the clock wait for the device at both ends of every stage?",
    ),
    "figures": (
        "Figures recomputed",
        "Do TTFT, TPOT, totals and token times follow from the raw spans?",
    ),
    "clock": ("Clock", "Does time only go forward, and do two clocks agree?"),
    "accounted": ("Stages add up", "Do the four stages cover the whole run?"),
    "stage3": (
        "Stage 3, two ways",
        "Does the probe measure the time that stage 3 takes alone?",
    ),
    "observer": ("Cost of the probe", "Is generate() as fast with the probe as without?"),
    "left_as_found": (
        "Model unchanged",
        "Does the model give the same answer afterwards, with no hook or setting changed?",
    ),
    "keys": ("Cache keys", "Does the key change exactly when it must?"),
    "damage": ("Damaged cache", "Is a changed byte detected, and are features recomputed?"),
    "sight": ("Effect of the input", "Does the visual input change the logits and the answer?"),
}
# Checks that are done once per model.
ONCE = frozenset(
    {
        *("settings", "equal_batch", "shapes", "long", "comparison", "rows", "probe", "work"),
        *("synchronised", "observer"),
    }
)
# Measured figures: they may stay open without affecting the proof.
MEASURED = frozenset({"stage3", "observer"})
# If these stay open, the coverage is smaller, or they are listed as not proved.
COVERING = frozenset(
    {"equal_sampled", "settings", "equal_batch", "shapes", "long", "ends", "rows", "frames"}
)
MAY_STAY_OPEN = MEASURED | COVERING
# What each check needs that a model may refuse (Adapter.refuses).
NEEDS: dict[str, str] = {
    "equal_prefix": "prefix",
    "equal_batch": "batch",
    **dict.fromkeys(("equal_decoupled", "equal_features", "long", "rows", "probe"), "decoupled"),
    **dict.fromkeys(("work", "synchronised", "keys", "damage", "sight", "stage3"), "decoupled"),
}
REFUSABLE = frozenset(NEEDS)
MAX_BATCH = 64


@dataclass(frozen=True)
class CheckFinding:
    """The result of a check, without model and sample."""

    outcome: Outcome
    sentence: str
    figure: float | None = None
    bound: float | None = None
    unit: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


def judged(
    faults: Sequence[str], good: str, unit: str, evidence: Mapping[str, Any]
) -> CheckFinding:
    """Passed with the sentence `good` if there are no faults, else failed with the first fault."""
    outcome: Outcome = "failed" if faults else "passed"
    return CheckFinding(outcome, faults[0] if faults else good, len(faults), 0, unit, evidence)


@dataclass(frozen=True)
class Verdict:
    """A finding about one model, on one sample or (sample "") on the model as a whole."""

    check: str
    model: str
    sample: str
    finding: CheckFinding

    @property
    def outcome(self) -> Outcome:
        return self.finding.outcome

    @property
    def sentence(self) -> str:
        return self.finding.sentence

    @property
    def title(self) -> str:
        return CHECKS[self.check][0]

    @property
    def passed(self) -> bool:
        return self.outcome in PASSED


class VerifyWatcher(Watcher):
    """Follows the checks of a verification."""

    def doing(self, model: str, sample: str, what: str) -> None:
        """`what` begins, for this model and sample."""

    def found(self, verdict: Verdict) -> None:
        """A check has ended."""


@dataclass(frozen=True)
class VerifyRequest(MediaOptions):
    """Which models are verified on which samples.  `runs`: timed warm runs of each way."""

    models: tuple[str, ...]
    samples: tuple[Sample, ...]
    prompt: str = DEFAULT_QUESTION
    max_new_tokens: int = 256  # the default limit of an ordinary run
    runs: int = 5
    # Of the decoupled way; the others have no choice.
    backend: Backend = same_option(DecodeConfig, "backend", "auto")
    pixels: Pixels = same_option(RunOptions, "pixels", "exact")
    batch: int = 4  # size of the compared batch; 1 compares none

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prompt", check_question(self.prompt))
        _check("runs", self.runs, MAX_RUNS)
        _check("batch", self.batch, MAX_BATCH)
        _check("max_new_tokens", self.max_new_tokens, MAX_TOKENS, MIN_TOKENS)
        if not self.models:
            raise BadInput("No model is named: name at least one.")
        if not self.samples:
            raise BadInput("No sample is chosen: choose at least one.")


def _check(name: str, value: int, high: int, low: int = 1) -> None:
    if not low <= value <= high:
        raise BadInput(
            f"{name} is {quoting.whole(value)}: choose a value from {low:,} to {high:,}."
        )


def choose(samples: Sequence[Sample], number: int) -> tuple[Sample, ...]:
    """`number` evenly spread samples, because neighbours in a dataset overlap; BadInput if out of
    range."""
    if not 1 <= number <= len(samples):
        raise BadInput(
            f"samples is {quoting.whole(number)}, and the dataset has {len(samples):,}: "
            f"choose a value from 1 to {len(samples):,}."
        )
    return tuple(samples[index * len(samples) // number] for index in range(number))


def verified(verdicts: Iterable[Verdict], model: str) -> bool:
    """Whether these verdicts prove the model: all passed, except for figures that may stay open.

    Samples that it cannot take do not count, nor do ways that it refuses, which no run takes.
    """
    return proves((v.check, v.outcome) for v in verdicts if v.model == model)


def proves(found: Iterable[tuple[str, str]]) -> bool:
    """The same for (check, outcome) pairs of one model."""
    own = [(check, outcome) for check, outcome in found if outcome != "skipped"]
    settled = {check for check, outcome in own if outcome in (*PASSED, "refused")}
    complete = settled >= set(CHECKS) - MAY_STAY_OPEN and any(one in PASSED for _, one in own)
    return complete and not any(_spoils(*pair) for pair in own)


def _spoils(check: str, outcome: str) -> bool:
    if outcome == "refused":
        return check not in REFUSABLE
    return outcome not in PASSED and (outcome == "failed" or check not in MAY_STAY_OPEN)
