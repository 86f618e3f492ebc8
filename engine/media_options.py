"""The description of an option, and the values and texts of windows, splits and perturbations.
Texts are those of the command line, links and rows.  Times are whole microseconds."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from itertools import product
from typing import Any, Literal, TypeVar, get_args

from engine.errors import BadInput
from engine.quoting import quoted, whole

SplitRule = Literal["count", "time", "densest"]
Change = Literal["drop", "jitter", "hot", "window", "rate"]
SPLIT_RULES: tuple[SplitRule, ...] = get_args(SplitRule)
CHANGES: tuple[Change, ...] = get_args(Change)
SPLIT_WORDS: Mapping[SplitRule, str] = {
    "count": "equal numbers of events",
    "time": "equal times",
    "densest": "the densest 25 ms of equal times",
}
DENSEST_US = 25_000  # of each part, as EventGPT-Plus does (arXiv 2511.18448)
MAX_PARTS = 64
MAX_STRENGTHS = 32  # of a sweep
MAX_US = 2**53  # 285 years; larger times are not exact as floats
_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_TIME = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,12})?)\s*(us|ms|s|min|h)")

Value = TypeVar("Value")
Box = Literal["decoding", "pipeline", "recording"]


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of a run, described once; a field of MediaOptions, DecodeConfig or RunOptions.

    `title` names it in sentences and tables, `label` beside its widget.  `help` is the text of its
    flag and of its widget.  `words` tells its value in a RunOptions, as on a chip; None if the chip
    of another option tells it.  `chip` is the name of a chip that tells several.
    """

    title: str
    words: Callable[[Any], str] | None = None
    box: Box | None = None  # the group of widgets; None: neither widget nor flag
    help: str | None = None
    label: str = ""
    chip: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)  # value: its label
    low: float | None = None
    high: float | None = None
    step: float | None = None
    slider: tuple[float, float, float] | None = None  # lowest, highest and first value
    read: Callable[[str], Any] | None = None  # from its text
    form: str | None = None  # of the text
    example: str = ""
    needs: str = ""  # the option without which it has no effect
    link: str = ""  # in page addresses, if it is not the field's name
    answers: bool = True  # whether answers depend on it, otherwise only times do

    def check(self, name: str, value: Any) -> None:
        """BadInput if the value is no choice or out of range."""
        if self.choices and value not in self.choices:
            known = ", ".join(self.choices)
            raise BadInput(f"{name} is {quoted(value)}: choose one of {known}.")
        if self.low is not None and self.high is not None:
            check_range(name, value, self.low, self.high)


def check_range(name: str, value: float, low: float, high: float) -> None:
    """BadInput if the value is out of range."""
    if not low <= value <= high:
        raise BadInput(f"{name} is {whole(value)}: choose a value from {low:,} to {high:,}.")


def option(default: Value, **described: Any) -> Value:
    """A dataclass field that is an option of a run, with the fields of its Option."""
    return field(default=default, metadata={"option": Option(**described)})


def options_of(kind: Any) -> dict[str, Option]:
    return {one.name: one.metadata["option"] for one in fields(kind) if "option" in one.metadata}


def check_options(values: object) -> None:
    """BadInput for an option of this instance that is no choice or out of range."""
    for name, described in options_of(values).items():
        described.check(name, getattr(values, name))


@dataclass(frozen=True)
class Window:
    """A part of a recording: `length_us` from `start_us` after its first event."""

    start_us: int
    length_us: int

    def __post_init__(self) -> None:
        if not (0 <= self.start_us <= MAX_US and 1 <= self.length_us <= MAX_US):
            raise BadInput(
                f"A window starts at {self.start_us:,} us and lasts {self.length_us:,} us: choose "
                "a start from 0 on and a length of at least 1 us."
            )

    @property
    def end_us(self) -> int:
        return self.start_us + self.length_us

    def __str__(self) -> str:
        return f"{time_text(self.start_us)}+{time_text(self.length_us)}"


def window(text: str) -> Window | None:
    """START+LENGTH as in "1.25s+50ms", or LENGTH from the beginning; None for an empty text."""
    if not text.strip():
        return None
    start, _, length = text.rpartition("+")
    try:
        return Window(microseconds(start) if start else 0, microseconds(length))
    except BadInput:
        raise BadInput(
            f"The window is {quoted(text)}: write START+LENGTH in whole microseconds or more, with "
            "units (us, ms, s, min, h), as in 1.25s+50ms."
        ) from None


def microseconds(text: str) -> int:
    """A time such as "50ms" or "1.25 s" in whole microseconds; BadInput for anything else."""
    found = _TIME.fullmatch(text.strip())
    value = Decimal(found[1]) * _UNITS[found[2]] if found else None
    if value is None or value != int(value) or value > MAX_US:
        raise BadInput(f"{quoted(text)} is not a time in us, ms, s, min or h: write it as in 50ms.")
    return int(value)


def time_text(us: int) -> str:
    """The exact time in the largest unit that is not longer than it."""
    unit = "s" if us >= 1_000_000 or not us else "ms" if us >= 1_000 else "us"
    return f"{(Decimal(us) / _UNITS[unit]).normalize():f}{unit}"


