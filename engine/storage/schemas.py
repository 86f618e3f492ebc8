"""The types of stored files (runs, certificates), which msgspec checks.

A stored file is untrusted input: it may be cut, edited by hand, or from another program.  `checked`
returns the plain dict that was read, so unknown keys are preserved.  An absent key means "not
known".

The type of a line of results.jsonl is in result_rows.py, that of a run's header in run_header.py.
summary.json is written for other programs; only its id is read.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from engine.plain_files import Name, Repeat
from engine.storage.plan import Phase, Task

# Of a check; refused: the model does not offer what the check is about, so no run does it.
Outcome = Literal["passed", "tie", "failed", "unresolved", "skipped", "refused"]
Choice = Literal["first", "second", "both", "neither"]  # of a vote
PASSED = ("passed", "tie")
SHOWN = 12  # characters of a certificate's hash that name it
Texts = dict[str, str]


class Event(Struct):
    """A line of journal.jsonl."""

    event: Name
    at: str = ""
    text: str = ""
    tasks: list[Any] | None = None


class Annotation(Struct, frozen=True):
    """A line of marks.jsonl: a user's thumb and note on an answer."""

    model: Name
    sample: Name
    repeat: Repeat
    phase: Phase
    thumb: Literal["up", "down", ""]
    note: str

    @property
    def task(self) -> Task:
        return Task(self.model, self.sample, self.repeat, self.phase)


class VotedAnswer(Struct, frozen=True, order=True):
    """An answer of a vote: the run's id, the model and the repeat; the vote has the sample."""

    run: Name
    model: Name
    repeat: Repeat


class Vote(Struct, frozen=True):
    """A line of votes.jsonl: which of two answers about a sample a visitor prefers.  `blind`: the
    names were hidden when the visitor chose.  `visit`: a number of the session."""

    sample: Name
    answers: tuple[VotedAnswer, VotedAnswer]  # in their own order, not that of the screen
    choice: Choice
    blind: bool
    visit: Annotated[int, Meta(ge=0, lt=2**32)]


class Standing(Struct, frozen=True):
    """Whether a certificate covers a result; `missing`: what the closest one does not cover, or
    which timing checks of a covering one stayed open.  Of a server: how long ago it was proved, or
    what was found instead."""

    state: Literal["verified", "not covered", "unverified", "proved", "disproved"]
    certificate: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return (self.certificate or "")[:SHOWN]

    @property
    def words(self) -> str:
        """What is proved, such as "same answer as generate(), timing verified" or "unverified"."""
        if self.state == "not covered":
            return f"not covered: {', '.join(self.missing)}"
        if self.state == "unverified":
            return self.state
        if self.state == "proved":
            return f"the model it says, proved {', '.join(self.missing)}"
        if self.state == "disproved":
            return "not the checkpoint as published"
        return "same answer as generate()" + ("" if self.missing else ", timing verified")

    @property
    def open_timing(self) -> str:
        """What is not proved of a verified result's times, as a sentence; or ""."""
        if self.state != "verified" or not self.missing:
            return ""
        return f"Not resolved on the verified samples: {', '.join(self.missing)}."


UNVERIFIED = Standing("unverified")


def checked(line: bytes, form: type[Struct] | None = None) -> dict[str, Any]:
    """One JSON object, unchanged, checked against `form`; raises one of JSON_FAULTS otherwise."""
    value = msgspec.json.decode(line)
    if not isinstance(value, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(value).__name__}`")
    if form is not None:
        msgspec.convert(value, form)
    return value
