"""The checks, and the result of one: an outcome, a sentence, a figure with its bound, the evidence.
And what all results together cover and do not prove, and what of a result they do not cover.

Evidence is plain JSON, so that a certificate can store it and a page can show it.  No torch here.
Coverage is computed from verdicts, so it includes only what the checks compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from msgspec import Struct

from engine import quoting
from engine.errors import BadInput
from engine.machine.load import MachineLoad, words
from engine.media_options import check_range
from engine.pipeline import Watcher
from engine.prompts import DEFAULT_QUESTION, check_question
from engine.storage.result_rows import PASSED, Outcome
from engine.types import FRAME_RULES, OPTIONS, Backend, MediaOptions, ModelInfo, RunResult, Sample

MAX_RUNS = 100
MIN_TOKENS, MAX_TOKENS = 8, 512  # one token would not reach the decode loop
MAX_BATCH = 64


class Check(NamedTuple):
    """`needs`: what a model may refuse (Adapter.refuses); `once`: done once per model.  A check
    that may stay open is a measured figure, or makes the coverage smaller, or is then listed as not
    proved."""

    title: str
    question: str
    needs: str = ""
    once: bool = False
    may_stay_open: bool = False


# Tables use this order.
CHECKS: dict[str, Check] = {
    "answer": Check("Answers", "Does the model load, accept the sample and answer?"),
    "pixels": Check("Pixels", "Are the pixels those of the checkpoint's image processor?"),
    "equal_hooked": Check("Hooked = plain",
        "Does generate() under the probe give the same tokens?"),
    "equal_decoupled": Check("Decoupled = plain",
        "Do features from disk and the project's decode loop give the same tokens?",
        needs="decoupled"),
    "equal_features": Check("Features = plain",
        "Does generate() on the features, without pixels, give the same tokens?",
        needs="decoupled"),
    "sampled": Check("Sampled = plain",
        "With temperature, top_p, seed and minimum length, do all ways give the same tokens?",
        once=True, may_stay_open=True),
    "equal_batch": Check("Batch = plain", "Does each answer of a batch equal its single run?",
        needs="batch", once=True, may_stay_open=True),
    "shapes": Check("Picture shapes",
        "Are the answers to wide and tall pictures equal, and are their shapes given to the model?",
        once=True, may_stay_open=True),
    "long": Check("Long answers", "Are the tokens equal if the answer is forced past position 256?",
        needs="decoupled", once=True, may_stay_open=True),
    "ends": Check("Natural end", "Does each way end where generate() does, with one end token?",
        may_stay_open=True),
    "greedy": Check("Greedy", "Is each token the one with the highest logit?"),
    "counted": Check("Tokens counted", "Does the result hold exactly the computed tokens?"),
    "encoded_once": Check("Encoded once",
        "Does the vision tower encode every picture once, and none if features are cached?"),
    "rows": Check("Visual rows",
        "Do the visual rows equal a float64 computation from the tower's output and the weights?",
        needs="decoupled", once=True, may_stay_open=True),
    "probe": Check("Probe covers stage 3", "Does the probe time every layer of stage 3?",
        needs="decoupled", once=True),
    "clock": Check("Clock", "Does time only go forward, and do two clocks agree?", once=True),
    "accounted": Check("Stages add up", "Do the four stages cover the whole run?", once=True),
    "stage3": Check("Stage 3 timed two ways",
        "Does the probe measure the time that stage 3 takes alone?",
        needs="decoupled", once=True, may_stay_open=True),
    "observer": Check("Cost of the probe", "Is generate() as fast with the probe as without?",
        once=True, may_stay_open=True),
    "left_as_found": Check("Model unchanged",
        "Does the model give the same answer afterwards, with no hook or setting changed?"),
    "sight": Check("Effect of the input", "Does the visual input change the logits and the answer?",
        needs="decoupled", once=True),
}  # fmt: skip
# Of a served model, all done once; in the order in which they are done.
SERVED: dict[str, Check] = {
    "reached": Check("Request read",
        "Does it count its tokens right, also of words that nobody had asked before?",
        once=True, may_stay_open=True),
    "same": Check("Same answers",
        "Are its answers those of the checkpoint's own generate() on this machine?", once=True),
    "why": Check("Why not", "Which changes to the local run give its answers?",
        once=True, may_stay_open=True),
    "saw": Check("Pictures seen", "Do other pictures change its answer as they do here?",
        once=True),
    "arrivals": Check("Arrival times",
        "Does a second clock see the same arrivals, and do they come one by one?",
        once=True, may_stay_open=True),
    "repeats": Check("Repeatable",
        "Do equal requests get the same answer, computed again?", once=True),
    "steady": Check("Steady times", "Does its time to the first text vary little?",
        once=True, may_stay_open=True),
}  # fmt: skip
EVERY = CHECKS | SERVED
# Checks of times that may stay open: an answer is verified without them, its times are not.
TIMING = {"stage3": "the time of stage 3", "observer": "the cost of the probe"}
ONCE = frozenset(name for name, check in CHECKS.items() if check.once)


def checks_of(rows: Iterable[Verdict]) -> dict[str, Check]:
    return SERVED if any(row.check in SERVED for row in rows) else CHECKS


@dataclass(frozen=True)
class CheckFinding:
    outcome: Outcome
    sentence: str
    figure: float | None = None
    bound: float | None = None
    unit: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def opened(self, why: str) -> Self:
        return replace(self, outcome="unresolved", sentence=f"{self.sentence} {why}")


def judged(
    faults: Sequence[str],
    good: str,
    unit: str,
    evidence: Mapping[str, Any],
    open_: Sequence[str] = (),
) -> CheckFinding:
    """Failed with the first fault, or open with the first of `open_`, or passed with `good`."""
    outcome: Outcome = "failed" if faults else "unresolved" if open_ else "passed"
    return CheckFinding(outcome, [*faults, *open_, good][0], len(faults), 0, unit, evidence)


def under_load(found: CheckFinding, load: MachineLoad | None) -> CheckFinding:
    """A finding about times with the machine's load, told where it may be the reason."""
    if load is None:
        return found
    found = replace(found, evidence={**found.evidence, "machine_load": vars(load)})
    if load.busy and found.outcome not in PASSED:
        return replace(found, sentence=f"{found.sentence} The machine was busy: {words(load)}.")
    return found


