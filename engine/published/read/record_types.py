"""The common form of published result files, record by record.  Values keep the file's units and
keys: Form.stages maps keys to parts of a run."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, Literal, NamedTuple

from engine.published.read.file_forms import Form, Part

Status = Literal["ok", "failed", "unknown"]
EOS, BOS = 2, 1  # of the LLaMA vocabulary that all these models share, and of the demo models
NAMES = {"eventgpt": "EventGPT", "video_llava": "Video-LLaVA", "llava": "LLaVA-1.5"}


@dataclass(frozen=True)
class AnswerRecord:
    """One model's answer to one sample, in a file of this group.

    times: in the file's unit by the file's key; sizes: every other number of the record.
    ids: the answer's token ids according to the file, None without any.  tokens: the stated count.
    lost: keys of times without a usable value.  marks: why a corrected record differs ("sliced",
    "prompt", "context", "cold" ...).  clip: the recording, "" if the sample's name identifies it.
    """

    model: str
    sample: str
    path: str
    group: Form
    question: str = ""
    times: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)
    tokens: float | None = None
    ids: tuple[int, ...] | None = None
    text: str | None = None
    context: float | None = None
    lost: frozenset[str] = frozenset()
    marks: frozenset[str] = frozenset()
    clip: str = ""

    @property
    def row(self) -> str:
        """ "results[3" for "results[3].eventgpt": the same for all values of one row."""
        return self.path.partition("]")[0]

    @property
    def source(self) -> str:
        """The clip; answers to several questions about one clip are not independent."""
        return self.clip or self.sample

    @property
    def key(self) -> tuple[str, str]:
        """What the answers of two models have in common if they can be compared."""
        return self.sample, self.question

    def part(self, part: Part) -> tuple[str, float] | None:
        """(key, value) of the time for this part of a run, in the file's unit."""
        keys = (key for key, name in self.group.stages.items() if name == part)
        return next(((key, self.times[key]) for key in keys if key in self.times), None)

    def ms(self, part: Part) -> float | None:
        found = self.part(part)
        return milliseconds(*found) if found else None

    @property
    def stage_sum(self) -> float | None:
        """The sum of the stages in the file's unit; None unless there are at least two."""
        found = [self.times[key] for key in self.group.added(self.times)]
        return sum(found) if len(found) > 1 else None

    def is_whole(self, stages: Collection[str]) -> bool:
        lost = any(self.group.stages.get(key, "total") != "total" for key in self.lost)
        return not lost and all(key in self.times for key in stages)

    def decoding(self) -> tuple[Part, float] | None:
        """(part, ms) of decoding: the token steps, otherwise with prefill, otherwise the total."""
        steps, decode = self.ms("steps"), self.ms("decode")
        total, prefill = self.ms("total"), self.ms("prefill")
        if not steps and not decode and total and prefill is not None and total > prefill:
            steps = total - prefill
        times: dict[Part, float | None] = {"steps": steps, "decode": decode, "total": total}
        return next(((part, ms) for part, ms in times.items() if ms), None)


@dataclass(frozen=True)
class Identity:
    """The model that a file claims for its answers, and the evidence in the file.  family: the
    family that the evidence shows (a key of NAMES), None without evidence."""

    claimed: str
    evidence: str
    family: str | None = None
    agrees: bool | None = None


@dataclass(frozen=True)
class Claim:
    """A figure that the file states about its rows, and the same figure computed from the rows.
    of: how it is computed.  rows: None if it cannot be checked; `of` then says why, if known.
    model: whose figure it is, by its path or its key; "" of no model alone."""

    path: str
    stated: float
    rows: float | None = None
    of: str = ""
    model: str = ""


class FailedSample(NamedTuple):
    sample: str
    path: str
    message: str


class Problem(NamedTuple):
    """A value that was left out in reading: its kind, path and the reason."""

    kind: str
    path: str
    message: str


class SampleFigure(NamedTuple):
    """A number of a sample that belongs to no model, such as "parallel.overlap_window"."""

    name: str
    path: str
    value: float


@dataclass(frozen=True, eq=False)
class ResultFile:
    """One file, or one set of own rows, in the common form.

    models: the names and order of the file.  draft, target: the two models that it compares.
    corrected: in the order of the records.  config: the file's settings, "a.b" for nested ones.
    message: why it is unknown or failed.  computed: figures that several readers of the file use.
    """

    name: str
    group: Form
    status: Status = "ok"
    message: str = ""
    unit: str = "s"
    models: tuple[str, ...] = ()
    records: tuple[AnswerRecord, ...] = ()
    corrected: tuple[AnswerRecord, ...] = ()
    failures: tuple[FailedSample, ...] = ()
    figures: tuple[SampleFigure, ...] = ()
    claims: tuple[Claim, ...] = ()
    identities: Mapping[str, Identity] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    draft: str = ""
    target: str = ""
    computed: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def of(self, model: str, corrected: bool = False) -> tuple[AnswerRecord, ...]:
        source = self.corrected if corrected else self.records
        return tuple(record for record in source if record.model == model)

    def stages_of(self, model: str, corrected: bool = False) -> list[str]:
        """The keys of stages that any of a model's records has, those that stage_sum adds."""
        return self.group.added(key for record in self.of(model, corrected) for key in record.times)

    def whole(self, model: str) -> list[AnswerRecord]:
        stages = self.stages_of(model)
        return [record for record in self.of(model) if record.is_whole(stages)]

    def by_row(self, name: str) -> dict[str, SampleFigure]:
        """The figures of this name by their row, as AnswerRecord.row."""
        return {one.path.partition("]")[0]: one for one in self.figures if one.name == name}

    @property
    def samples(self) -> int:
        """Samples with an answer of any model, each as often as one model answered it."""
        every = (Counter(record.key for record in self.of(model)) for model in self.models)
        return reduce(or_, every, Counter()).total()

    @property
    def clips(self) -> int:
        return len({record.source for record in self.records})


def milliseconds(key: str, value: float) -> float:
    """A time of a file in milliseconds: keys that end in _ms are, all others are seconds."""
    return value if key.endswith("_ms") else 1000 * value
