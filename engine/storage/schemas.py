"""What the files of a run and the certificates hold, as types that msgspec checks them against.

A file that was written earlier is input like any other: it may be cut, changed by hand, or of
another program.  `checked` gives back the plain dict that was read, so that keys which are not
named here stay as they are.  A key that is absent means "not known".

Boundary: shapes and ranges; reads no file.  The lines of results.jsonl have their type in
result_rows.py, the header of a run in run_header.py, beside its plan.  summary.json is written for
other programs and never read back.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Meta, Struct

from engine.storage.plan import Phase, Task

Outcome = Literal["passed", "tie", "failed", "unresolved", "skipped"]  # of a check
PASSED = ("passed", "tie")
MOST = 10**12  # of milliseconds, tokens or bytes: more is no measurement
Time = Annotated[float, Meta(ge=0, le=MOST)]  # milliseconds
Difference = Annotated[float, Meta(ge=-MOST, le=MOST)]  # milliseconds; rounding may go below 0
Lasting = Annotated[float, Meta(ge=-1, le=MOST)]  # milliseconds; a difference may round below 0
Rate = Annotated[float, Meta(ge=0, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
Positive = Annotated[int, Meta(ge=1, le=MOST)]
Repeat = Annotated[int, Meta(ge=0, le=10**9)]
Name = Annotated[str, Meta(min_length=1)]
Texts = dict[str, str]
Plain = dict[str, str | int | float | bool | None]


class Event(Struct):
    """A line of journal.jsonl."""

    event: Name
    at: str = ""
    text: str = ""
    tasks: list[Any] | None = None


class Annotation(Struct, frozen=True):
    """A line of marks.jsonl: what a reader says about an answer."""

    model: Name
    sample: Name
    repeat: Repeat
    phase: Phase
    thumb: Literal["up", "down", ""]
    note: str

    @classmethod
    def parse(cls, line: bytes) -> Self:
        return msgspec.convert(checked(line), cls)

    @property
    def task(self) -> Task:
        """The answer that it is about."""
        return Task(self.model, self.sample, self.repeat, self.phase)


class StoredVerdict(Struct):
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
    verdicts: list[StoredVerdict]
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
