"""The forms of published result files (docs/published-files.md, file_forms.toml): the keys that
identify each, not its name, and where its values are.  {"a": {"b": 1}} has the key "a.b"."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, convert

from engine import settings
from engine.quoting import one_line
from engine.types import StageName

Part = StageName | Literal["load+preprocess", "prefill", "steps", "total"]
GENERAL = "? unknown form, read by the general rule"
LOOKED_AT = 50  # rows whose keys identify a form
MOST_MODELS = 20  # of an unknown form


class Answer(Struct, frozen=True):
    """Where a row has one model's answer.  prefix: an expression for the start of the model's keys,
    "" if the whole row is its answer.  also: further keys -> their names.  claimed: the model that
    it claims to be.  text: an expression for the key of the text if it is the name of the
    checkpoint, which is then claimed."""

    prefix: str = ""
    also: Mapping[str, str] = {}
    claimed: str = ""
    text: str = ""


class Rows(Struct, frozen=True):
    """A list of rows.  path: "" for where the form was recognised; "*" stands for the names of
    several models, also as the key of the answer.  Numbers of no model belong to the sample;
    all_figures: so do the others."""

    answers: Mapping[str, Answer]
    path: str = ""
    all_figures: bool = False


class Form(Struct, frozen=True):
    """A row of the table of forms.

    match: expressions that each fit a key of the file ("" in `places`) or of the rows in one of the
    places ("$": the file itself is the list); keys of lists end in "[]".  unless: fits no key.
    pair: draft and target; of several possible names the one that has answers.  stated: paths of
    summaries -> the model that they are of, "" for both; fields: (model, field) of keys of a
    summary that do not name their model.
    numbers: expressions for keys of the rows, without the name of a model, whose values are numbers
    beside times and counts; other keys have numbers if at least half of their values are.
    stages: the timing keys and the part of a run that each is.  covers: the parts that a record's
    total should be the sum of; () if that is not known.  first_token_in_prefill: the prefill time
    includes the first token.  fixed_length: all answers have a fixed small number of tokens.
    """

    title: str
    match: tuple[str, ...] = ()
    unless: str = ""
    places: tuple[str, ...] = ("samples", "results")
    rows: tuple[Rows, ...] = ()
    pair: tuple[tuple[str, ...], ...] = ()
    stated: Mapping[str, str] = {}
    fields: Mapping[str, tuple[str, str]] = {}
    unit: str = "s"
    numbers: tuple[str, ...] = ()
    stages: Mapping[str, Part] = {}
    covers: tuple[Part, ...] = ()
    first_token_in_prefill: bool = False
    fixed_length: bool = False

    def __str__(self) -> str:
        return self.title

    @property
    def is_known(self) -> bool:
        return not self.title.startswith("?")

    @property
    def total_is_whole_run(self) -> bool:
        return not {"load", "load+preprocess"}.isdisjoint(self.covers)

    def added(self, keys: Iterable[str]) -> list[str]:
        """The keys of stages that add up to the total: without totals, and without prefill and
        steps if decode includes them."""
        parts = {key: self.stages.get(key, "total") for key in keys}
        skipped = {"total", "prefill", "steps"} if "decode" in parts.values() else {"total"}
        return [key for key, part in parts.items() if part not in skipped]

    def fits(self, place: str, keys: Iterable[str]) -> bool:
        """Whether the keys of this place identify the form."""
        if self.unless and any(re.fullmatch(self.unless, key) for key in keys):
            return False
        found = (any(re.fullmatch(one, key) for key in keys) for one in self.match)
        return place in self.places and all(found)


UNKNOWN = Form("? unknown")
# In rows of an unknown form: values of a model; a name and a value; names that are no model's.
_VALUE = (
    r"(?:(?:load|preprocess|vision|prefill|decode|total)_)?(?:time|ms)|token_ids|output|"
    r"(?:output_)?(?:tokens|ids|text)"
)
_MODELS_VALUE = re.compile(rf"([\w ./-]{{1,80}}?)[._]({_VALUE})")
_NO_MODEL = re.compile(
    r"(?:.*[_.])?(?:load|loading|prep|preprocess(?:ing)?|vision|prefill|decod(?:e|er|ing)|total|"
    r"generat(?:e|ion)|stage\d*|first|tokens?|draft|steps?|accept(?:ed|ance)|match(?:es|ed)?|"
    r"speed(?:_?up)?|parallel|inputs?|prompt|reference|ground_truth|new|max|min|mean|avg|std|ttft|"
    r"tpot|wall|e2e|warm_?up|sampl(?:e|ing)|projector|inference|latency|cpu|gpu|encod(?:e|er))"
)
_PARTS: tuple[Part, ...] = ("load", "preprocess", "vision", "prefill", "decode", "total")
FAILED = Form("Z failed run (results empty, only errors)")
NO_ROWS = Form("Z no rows")
FORMS = convert(settings.read_toml(Path(__file__).with_suffix(".toml"))["forms"], tuple[Form, ...])


def flat(value: object, prefix: str = "", depth: int = 4) -> dict[str, Any]:
    """Nested objects as one: {"a": {"b": 1}} is {"a.b": 1}."""
    found: dict[str, Any] = {}
    for key, inner in value.items() if isinstance(value, dict) else ():
        key = one_line(key)  # a line break could pass for a line of the output
        if isinstance(inner, dict) and inner and depth:
            found |= flat(inner, f"{prefix}{key}.", depth - 1)
        else:
            found[prefix + key] = inner
    return found


def general(keys: Iterable[str]) -> Form | None:
    """A form for rows of an unknown one: the names before times, ids and texts are the models.  It
    compares no two of them, and does not say what a total covers."""
    values: dict[str, set[str]] = {}
    for key in keys:
        if named := _MODELS_VALUE.fullmatch(key):
            values.setdefault(named[1], set()).add(named[2])
    answers = {}
    for name, found in values.items():
        timed = [value for value in found if value.endswith(("time", "ms"))]
        # a total, or both a time and what was answered
        whole = any(value.startswith("total") for value in timed) or 0 < len(timed) < len(found)
        if whole and not _NO_MODEL.fullmatch(name):
            answers[name] = Answer(rf"{re.escape(name)}(?:\.(?=\w+$)|_(?=(?:{_VALUE})$))")
    if not 0 < len(answers) <= MOST_MODELS:
        return None
    stages: dict[str, Part] = {f"{part}_{unit}": part for part in _PARTS for unit in ("time", "ms")}
    stages |= {"time": "total", "ms": "total"}
    return Form(GENERAL, rows=(Rows(answers),), stages=stages)


def form_of(value: Any) -> tuple[Form, str] | None:
    """The form and the place where it was recognised, or None for another kind."""
    if not isinstance(value, (list, dict)):
        return None
    lists: dict[str, Any] = {"$": value}
    if isinstance(value, dict):
        lists = {name: rows for name in ("samples", "results")
                 if isinstance(rows := value.get(name), list)}  # fmt: skip
    for place, rows in {"": [value], **lists}.items():
        some = [flat(row, depth=1) for row in rows[:LOOKED_AT]]
        keys = {f"{key}[]" if isinstance(row[key], list) else key for row in some for key in row}
        if found := next((form for form in FORMS if keys and form.fits(place, keys)), None):
            return found, place
    for place, rows in lists.items():
        if found := general(key for row in rows for key in flat(row, depth=1)):
            return found, place
    if isinstance(value, list):
        return None if value else (NO_ROWS, "")
    if value.get("results") == [] and value.get("errors"):
        return FAILED, ""
    beside = {"config", "statistics", "summary", "errors"} & value.keys()
    return (NO_ROWS, "") if beside and not all(lists.values()) else None