class Verdict(Struct, frozen=True):
    """A finding about one model, on one sample or (sample "") on the model as a whole."""

    check: str
    title: str
    model: str
    sample: str
    outcome: Outcome
    sentence: str
    figure: float | None
    bound: float | None
    unit: str
    evidence: dict[str, Any]

    @classmethod
    def of(cls, check: str, model: str, sample: str, found: CheckFinding) -> Self:
        return cls(check, EVERY[check].title, model, sample, *vars(found).values())

    @property
    def passed(self) -> bool:
        return self.outcome in PASSED


@dataclass(frozen=True)
class ModelVerdicts:
    """One model (`info` is None if it did not load) and all its verdicts.  `backend` decoded the
    decoupled way; other backends and inputs are not covered."""

    name: str
    info: ModelInfo | None
    environment: Mapping[str, str]
    verdicts: tuple[Verdict, ...]
    backend: str = "eager"


class VerifyWatcher(Watcher):
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
    backend: Backend = field(default="auto", metadata={"option": OPTIONS["backend"]})
    batch: int = 4  # size of the compared batch; 1 compares none

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prompt", check_question(self.prompt))
        check_range("runs", self.runs, 1, MAX_RUNS)
        check_range("batch", self.batch, 1, MAX_BATCH)
        check_range("max_new_tokens", self.max_new_tokens, MIN_TOKENS, MAX_TOKENS)
        if not self.models:
            raise BadInput("No model is named: name at least one.")
        if not self.samples:
            raise BadInput("No sample is chosen: choose at least one.")