@dataclass(frozen=True)
class Split:
    """How a recording becomes `parts` event pictures.  "count": the same number of events in each,
    EventGPT's rule; "time": the same duration; "densest": of each equal duration the 25 ms with the
    most events."""

    rule: SplitRule = "count"
    parts: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.parts <= MAX_PARTS:
            raise BadInput(f"split has {self.parts:,} parts: choose 1 to {MAX_PARTS}.")

    def __str__(self) -> str:
        return f"{self.rule}:{self.parts}"

    @property
    def words(self) -> str:
        return f"{self.parts:,} parts by {SPLIT_WORDS[self.rule]}"


COUNT_SPLIT = Split()  # EventGPT's own


def split(text: str) -> Split:
    """RULE or RULE:PARTS, as in "time:8"; BadInput for anything else."""
    named = re.fullmatch(rf"({'|'.join(SPLIT_RULES)})(?::([0-9]{{1,9}}))?", text)
    if named is None:
        raise BadInput(
            f"split is {quoted(text)}: write {', '.join(SPLIT_RULES)}, or with a number of parts "
            "as in time:8."
        )
    rule = next(one for one in SPLIT_RULES if one == named[1])
    return Split(rule, int(named[2])) if named[2] else Split(rule)


@dataclass(frozen=True)
class Perturbation:
    """One change of the input; strength 0 changes nothing.  Strengths are shares from 0 to below 1;
    that of "jitter" is a standard deviation in microseconds."""

    change: Change
    strength: float

    def __post_init__(self) -> None:
        most = MAX_US if self.change == "jitter" else 1
        if not 0 <= self.strength < most:
            form = "a share from 0 to below 1" if most == 1 else "a time such as 500us"
            raise BadInput(f"{self.change} has the strength {self.strength:g}: give {form}.")

    def __str__(self) -> str:
        if self.change == "jitter":
            return f"jitter:{time_text(int(self.strength))}" if self.strength else "jitter:0us"
        share = f"{self.strength:.9f}".rstrip("0").rstrip(".")  # as many digits as are read
        return f"{self.change}:{share}"


def perturbations(text: str) -> tuple[Perturbation, ...]:
    """CHANGE:STRENGTH, several joined by commas, as in "drop:0.3,jitter:500us"."""
    first, *others = sweep(text)
    if others:
        raise BadInput(
            f"{quoted(text)} gives several strengths: only the command `bench` sweeps, give one."
        )
    return first


def sweep(text: str) -> tuple[tuple[Perturbation, ...], ...]:
    """The changes of each run of a text such as "drop:0/0.3/0.6,jitter:1ms", ascending by strength.
    One run without strengths joined by "/".  BadInput if several changes have some, or for a change
    or a strength that is given twice."""
    found = dict[str, list[Perturbation]]()
    for part in filter(None, map(str.strip, text.split(","))):
        change, _, strengths = part.partition(":")
        if change in found:
            raise BadInput(f"{change} is given twice in {quoted(text)}: give it once.")
        found[change] = [_perturbation(change, one.strip()) for one in strengths.split("/")]
    swept = [each for each in found.values() if len(each) > 1]
    if len(swept) > 1 or any(
        len({*each}) < len(each) or len(each) > MAX_STRENGTHS for each in swept
    ):
        raise BadInput(
            f"{quoted(text)} is no sweep: give at most {MAX_STRENGTHS} different strengths for one "
            "change."
        )
    ordered = [
        sorted(found[name], key=lambda one: one.strength) for name in CHANGES if name in found
    ]
    return tuple(product(*ordered))


def sweep_text(runs: Sequence[tuple[Perturbation, ...]]) -> str:
    """What sweep() reads as these runs, which differ in the strength of one change."""
    parts = list[str]()
    for same in zip(*runs, strict=True):
        strengths = dict.fromkeys(str(one).partition(":")[2] for one in same)
        parts.append(f"{same[0].change}:{'/'.join(strengths)}")
    return ",".join(parts)


def swept_change(runs: Iterable[tuple[Perturbation, ...]]) -> Change | None:
    """The one change whose strength differs between the runs; None if none or several do."""
    given = [{one.change: one.strength for one in run} for run in runs]
    differing = [name for name in CHANGES if len({run.get(name, 0.0) for run in given}) > 1]
    return differing[0] if len(differing) == 1 else None


def _perturbation(name: str, strength: str) -> Perturbation:
    change = next((one for one in CHANGES if one == name), None)
    timed = change == "jitter" and strength != "0"
    if change is None or not (timed or re.fullmatch(r"[0-9]{0,3}\.?[0-9]{1,9}", strength)):
        raise BadInput(
            f"{quoted(f'{name}:{strength}'.rstrip(':'))} is not a perturbation: write "
            f"CHANGE:STRENGTH with one of {', '.join(CHANGES)}, as in drop:0.3 or jitter:500us."
        )
    return Perturbation(change, float(microseconds(strength) if timed else strength))
