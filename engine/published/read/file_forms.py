"""The forms of published result files: the keys that identify each, and where its values are.

The schemas are described in docs/published-files.md, the forms are in file_forms.toml.  File names
are not used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import convert

from engine import settings
from engine.published.read.record_types import Group

IDS = ("token_ids", "output_tokens", "output_ids", "tokens")
TEXTS = ("output_text", "output", "text")
LOOKED_AT = 50  # rows whose keys identify a form


@dataclass(frozen=True)
class Answer:
    """Where a row has one model's answer.

    at: the key of the model's object, "" for the row itself.  prefix: the start of its keys in a
    row of several models; also: its keys without this start.  numbers: key in the row -> key in the
    record, None for every number of the model.  claimed: the model that it claims to be.  needs:
    the start of keys without which, in all rows, the file does not have this model.
    by_checkpoint: the key of the text may be the name of a checkpoint.
    """

    at: str = ""
    prefix: str = ""
    also: tuple[str, ...] = ()
    numbers: Mapping[str, str] | None = None
    ids: tuple[str, ...] = IDS
    texts: tuple[str, ...] = TEXTS
    claimed: str = ""
    needs: str = ""
    by_checkpoint: bool = False


@dataclass(frozen=True)
class Rows:
    """A list of rows.

    path: "" for where the form was recognised; "*" stands for the names of several models, also as
    the key of the answer.  figures: numbers of the row that belong to no model; flags: true or
    false.  names: keys of a sample's name before the usual ones.  known: if there are any, all
    other keys are noted as not read.
    """

    answers: Mapping[str, Answer]
    path: str = ""
    figures: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Form:
    """A row of the table of forms.

    It is identified by any of the keys `top` of the file ("a.b" for nested ones), or by the keys of
    its rows: `match`, an expression for any key; `names`, alternatives of sets that each have a key
    of the rows; `lists`, keys of which any holds a list; `nested`, keys of which the objects of the
    two models have any, or none of `or_none_of`.  Rows have such objects if `nested` has keys.
    places: where the rows may be, "$" for the file itself.  pair: draft and target, by default the
    first two models of the rows.  stated: paths of summaries -> the model that they are of, "" for
    both; fields: (model, field) of keys of a summary that do not name their model.
    """

    group: Group
    rows: tuple[Rows, ...] = ()
    top: frozenset[str] = frozenset()
    match: str = ""
    names: tuple[tuple[frozenset[str], ...], ...] = ()
    lists: frozenset[str] = frozenset()
    nested: frozenset[str] = frozenset()
    or_none_of: frozenset[str] = frozenset()
    places: tuple[str, ...] = ("samples", "results")
    pair: tuple[str, str] | None = None
    stated: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unit: str = "s"


UNKNOWN = Group("?", "unknown")
FAILED = Form(Group("Z", "failed run (results empty, only errors)"))
NO_ROWS = Form(Group("Z", "no rows"))
FORMS = convert(settings.read_toml(Path(__file__).with_suffix(".toml"))["forms"], tuple[Form, ...])


def form_of(value: Any) -> tuple[Form, str] | None:
    """The form and the path of the list where it was recognised, or None for another kind."""
    if isinstance(value, list):
        return _by_rows("$", value) or (None if value else (NO_ROWS, ""))
    if not isinstance(value, dict):
        return None
    inner = {f"{name}.{key}" for name, one in value.items() if isinstance(one, dict) for key in one}
    if found := next((form for form in FORMS if form.top & {*value, *inner}), None):
        return found, ""
    if value.get("results") == [] and value.get("errors"):
        return FAILED, ""
    lists = [name for name in ("samples", "results") if isinstance(value.get(name), list)]
    if known := next(filter(None, (_by_rows(name, value[name]) for name in lists)), None):
        return known
    beside = {"config", "statistics", "summary", "errors"} & value.keys()
    return (NO_ROWS, "") if beside and not all(value[name] for name in lists) else None


def _by_rows(place: str, rows: Sequence[Any]) -> tuple[Form, str] | None:
    some = [row for row in rows[:LOOKED_AT] if isinstance(row, dict)]
    names = {key for row in some for key in row}
    lists = {key for row in some for key, inner in row.items() if isinstance(inner, list)}
    objects = (row.get(model) for row in some for model in ("eventgpt", "videollava"))
    nested = {key for inner in objects if isinstance(inner, dict) for key in inner}
    for form in FORMS:
        if place not in form.places or bool(form.nested) != bool(nested):
            continue
        if (
            any(form.match and re.fullmatch(form.match, key) for key in names)
            or any(all(names & keys for keys in every) for every in form.names)
            or form.lists & lists
            or form.nested & nested
            or (form.or_none_of and not form.or_none_of & nested)
        ):
            return form, place
    return None
