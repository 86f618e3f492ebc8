"""What a check found: an outcome, a sentence, a figure beside its bound, and the evidence.

Boundary: frozen data and words; no torch.  Evidence is plain JSON, so that a certificate can hold
it and a page can draw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine import quoting
from engine.errors import BadInput
from engine.prompts import DEFAULT_QUESTION, check_question
from engine.storage.schemas import PASSED, Outcome
from engine.types import BACKENDS, EXTENTS, PIXELS, Backend, Extent, Pixels, Sample

MAX_RUNS = 100
MIN_TOKENS, MAX_TOKENS = 8, 512  # one token would not even enter the loop

# check -> (title, what it asks); the order is the order of all tables
CHECKS: dict[str, tuple[str, str]] = {
    "answer": ("Answers at all", "Does the model load, take the sample and answer?"),
    "pixels": (
        "Pixels",
        "Are the pixels what the checkpoint's image processor gives, as near as the setting says?",
    ),
    "equal_hooked": ("Hooked = plain", "Does generate() under the probe give the same tokens?"),
    "equal_decoupled": (
        "Decoupled = plain",
        "Do features from the disk and the project's loop give the same tokens?",
    ),
    "equal_features": (
        "Features = plain",
        "Does generate() on the features, without pixels, give the same tokens?",
    ),
    "equal_prefix": (
        "Prefix = plain",
        "Does an answer that goes on from a kept prefix have the same tokens?",
    ),
    "equal_sampled": (
        "Equal when sampled",
        "Do all ways draw the same tokens from one seed?",
    ),
    "settings": (
        "Sampling settings",
        "Do temperature, top_p, seed and minimum length act as in the model's own generate()?",
    ),
    "equal_batch": ("Batch = plain", "Does each answer of a batch equal the sample's own answer?"),
    "long": ("Long answers", "Are the tokens equal when the answer is forced past position 256?"),
    "ends": ("Natural end", "Does each way end where generate() does, with one end token?"),
    "comparison": (
        "Comparison",
        "Does the comparison itself find a planted difference, also at the last token?",
    ),
    "greedy": ("Greedy is greedy", "Is each token the one with the highest logit?"),
    "counted": ("Tokens counted", "Is each token that was computed in the result, and no other?"),
    "encoded_once": (
        "Encoded once",
        "Does the vision tower see every picture once, and none when features are cached?",
    ),
    "rows": (
        "Visual rows",
        "Are the visual rows what float64 computes from the tower's output and the weights?",
    ),
    "probe": ("Probe covers stage 3", "Does the probe time every layer that makes visual rows?"),
    "frames": ("Frames shown", "Is the model shown the frames that each rule names?"),
    "work": ("Work in its stage", "Does each stage do its own work in every run, and no other's?"),
    "synchronised": (
        "Device synchronised",
        "Does the clock wait for the device at both edges of every stage?",
    ),
    "figures": (
        "Figures recomputed",
        "Do TTFT, TPOT, totals and token times follow from the raw spans?",
    ),
    "clock": ("Clock", "Does time only go forward, and do two clocks agree?"),
    "accounted": ("Stages add up", "Do the four stages cover the whole run?"),
    "stage3": (
        "Stage 3, two ways",
        "Does the probe see the time that stage 3 takes when it runs alone?",
    ),
    "observer": ("Observer's cost", "Is generate() as fast with the probe as without?"),
    "left_as_found": (
        "Left as found",
        "Afterwards: the same answer, no hook, no setting changed?",
    ),
    "keys": ("Cache keys", "Does the key change with all it must change with, and only then?"),
    "damage": ("Damaged cache", "Is a changed byte noticed, reported and computed again?"),
    "sight": ("Sight", "Does what the model is shown change its logits and its answer?"),
}
# Checks about a model as a whole: done once, whatever the number of samples.
ONCE = frozenset(
    {
        *("settings", "equal_batch", "long", "comparison", "rows", "probe", "work"),
        *("synchronised", "observer"),
    }
)
# Measured figures, not proofs: they may stay open without taking the proof away.
MEASURED = frozenset({"stage3", "observer"})
# What these leave open is missing from the coverage, or listed as not proved.
COVERING = frozenset({"equal_sampled", "settings", "equal_batch", "long", "ends", "rows", "frames"})
MAY_STAY_OPEN = MEASURED | COVERING
MAX_BATCH = 64


@dataclass(frozen=True)
class CheckFinding:
    """What a check found, whoever was looked at."""

    outcome: Outcome
    sentence: str
    figure: float | None = None
    bound: float | None = None
    unit: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


def judged(
    faults: Sequence[str], good: str, unit: str, evidence: Mapping[str, Any]
) -> CheckFinding:
    """Passed with the `good` sentence if there is no fault, else failed with the first one."""
    outcome: Outcome = "failed" if faults else "passed"
    return CheckFinding(outcome, faults[0] if faults else good, len(faults), 0, unit, evidence)


@dataclass(frozen=True)
class Verdict:
    """A finding about one model, on one sample or ("") on all of them together."""

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


@dataclass(frozen=True)
class VerifyRequest:
    """Which models are verified on which samples.  `runs` are the warm runs of each way timed."""

    models: tuple[str, ...]
    samples: tuple[Sample, ...]
    prompt: str = DEFAULT_QUESTION
    max_new_tokens: int = 256  # as many as an ordinary run may have
    runs: int = 5
    backend: Backend = "auto"  # of the decoupled way, which is the only one that has a choice
    pixels: Pixels = "exact"
    extent: Extent = "slice"
    batch: int = 4  # answers of the batch that is compared; 1 compares none

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt", check_question(self.prompt))
        _check("runs", self.runs, MAX_RUNS)
        _check("batch", self.batch, MAX_BATCH)
        _check("max_new_tokens", self.max_new_tokens, MAX_TOKENS, MIN_TOKENS)
        if self.backend not in BACKENDS:
            raise BadInput(
                f"backend is {quoting.quoted(self.backend)}: choose one of {', '.join(BACKENDS)}."
            )
        if self.pixels not in PIXELS:
            raise BadInput(
                f"pixels is {quoting.quoted(self.pixels)}: choose one of {', '.join(PIXELS)}."
            )
        if self.extent not in EXTENTS:
            raise BadInput(
                f"extent is {quoting.quoted(self.extent)}: choose one of {', '.join(EXTENTS)}."
            )
        if not self.models:
            raise BadInput("No model is named: name at least one.")
        if not self.samples:
            raise BadInput("No sample is chosen: choose at least one.")


def _check(name: str, value: int, high: int, low: int = 1) -> None:
    if not low <= value <= high:
        raise BadInput(
            f"{name} is {quoting.number(value)}: choose a value from {low:,} to {high:,}."
        )


def choose(samples: Sequence[Sample], number: int) -> tuple[Sample, ...]:
    """`number` samples, evenly spread, as neighbours in a dataset overlap; BadInput if absurd."""
    if not 1 <= number <= len(samples):
        raise BadInput(
            f"samples is {quoting.number(number)}: choose a value from 1 to "
            f"{len(samples):,}, which this dataset holds."
        )
    return tuple(samples[index * len(samples) // number] for index in range(number))


def verified(verdicts: Iterable[Verdict], model: str) -> bool:
    """Whether these verdicts prove the model: all passed, but for figures that may stay open.

    Samples that it cannot take prove nothing, and spoil nothing.
    """
    return proves((v.check, v.outcome) for v in verdicts if v.model == model)


def proves(found: Iterable[tuple[str, str]]) -> bool:
    """The same of (check, outcome) pairs of one model."""
    own = [(check, outcome) for check, outcome in found if outcome != "skipped"]
    passed = {check for check, outcome in own if outcome in PASSED}
    complete = passed >= set(CHECKS) - MAY_STAY_OPEN
    return complete and not any(_spoils(*pair) for pair in own)


def _spoils(check: str, outcome: str) -> bool:
    return outcome not in PASSED and (outcome == "failed" or check not in MAY_STAY_OPEN)
