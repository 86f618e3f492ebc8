"""Reads the rows and summaries of one file by its form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.published.read.cells import (
    SAMPLES,
    Cells,
    is_number,
    is_time,
    quoted,
    sample_name,
)
from engine.published.read.file_forms import Answer, Form, Rows, flat
from engine.published.read.record_types import AnswerRecord, Claim, SampleFigure
from engine.published.read.stated_figures import Columns, claim, statistic_of

DEPTH = 6  # of summaries within summaries
COUNTS = ("num_output_tokens", "tokens", "n_tokens", "draft_tokens", "decode_tokens")
CONTEXTS = ("prefill_length", "prefill_len", "prefill_tokens", "context_tokens")
IDS = ("token_ids", "output_tokens", "output_ids", "tokens", "draft_tokens")
TEXTS = ("output_text", "output", "text", "draft_text")
SHORT = {"egpt": "eventgpt", "vllava": "videollava", "vl": "videollava"}
TARGET_ALONE = "VL baseline"  # what summaries call the model "baseline"
NO_FIGURES = {*SAMPLES, "question", "question_idx", "query"}
# keys that only answers have, after the name of a model and alone
_OF_A_MODEL = re.compile(
    r"(?!acceptance|parallel|prompt|input|reference|accepted|rejected|matched)([^.]+?)[._]"
    r"(?:(stage\d_time|total_time)|(?:output_|draft_)?tokens|token_ids|output_ids)"
)
_OF_AN_ANSWER = re.compile(r"s(tage)?\d+_time|total_time|token_ids")
Row = tuple[str, str, dict[str, Any]]  # path, sample, values by their keys
Names = dict[str, str]  # the names of a model's values -> their keys in a row


@dataclass
class FileReading:
    """One file while it is read.  rows: how many there are of each model, "" of the samples."""

    form: Form
    cells: Cells = field(default_factory=Cells)
    models: list[str] = field(default_factory=list)
    records: list[AnswerRecord] = field(default_factory=list)
    figures: list[SampleFigure] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    claimed: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)  # the paths of further models
    draft: str = ""
    target: str = ""
    rows: Counter[str] = field(default_factory=Counter)

    def read(self, value: Any, place: str) -> None:
        """All rows and summaries of a file; place: where the rows are that identify its form."""
        for rows in self.form.rows:
            for path, model, listed in _at(value, rows.path or place):
                self._rows(rows, listed, path, model)
        self._compare()
        self._name_unread(value, {place, *(one.path.split(".")[0] for one in self.form.rows)})
        self.rows[""] = self.rows[""] or self.rows[next(iter(self.models), "")]
        columns = self._columns()
        for summary, whose in self.form.stated.items():
            for path, named, stated in _at(value, summary):
                model = "baseline" if named == TARGET_ALONE else named
                self._state(columns, stated, path, model if whose == "*" else whose)

    def _compare(self) -> None:
        """Draft and target: each the only possible name, or the first that has answers."""
        compared = [
            side[0] if len(side) == 1 else next((name for name in side if name in self.models), "")
            for side in self.form.pair
        ]
        if compared and all(compared):
            self.draft, self.target = compared
            self.models = list(dict.fromkeys((*compared, *self.models)))

    def _name_unread(self, value: Any, known: set[str]) -> None:
        """Notes each further model once, also those with a list of their own in the file."""
        for key, inner in value.items() if isinstance(value, dict) else ():
            rows = inner.get("samples") if isinstance(inner, dict) else inner
            first = rows[0] if isinstance(rows, list) and rows else None
            answers = isinstance(first, dict) and any(map(_OF_AN_ANSWER.fullmatch, first))
            if answers and key not in known:
                self.unread.setdefault(key, key)
        for path in self.unread.values():
            both = " and ".join(self.models[:2])
            self.cells.note("model", path, f"the answers read are those of {both}")

    def _rows(self, rows: Rows, listed: object, path: str, named: str) -> None:
        """One list of rows; named: the model of a list that is named by its model."""
        table = []
        for index, where, item in self.cells.objects(listed, path):
            if item:
                table.append((where, sample_name(item, index), flat(item, depth=2)))
            else:
                self.cells.note("empty", where, "an empty object")
        keys = dict.fromkeys(key for _, _, row in table for key in row)
        answers = {
            model.replace("*", named[:80]): answer
            for model, answer in rows.answers.items()
            if not answer.prefix or any(re.match(answer.prefix, key) for key in keys)
        }
        owners = {key: owner for key in keys if (owner := _owner(key, answers))}
        numeric = {key for key in keys if is_time(key) or key in self.form.flags
                   or _is_numeric(key, owners, table)}  # fmt: skip
        sampled = [key for key in keys if (rows.all_figures or key not in owners)
                   and key not in NO_FIGURES]  # fmt: skip
        for model, answer in answers.items():
            if answer.claimed:
                self.claimed[model] = answer.claimed.replace("*", model)
            elif answer.by_checkpoint:
                texts = (key for key, owner in owners.items() if owner == (model, "text"))
                self.claimed.update((model, key) for key in texts)
            if not answer.prefix and model not in self.models:
                self.models.append(model)  # a list of its own
        number = len(listed) if isinstance(listed, list) else 0
        for model in (*answers, *([""] if numeric.intersection(sampled) else [])):
            self.rows[model] = max(self.rows[model], number)
        for where, sample, row in table:
            mine: dict[str, Names] = {model: {} for model in answers}
            for key in row:
                if key in owners:
                    model, name = owners[key]
                    mine[model].setdefault(name, key)
            for model, names in mine.items():
                self._answer(model, (where, sample, row), names, numeric)
            if answers and not any(mine.values()):
                self.cells.note("empty", where, "no model has an answer in it")
            for key in sampled:
                if key in numeric and not (key in owners and isinstance(row.get(key), list)):
                    self._figure(key, sample, f"{where}.{key}", row.get(key))
                found = None if key in owners else _OF_A_MODEL.fullmatch(key)
                if found and (found[2] or isinstance(row.get(key), list)):
                    self.unread.setdefault(found[1], f"{where}.{key}")

    def _figure(self, name: str, sample: str, path: str, value: object) -> None:
        """Adds a number of a row that belongs to no model."""
        if name in self.form.flags and (value is None or isinstance(value, bool)):
            number = None if value is None else float(value)
        elif name in self.form.flags:
            self.cells.note("type", path, f"{quoted(value)} is not true or false")
            return
        else:
            number = self.cells.number(value, path)
        if number is not None:
            self.figures.append(SampleFigure(name, sample, path, number))

    def _answer(self, model: str, place: Row, names: Names, numeric: set[str]) -> None:
        """Adds the record of one model's values in a row, if it has any."""
        where, sample, row = place
        nested = any(key.startswith(f"{model}.") for key in names.values())
        if names.get("object"):  # some scripts write null if a model failed
            if row[model] is not None:
                self.cells.note(
                    "type", f"{where}.{model}", f"{quoted(row[model])} is not an object"
                )
            return
        if not names or ("error" in names and row[names["error"]]):
            return  # the zeros of a failure are not measured
        values = {name: (row[key], f"{where}.{key}") for name, key in names.items()}
        numbers = {
            name: self.cells.count(value, path)
            if name in COUNTS or name in CONTEXTS
            else self.cells.number(value, path, is_time(name))
            for name, (value, path) in values.items()
            if names[name] in numeric and not (name in IDS and isinstance(value, list))
        }
        times = {key: value for key, value in numbers.items() if is_time(key) and value is not None}
        sizes = {key: value for key, value in numbers.items()
                 if not is_time(key) and value is not None}  # fmt: skip
        every = (self.cells.ids(*values[name]) for name in IDS if name in values
                 and (isinstance(values[name][0], list) or names[name] not in numeric))  # fmt: skip
        ids = next((one for one in every if one is not None), None)
        texts = (self.cells.text(*values[name]) for name in TEXTS if name in values)
        text = next((one for one in texts if one is not None), None)
        if not numbers and ids is None and text is None:
            return
        stated = next((sizes[key] for key in COUNTS if key in sizes), None)
        if nested and (name := _word(row, names, "model")):
            self.claimed.setdefault(model, name[:80])
        self.records.append(
            AnswerRecord(
                model=model,
                sample=sample,
                path=f"{where}.{model}" if nested else where,
                group=self.form,
                question=(_word(row, names, "question") or _word(row, names, "query"))[:500],
                times=times,
                sizes=sizes,
                tokens=len(ids) if stated is None and ids is not None else stated,
                ids=ids,
                text=text,
                context=next((sizes[key] for key in CONTEXTS if key in sizes), None),
                lost=frozenset(key for key in numbers if is_time(key) and key not in times),
                clip=_word(row, names, "event_data")[:200],
            )
        )
        if model not in self.models:
            self.models.append(model)

    def _columns(self) -> Columns:
        """The values of each field of the rows."""
        columns: dict[tuple[str, str], list[float]] = {}
        for record in self.records:
            counted = {} if record.tokens is None else {"tokens": record.tokens}
            for key, value in {**record.times, **record.sizes, **counted}.items():
                columns.setdefault((record.model, key), []).append(value)
        for figure in self.figures:
            columns.setdefault(("", figure.name), []).append(figure.value)
        return columns

    def _state(
        self, columns: Columns, summary: object, path: str, model: str = "", depth: int = DEPTH
    ) -> None:
        """Adds the figures of a summary, each beside the value from the rows."""
        for key, value in summary.items() if isinstance(summary, dict) and depth else ():
            place = f"{path}.{key}"
            if isinstance(value, dict):
                whose = key if key in self.models else model
                self._state(columns, value, place, whose, depth - 1)
            elif is_number(value) and (stated := self.cells.number(value, place)) is not None:
                self.claims.append(self._claim(columns, place, stated, model))

    def _claim(self, columns: Columns, path: str, stated: float, model: str) -> Claim:
        """Of a field of the model or of the samples, or of the model that its key names."""
        name, _ = statistic_of(path.rpartition(".")[2])
        start, _, rest = name.partition("_")
        named = start if start in self.models else SHORT.get(start, "")
        fields = [(model, name), self.form.fields.get(name, (named, rest))]
        return claim(path, stated, fields, columns, self.rows)


