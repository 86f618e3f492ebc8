"""The plan of a dataset run: models, samples, repeats, order and settings, also in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, NamedTuple

from engine.errors import BadInput
from engine.media_options import check_range, sweep_text
from engine.prompts import check_question
from engine.quoting import cut, quoted
from engine.settings import DEMO
from engine.types import OFFERED, OPTIONS, CachePolicy, RunOptions, value_of

Order = Literal["auto", "sequential", "interleaved"]
Phase = Literal["warmup", "measured"]
ORDERS: tuple[Order, ...] = ("auto", "sequential", "interleaved")
MAX_REPEAT, MAX_WARMUP, MAX_RESULTS, MAX_BATCH = 1000, 100, 1_000_000, 256
IDS = "ids.txt"
STOP_AFTER = 10  # failures of one model in a row
COMPARISON = "answers kept from the Compare page"  # the `order_why` of such a run


class Task(NamedTuple):
    """One planned row, and its unique key in a run."""

    model: str
    sample: str
    repeat: int
    phase: Phase


@dataclass(frozen=True)
class Plan(RunOptions):
    """models x samples x repeats, and how each is run.

    `samples`: ids in order.  `prompt` None: each sample's own question, or the default one.
    `stop_after`: a model is given up after so many consecutive failures.  `batch`: samples that are
    answered together; then the batch is measured.  `order`: "auto" is replaced before the run
    begins (engine/benchmark/execute.py), with the reason in `order_why`.
    """

    models: tuple[str, ...]
    samples: tuple[str, ...]
    prompt: str | None = None
    repeat: int = 1
    warmup: int = 1
    order: Order = "auto"
    stop_after: int = STOP_AFTER
    batch: int = 1
    order_why: str = ""
    # A dataset run measures stage 3.
    cache: CachePolicy = field(default="off", kw_only=True, metadata={"option": OPTIONS["cache"]})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.models or not self.samples:
            what = "models" if not self.models else "samples"
            raise BadInput(f"A run needs {what}: name at least one.")
        for name in (*self.models, *self.samples):
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise BadInput(
                    f"The name {quoted(name)} holds half of a surrogate pair: correct the record."
                ) from error
        if twice := next((name for name in self.models if self.models.count(name) > 1), None):
            raise BadInput(f"models names {quoted(twice)} twice: leave one out.")
        if self.prompt is not None:
            object.__setattr__(self, "prompt", check_question(self.prompt))
        check_range("repeat", self.repeat, 1, MAX_REPEAT)
        check_range("warmup", self.warmup, 0, MAX_WARMUP)
        check_range("stop-after", self.stop_after, 1, MAX_RESULTS)
        if self.order not in ORDERS:
            raise BadInput(f"order is {quoted(self.order)}: choose one of {', '.join(ORDERS)}.")
        check_range("batch", self.batch, 1, MAX_BATCH)
        if self.batch > 1 and self.mode == "hooked":
            raise BadInput(
                f"mode is 'hooked' and batch is {self.batch:,}: a model's own generate() is timed "
                "one sample at a time; choose decoupled, or batch 1."
            )
        if self.batch > 1 and self.cache == "refresh":
            raise BadInput(
                f"cache is 'refresh' and batch is {self.batch:,}: features that are computed in a "
                "batch are not kept; choose use or off, or batch 1."
            )
        if self.planned > MAX_RESULTS:
            raise BadInput(
                f"{len(self.models)} models x {len(self.samples):,} samples x {self.repeat:,} "
                f"repeats are {self.planned:,} results: choose at most {MAX_RESULTS:,}."
            )

    @property
    def settings(self) -> dict[str, str]:
        """Every setting in words, by name, in a fixed order."""
        asked = f"question: {cut(self.prompt)}" if self.prompt else "each record's question"
        return {
            "kind": "comparison" if self.order_why == COMPARISON else "dataset run",
            **super().settings,
            "batch": f"batches of {self.batch:,}" if self.batch > 1 else "one sample at a time",
            "repeat": f"{self.repeat:,} repeats" if self.repeat > 1 else "1 repeat",
            "question": asked,
        }

    def differing(self, other: Plan, times: bool = True) -> dict[str, tuple[str, str]]:
        """The settings of both plans, in words, that must be equal so that answers, or with `times`
        also times, can be compared."""
        theirs, apart = other.settings, {"kind", "repeat"}
        if not times:
            apart |= {one.chip or name for name, one in OPTIONS.items() if not one.answers}
        return {
            name: (words, theirs[name])
            for name, words in self.settings.items()
            if name not in apart
            and (words != theirs[name] or (name == "question" and self.prompt != other.prompt))
        }

    @property
    def planned(self) -> int:
        """The number of measured results of the whole run, without warm-up runs."""
        return len(self.models) * len(self.samples) * self.repeat

    def model_groups(self) -> tuple[tuple[str, ...], ...]:
        """Groups of models that take turns; one group finishes before the next starts."""
        if self.order == "interleaved":
            return (self.models,)
        return tuple((name,) for name in self.models)

    def batches(self, group: tuple[str, ...]) -> Iterator[tuple[Task, ...]]:
        """The measured tasks of a group; tasks of one model that run together form a tuple.  Models
        take turns at being first, so that none always reads files that were just read."""
        for repeat in range(self.repeat):
            for index, start in enumerate(range(0, len(self.samples), self.batch)):
                some = self.samples[start : start + self.batch]
                first = index % len(group)
                for model in group[first:] + group[:first]:
                    yield tuple(Task(model, sample, repeat, "measured") for sample in some)

    def tasks(self, group: tuple[str, ...]) -> Iterator[Task]:
        return chain.from_iterable(self.batches(group))


DEFAULTS: Mapping[str, str] = Plan(("model",), ("sample",)).settings


def chips(runs: Sequence[Mapping[str, str]]) -> list[dict[str, bool]]:
    """For each run, given as Plan.settings, the words that are not the default or not the same in
    all the runs; True: not the same."""
    known = [run for run in runs if run]  # an unreadable run has no settings
    differing = {name for name in DEFAULTS if len({run.get(name) for run in known}) > 1}
    return [
        {
            words: name in differing
            for name, words in run.items()
            if name in differing or words != DEFAULTS.get(name)
        }
        for run in runs
    ]


def flags(plans: Sequence[Plan], root: str, every: Sequence[str] = ()) -> Iterator[str]:
    """The options of `bench` for a plan, or for those of a sweep, on the dataset `root`; only what
    differs from the defaults.  `every`: the dataset's samples.  If the plan's are not the first of
    them, or they are not known, the ids are expected in the file IDS, one on each line."""
    plan = plans[0] if plans[0].perturb else replace(plans[0], perturb_seed=0)
    if root != DEMO:  # which is the default
        yield from ("--dataset", root)
    yield from ("--models", ",".join(plan.models))
    if plan.samples != tuple(every):
        first = plan.samples == tuple(every[: len(plan.samples)])
        yield from ("--samples", str(len(plan.samples))) if first else ("--ids", IDS)
    if plan.decode.forced is not None:
        yield from ("--length", f"forced:{plan.decode.forced}")
    for name in ("prompt", "repeat", "warmup", "order", "batch", *OFFERED):
        value = value_of(plan, name)
        set_by_length = name == "max_new_tokens" and plan.decode.forced is not None
        if value != value_of(Plan, name) and not set_by_length and name != "perturb":
            yield from ("--" + name.replace("_", "-"), str(value))
    if text := sweep_text([one.perturb for one in plans]):
        yield from ("--perturb", text)