def choose(samples: Sequence[Sample], number: int) -> tuple[Sample, ...]:
    """`number` evenly spread samples, as neighbours overlap; BadInput if it is out of range."""
    if not 1 <= number <= len(samples):
        given = f"samples is {quoting.whole(number)}, and the dataset has {len(samples):,}"
        raise BadInput(f"{given}: choose a value from 1 to {len(samples):,}.")
    return tuple(samples[index * len(samples) // number] for index in range(number))


def verified(verdicts: Iterable[Verdict], model: str) -> bool:
    """Whether these verdicts prove the model: all passed, except for figures that may stay open.
    Samples that it cannot take do not count, nor do ways that it refuses, which no run takes."""
    rows = [row for row in verdicts if row.model == model and row.outcome != "skipped"]
    for row in rows:
        known = EVERY.get(row.check, Check("", ""))
        harmless = {"refused": bool(known.needs), "unresolved": known.may_stay_open}
        if not (row.outcome in PASSED or harmless.get(row.outcome, False)):
            return False
    settled = {row.check for row in rows if row.outcome != "unresolved"}
    needed = {name for name, check in checks_of(rows).items() if not check.may_stay_open}
    return settled >= needed and any(row.outcome in PASSED for row in rows)


# The worst come first.
OUTCOMES = {"failed": "Failed", "unresolved": "Open", "skipped": "Cannot run",
    "refused": "Not offered", "tie": "Tie", "passed": "Passed"}  # fmt: skip
NAMED = 5  # missing checks that are listed by name

# Not checked, because all ways share it or because it lies outside this run.
ALWAYS = (
    "What all ways share: the prompt; files into pictures; vision tower and language model (for "
    "EventGPT, StageScope's implementation; projector, adaptor and pooling are recomputed).",
    "Answers for other samples, questions, dtypes, devices or libraries.",
    "Times and speeds in general: they hold for this machine at the time of each run.",
)
# What the code alone decides: the same on every machine, for every checkpoint.
BY_TESTS = (
    "Proved by the tests of this version, not here: frame rules, cache keys, damaged entries of "
    "the cache, the work of each stage, waits for the device, the arithmetic of all figures, and "
    "that a difference between two answers is found."
)
# The same of a server.
ALWAYS_SERVED = (
    "Answers to other questions, about other samples, or with other settings.",
    "What the server does tomorrow: it can change under its name.",
)


@dataclass(frozen=True)
class Coverage:
    """What one model's verification compared with the model's own generate().

    new_tokens: the longest answer; positions: prompt and answer together; natural_end: an answer
    was compared up to its end token; batch: the largest batch; pictures: numbers of pictures in a
    prompt; frames: the frame rules.
    """

    new_tokens: int = 0
    positions: int = 0
    natural_end: bool = False
    sampling: bool = False
    batch: int = 1
    pictures: tuple[int, ...] = ()
    frames: tuple[str, ...] = ()

    def sentence(self) -> str:
        parts = [
            f"answers of up to {self.new_tokens:,} tokens",
            f"contexts of up to {self.positions:,} positions",
            "an answer to its natural end" if self.natural_end else "no answer to its end",
            "greedy and sampled tokens" if self.sampling else "greedy tokens",
            f"batches of up to {self.batch:,}" if self.batch > 1 else "no batches",
            _pictures("prompts", self.pictures),
        ]
        by_tests = self.frames == FRAME_RULES
        parts += [f"frame rules {', '.join(self.frames)}"] if self.frames and not by_tests else []
        return f"Covered: {'; '.join(parts)}." + (f" {BY_TESTS}" if by_tests else "")


def coverage_of(verdicts: Sequence[Verdict]) -> Coverage:
    good: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.outcome in PASSED:
            good[verdict.check].append(verdict.evidence)
    sampled = {verdict.outcome for verdict in verdicts if verdict.check == "sampled"}
    answers = [*good["answer"], *good["long"], *good["same"]]
    lists = [one["rules"] for one in good["same"] if isinstance(one.get("rules"), list | tuple)]
    lists += [FRAME_RULES] if good["answer"] else []  # of a local model the tests prove them
    return Coverage(
        new_tokens=max(_whole(answers, "new_tokens")),
        positions=max(_whole(answers, "positions")),
        natural_end=bool(good["ends"]) or any(one.get("natural_end") for one in good["same"]),
        sampling=bool(sampled) and sampled <= {*PASSED, "skipped"},
        batch=max(1, *_whole(good["equal_batch"], "size")),
        pictures=tuple(sorted({*_whole(answers, "pictures")} - {0})),
        frames=tuple(dict.fromkeys(str(rule) for rules in lists for rule in rules)),
    )


def _whole(evidence: Iterable[Mapping[str, Any]], name: str) -> list[int]:
    """The whole numbers of this name, and 0."""
    return [0, *(one[name] for one in evidence if type(one.get(name)) is int)]


def unproved(rows: Sequence[Verdict], samples: Sequence[str]) -> list[str]:
    """What a model's verification on these samples does not prove: what failed, stayed open, cannot
    run, is not offered or was not done; and what no verification proves."""
    titles = {word: list[str]() for outcome, word in OUTCOMES.items() if outcome not in PASSED}
    found = Counter((OUTCOMES[row.outcome], row.title, row.sample != "") for row in rows)
    for (word, title, by_sample), n in found.items():
        if word in titles:
            where = f" on {n} of {len(samples)} samples" if by_sample and n < len(samples) else ""
            titles[word].append(title + where)
    titles["Not done on every sample"] = [EVERY[check].title for check in undone(rows, samples)]
    sentences = [
        f"{word}: {quoting.count(len(some), 'check') if len(some) > NAMED else '; '.join(some)}."
        for word, some in titles.items()
        if some
    ]
    return [*sentences, *(ALWAYS_SERVED if checks_of(rows) is SERVED else ALWAYS)]


def taken(rows: Iterable[Verdict], samples: Sequence[str]) -> tuple[str, ...]:
    """The samples that a model can run on."""
    left = {row.sample for row in rows if row.outcome == "skipped"}
    return tuple(sample for sample in samples if sample not in left)


def undone(rows: Sequence[Verdict], samples: Sequence[str]) -> list[str]:
    """Checks without a finding on some sample."""
    done, able = {(row.check, row.sample) for row in rows}, taken(rows, samples)
    return [
        check
        for check, row in checks_of(rows).items()
        if not all((check, sample) in done for sample in (("",) if row.once else able))
    ]


def not_covered(cover: Coverage, result: RunResult) -> Iterator[str]:
    """What a result has that was not verified, e.g. "96 tokens (48 verified)"."""
    request, answer = result.request, result.generation
    new_tokens = result.new_tokens or 0
    positions = (answer.prompt_tokens or 0) + new_tokens
    if not request.how.decode.greedy and not cover.sampling:
        yield "sampling"
    if new_tokens > cover.new_tokens:
        yield f"{new_tokens:,} tokens ({cover.new_tokens:,} verified)"
    if positions > cover.positions:
        yield f"{positions:,} positions ({cover.positions:,} verified)"
    if answer.stop == "eos" and not cover.natural_end:
        yield "natural end"
    if result.batch is not None and result.batch.size > cover.batch:
        known = f"{cover.batch:,} verified" if cover.batch > 1 else "none verified"
        yield f"batch of {result.batch.size:,} ({known})"
    # Pictures of several sizes have an entry for each size.
    shown = sum(one.shape[0] for one in result.tensors if one.name == "images")
    if shown and shown not in cover.pictures:
        yield f"{_pictures('prompt', [shown])} ({_numbers(cover.pictures)} verified)"
    rule = request.how.frames
    if result.shown.endswith(f"({rule})") and rule not in cover.frames:
        yield f"frame rule {rule}"


def _pictures(prompts: str, numbers: Sequence[int]) -> str:
    return f"{prompts} with {_numbers(numbers)} picture{'s' * (list(numbers) != [1])}"


def _numbers(values: Iterable[int]) -> str:
    return " or ".join(f"{value:,}" for value in values) or "none"
