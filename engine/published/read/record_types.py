"""The common form of published result files, record by record.

Boundary: frozen dataclasses only.  Values keep the file's units and keys: Group.stages maps keys to
stages, and `milliseconds` converts.  Recorded and corrected records have the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.types import StageName

Status = Literal["ok", "failed", "unknown"]
Part = StageName | Literal["load+preprocess", "prefill", "steps", "total"]

EOS, BOS = 2, 1  # of the LLaMA vocabulary that all these models share, and of the demo models
NAMES = {
    "eventgpt": "EventGPT",
    "video_llava": "Video-LLaVA",
    "llava": "LLaVA-1.5",
}


GroupName = Literal[
    "flat",
    "legacy",
    "newest",
    "frames",
    "five_stages",
    "parallel",
    "token_pairs",
    "wall_clock",
    "estimates",
    "failed",
    "unknown",
    "own_runs",
]
LETTERS: Mapping[GroupName, str] = {  # what documents, pages and the JSON output call a group
    "flat": "A",
    "legacy": "B",
    "newest": "B'",
    "frames": "C",
    "five_stages": "D",
    "parallel": "E",
    "token_pairs": "F",
    "wall_clock": "G",
    "estimates": "H",
    "failed": "Z",
    "unknown": "?",
    "own_runs": "own",
}


@dataclass(frozen=True)
class Group:
    """One kind of file.

    stages: its timing keys and the part of a run that each covers.  has_stage_times: a record's
    stages should add up to its total.  total_is_whole_run: the total includes loading.
    first_token_in_prefill: the prefill time includes the first token.  fixed_length: all answers
    have a fixed small number of tokens.
    """

    name: GroupName
    title: str
    stages: Mapping[str, Part] = field(default_factory=dict)
    has_stage_times: bool = False
    total_is_whole_run: bool = False
    first_token_in_prefill: bool = False
    fixed_length: bool = False

    @property
    def letter(self) -> str:
        return LETTERS[self.name]

    def __str__(self) -> str:
        return f"{self.letter} {self.title}"


@dataclass(frozen=True)
class AnswerRecord:
    """One model's answer to one sample.

    times: in the file's unit by the file's key; sizes: every other number of the record.
    ids: the answer's token ids according to the file, None without any.  tokens: the stated count.
    lost: keys of times without a usable value.  marks: why a corrected record differs ("sliced",
    "prompt", "context", "cold" ...).  clip: the recording, "" if the sample's name identifies it.
    """

    model: str
    sample: str
    path: str
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
    def source(self) -> str:
        """The clip; answers to several questions about one clip are not independent."""
        return self.clip or self.sample


@dataclass(frozen=True)
class Identity:
    """The model that a file claims for its answers, and the evidence in the file.

    family: the family that the evidence shows (a key of NAMES), None without evidence.
    """

    claimed: str
    evidence: str
    family: str | None = None
    agrees: bool | None = None


@dataclass(frozen=True)
class Claim:
    """A figure that the file states about its rows, and the same figure computed from the rows.

    of: how it is computed.  rows: None if it cannot be checked; `of` then says why, if known.
    """

    path: str
    stated: float
    rows: float | None = None
    of: str = ""


@dataclass(frozen=True)
class FailedSample:
    """A sample that the file lists as failed."""

    sample: str
    path: str
    message: str


@dataclass(frozen=True)
class Problem:
    """A value that was left out in reading: its kind, path and the reason."""

    kind: str
    path: str
    message: str


@dataclass(frozen=True)
class SampleFigure:
    """A number of a sample that belongs to no model, such as "parallel.overlap_window"."""

    name: str
    sample: str
    path: str
    value: float


@dataclass(frozen=True, eq=False)
class ResultFile:
    """One file, or one set of own rows, in the common form.

    models: the names and order of the file.  draft, target: the two models that it compares.
    config: the file's settings, "a.b" for nested ones.  message: why it is unknown or failed.
    """

    name: str
    group: Group
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
    bytes: int = 0

    def of(self, model: str, corrected: bool = False) -> tuple[AnswerRecord, ...]:
        """The records of one model, in the file's order."""
        source = self.corrected if corrected else self.records
        return tuple(record for record in source if record.model == model)

    @property
    def own(self) -> bool:
        """Whether these are rows of this project, not of a published file."""
        return self.group.name == "own_runs"

    @property
    def samples(self) -> int:
        """Samples with an answer of any model, each as often as one model answered it."""
        counts = Counter((r.model, r.sample, r.question) for r in self.records)
        most: dict[tuple[str, str], int] = {}
        for (_, *key), count in counts.items():
            sample, question = key
            most[sample, question] = max(count, most.get((sample, question), 0))
        return sum(most.values())

    @property
    def clips(self) -> int:
        """The number of clips with an answer."""
        return len({record.source for record in self.records})


def milliseconds(key: str, value: float) -> float:
    """A time of a file in milliseconds: keys that end in _ms are, all others are seconds."""
    return value if key.endswith("_ms") else 1000 * value
