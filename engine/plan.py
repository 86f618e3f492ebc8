"""What a dataset run is to do: which models answer about which samples, how often, in what order.

Boundary: names and numbers, checked; it knows no model, no file and no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from engine.errors import BadInput, StoreError
from engine.prompts import check_question
from engine.types import FRAME_RULES, PIXELS, CachePolicy, DecodeConfig, Mode, Pixels

Order = Literal["sequential", "interleaved"]
Phase = Literal["warmup", "measured"]
ORDERS: tuple[Order, ...] = ("sequential", "interleaved")
MAX_REPEAT, MAX_WARMUP, MAX_RESULTS = 1000, 100, 1_000_000
STOP_AFTER = 10  # failures of one model in a row


class Task(NamedTuple):
    """One row to be: also its key, of which a run holds one row only."""

    model: str
    sample: str
    repeat: int
    phase: Phase


@dataclass(frozen=True)
class Plan:
    """models x samples x repeats, and how each is run.

    `samples` are ids in their order.  `prompt` None asks each sample's own question, or the
    default one where it has none.  `stop_after` failures of a model in a row give it up.
    """

    models: tuple[str, ...]
    samples: tuple[str, ...]
    prompt: str | None = None
    repeat: int = 1
    warmup: int = 1
    order: Order = "sequential"
    cache: CachePolicy = "off"
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    frames: str = "arange"
    mode: Mode = "decoupled"
    stop_after: int = STOP_AFTER
    pixels: Pixels = "exact"

    def __post_init__(self) -> None:
        if not self.models or not self.samples:
            what = "models" if not self.models else "samples"
            raise BadInput(f"A run needs {what}, and none are named: name at least one.")
        if self.prompt is not None:
            object.__setattr__(self, "prompt", check_question(self.prompt))
        _within("repeat", self.repeat, 1, MAX_REPEAT)
        _within("warmup", self.warmup, 0, MAX_WARMUP)
        _within("stop-after", self.stop_after, 1, MAX_RESULTS)
        _among("order", self.order, ORDERS)
        _among("cache", self.cache, ("use", "refresh", "off"))
        _among("mode", self.mode, ("decoupled", "hooked"))
        _among("frames", self.frames, FRAME_RULES)
        _among("pixels", self.pixels, PIXELS)
        if self.planned > MAX_RESULTS:
            raise BadInput(
                f"{len(self.models)} models x {len(self.samples):,} samples x {self.repeat:,} "
                f"repeats are {self.planned:,} results: choose at most {MAX_RESULTS:,}."
            )

    @property
    def planned(self) -> int:
        """How many measured results a whole run has; warm-up runs are not among them."""
        return len(self.models) * len(self.samples) * self.repeat

    @property
    def forced(self) -> int | None:
        """The number of tokens every answer is made to have, if it is."""
        same = self.decode.min_new_tokens == self.decode.max_new_tokens
        return self.decode.max_new_tokens if same else None

    def batches(self) -> tuple[tuple[str, ...], ...]:
        """The models that are at work by turns; each batch ends before the next begins."""
        if self.order == "interleaved":
            return (self.models,)
        return tuple((name,) for name in self.models)

    def tasks(self, batch: tuple[str, ...]) -> Iterator[Task]:
        """All measured tasks of a batch.  Models that take turns also take turns at being first,
        so that none always finds files that another one has just read."""
        for repeat in range(self.repeat):
            for index, sample in enumerate(self.samples):
                first = index % len(batch)
                for model in batch[first:] + batch[:first]:
                    yield Task(model, sample, repeat, "measured")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def from_json(value: Mapping[str, Any]) -> Plan:
    """The plan that as_json() wrote, or StoreError for anything else."""
    try:
        fields = dict(value)
        fields["decode"] = DecodeConfig(**fields["decode"])
        fields["models"] = tuple(map(str, fields["models"]))
        fields["samples"] = tuple(map(str, fields["samples"]))
        return Plan(**fields)
    except (BadInput, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"The plan in run.json cannot be used ({error}).") from error


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadInput(f"{name} is {value:,}: choose a value from {low:,} to {high:,}.")


def _among(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadInput(f"{name} is {value!r}: choose one of {', '.join(allowed)}.")
