"""What the files of a run and the certificates hold, as types that msgspec checks them against.

A file that was written earlier is input like any other: it may be cut, changed by hand, or of
another program.  `checked` gives back the plain dict that was read, so that keys which are not
named here stay as they are: a row may hold more than this version of the program knows.  A key
that is absent means "not known".

Boundary: shapes and ranges; reads no file.  The header of a run has its type in header.py, beside
its plan.  summary.json is written for other programs and never read back.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Outcome = Literal["passed", "tie", "failed", "unresolved", "skipped"]  # of a check
PASSED = ("passed", "tie")
MOST = 10**12  # of milliseconds, tokens or bytes: more is no measurement
Time = Annotated[float, Meta(ge=0, le=MOST)]  # milliseconds
Difference = Annotated[float, Meta(ge=-MOST, le=MOST)]  # milliseconds; rounding may go below 0
Lasting = Annotated[float, Meta(ge=-1, le=MOST)]  # milliseconds; a difference may round below 0
Rate = Annotated[float, Meta(ge=0, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
Positive = Annotated[int, Meta(ge=1, le=MOST)]
Name = Annotated[str, Meta(min_length=1)]
Texts = dict[str, str]
Plain = dict[str, str | int | float | bool | None]


class Span(Struct):
    """A stage on its run's clock, or the batch's."""

    start_ms: Difference
    ms: Lasting
    source: str
    original_ms: Difference | None = None
    cpu_ms: Difference | None = None
    waited_ms: Difference | None = None


Stages = dict[str, Span | None]


class Tensor(Struct):
    """A tensor that passed from one stage to the next."""

    name: str
    shape: list[Count]
    dtype: str
    bytes: Count


class Backend(Struct):
    """What was asked to decode, and what decoded."""

    asked: str | None = None
    ran: str | None = None


class Config(Struct):
    """How tokens were chosen, as far as figures depend on it."""

    max_new_tokens: Count | None = None
    min_new_tokens: Count | None = None


class MachineLoad(Struct):
    """How busy the machine was during a run."""

    began_s: Time
    wall_ms: Time
    cpu_ms: Time
    cores: Positive
    threads: Positive
    waited_ms: Time | None = None
    others: Rate | None = None
    steal: Rate | None = None
    runnable: Rate | None = None


class Extent(Struct):
    """How large event pictures were to be drawn, and were."""

    asked: str | None = None
    ran: str | None = None


class Standing(Struct):
    """Whether a certificate covers a result, and what is missing."""

    state: str
    certificate: str | None = None
    missing: list[str] = []


class Place(Struct):
    """Which worker of a cluster answered."""

    node: str | None = None
    host: str | None = None
    address: str | None = None
    device: str | None = None
    type: str | None = None
    actor: str | None = None
    shares: list[str] | None = None


class Key(Struct):
    """What a line of results.jsonl or marks.jsonl is about."""

    model: Name
    sample: Name
    repeat: Annotated[int, Meta(ge=0, le=10**9)]
    phase: Literal["warmup", "measured"]


class Row(Key):
    """A line of results.jsonl: one result, or why there is none."""

    error: str | None = None
    family: str | None = None
    checkpoint: str | None = None
    revision: str | None = None
    digest: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    identity: dict[str, Any] | None = None
    sequence: str | None = None
    prompt: str | None = None
    text: str | None = None
    reference: str | None = None
    truth: Texts | None = None
    token_ids: list[Count] | None = None
    token_ms: list[Time] | None = None
    new_tokens: Count | None = None
    context_tokens: Count | None = None
    stop: str | None = None
    mode: str | None = None
    cache: str | None = None
    frames: str | None = None
    pixels: str | None = None
    shown: str | None = None
    decode_config: Config | None = None
    backend: Backend | None = None
    cold: bool | None = None
    stages: Stages | None = None
    prefill: Span | None = None
    steps: Span | None = None
    ttft_ms: Time | None = None
    tpot_ms: Time | None = None
    tokens_per_s: Rate | None = None
    total_ms: Time | None = None
    uncached_total_ms: Difference | None = None
    unaccounted_ms: Difference | None = None
    prefix: dict[str, Any] | None = None
    tensors: list[Tensor] | None = None
    notes: list[str] | None = None
    environment: Plain | None = None
    verified: str | None = None
    batch: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    batch_id: str | None = None
    batch_asked: Count | None = None
    batch_stages: Stages | None = None
    batch_prefill: Span | None = None
    batch_steps: Span | None = None
    batch_ms: Time | None = None
    batch_tokens: Count | None = None
    batch_cached: Count | None = None
    batch_tokens_per_s: Rate | None = None
    batch_samples_per_s: Rate | None = None
    paused_ms: Time | None = None
    extent: Extent | None = None
    off_script: bool | None = None
    machine_load: MachineLoad | None = None
    standing: Standing | None = None
    at: str | None = None
    where: Place | None = None

    def __post_init__(self) -> None:
        """An answer must have the figures that every reader of answers takes for granted."""
        if self.error:
            return
        together = (self.batch or 1) > 1
        for name in _OF_A_BATCH if together else _OF_ONE:
            if getattr(self, name) is None:
                raise ValueError(f"It is an answer and has no `{name}`")
        for name in ("token_ids", "token_ms"):
            found = getattr(self, name)
            if found is not None and len(found) != self.new_tokens:
                raise ValueError(f"`new_tokens` is {self.new_tokens} and `{name}` has {len(found)}")


_OF_ONE = ("new_tokens", "stages", "total_ms")
_OF_A_BATCH = ("batch_id", "batch_stages", "batch_ms", "batch_tokens", "batch_cached", "new_tokens")


class Event(Struct):
    """A line of journal.jsonl."""

    event: Name
    at: str = ""
    text: str = ""
    tasks: list[Any] | None = None


class Annotation(Key):
    """A line of marks.jsonl: what a reader says about an answer."""

    thumb: Literal["up", "down", ""]
    note: str


class Verdict(Struct):
    """One check of a certificate."""

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


class VerifiedModel(Struct):
    """A model of a certificate: what it was, where it ran, and whether it was verified."""

    name: Name
    digest: str
    dtype: str
    environment: Texts
    backend: str
    verified: bool
    coverage: dict[str, Any] = {}
    unproved: list[str] = []


class VerifiedRequest(Struct):
    """What a verification was asked."""

    dataset: str
    samples: list[str]
    prompt: str
    max_new_tokens: Count
    runs: Count
    backend: str
    pixels: str
    extent: str | None = None
    batch: Count | None = None


class Certificate(Struct):
    """A file of the certificates folder."""

    format: int
    made: str
    engine: str
    libraries: Texts
    request: VerifiedRequest
    models: list[VerifiedModel]
    verdicts: list[Verdict]
    hash: Name


class KeptFile(Struct):
    """A file of an imported set: what it was called, and its name in the set's folder."""

    file: str
    kept: Annotated[str, Meta(pattern=r"\A[0-9]{3,5}\.json\Z")]


class KeptSet(Struct):
    """set.json: the list of an imported set."""

    files: list[KeptFile]
    imported: str = ""


def checked(line: bytes, form: type[Struct] | None = None) -> dict[str, Any]:
    """One JSON object as it stands, of this form; one of JSON_FAULTS for anything else."""
    value = msgspec.json.decode(line)
    if not isinstance(value, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(value).__name__}`")
    if form is not None:
        msgspec.convert(value, form)
    return value