def _owner(key: str, answers: Mapping[str, Answer]) -> tuple[str, str] | None:
    """(model, name) of a key of the rows, None if it belongs to no model."""
    for model, answer in answers.items():
        if key in answer.also:
            return model, answer.also[key]
    for model, answer in answers.items():
        if answer.prefix and key == model:
            return model, "object" if "\\." in answer.prefix else "text"
        if answer.by_checkpoint and "llava" in key and "_" not in key:
            return model, "text"
        start = re.match(answer.prefix, key)
        if start and key not in NO_FIGURES:
            return model, key[start.end() :]
    return None


def _is_numeric(key: str, owners: Mapping[str, tuple[str, str]], table: list[Row]) -> bool:
    """Whether a key is known to have numbers, or at least half of its values are numbers."""
    _, name = owners.get(key, ("", ""))
    if name in (*COUNTS, *CONTEXTS) and name not in IDS:
        return True
    values = [row[key] for _, _, row in table if row.get(key) is not None]
    if name in TEXTS or (name in IDS and any(isinstance(value, list) for value in values)):
        return False
    return 0 < len(values) <= 2 * sum(map(is_number, values))


def _word(row: Mapping[str, Any], names: Names, name: str) -> str:
    """A text of the model's answer or of the row, "" without one."""
    value = row.get(names.get(name, name), row.get(name))
    return value if isinstance(value, str) else ""


def _at(value: object, path: str) -> Iterator[tuple[str, str, object]]:
    """(path, last key, value) of what a file has there; "*" stands for each key, "$" for the
    file."""
    first, _, rest = path.partition(".")
    if path == "$":
        yield path, "", value
    elif isinstance(value, dict):
        for key in value if first == "*" else {first} & value.keys():
            if not rest:
                yield key, key, value[key]
            for inner, last, found in _at(value[key], rest) if rest else ():
                yield f"{key}.{inner}", last, found
