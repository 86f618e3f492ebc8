"""Reads the rows and summaries of one file by its form."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from engine.published.read import cells
from engine.published.read.cells import SAMPLES, Cells, Columns, Field, is_number, is_time, quoted
from engine.published.read.file_forms import Answer, Form, Rows, flat, general
from engine.published.read.record_types import AnswerRecord, Claim, SampleFigure

DEPTH = 5  # of summaries within summaries
COUNTS = ("num_output_tokens", "tokens", "n_tokens", "draft_tokens", "decode_tokens")
CONTEXTS = ("prefill_length", "prefill_len", "prefill_tokens", "context_tokens")
IDS = ("token_ids", "output_tokens", "output_ids", "tokens", "draft_tokens")
TEXTS = ("output_text", "output", "text", "draft_text")
SHORT = {"egpt": "eventgpt", "vllava": "videollava", "vl": "videollava"}
FLAGS = {"output_matches"}  # true or false
WORDS = ("model", "question", "query", "event_data")
NO_FIGURES = {*SAMPLES, "question", "question_idx", "query"}
# keys that only answers have, after the name of a model and alone
_OF_A_MODEL = re.compile(
    r"(?!acceptance|parallel|prompt|input|reference|accepted|rejected|matched)([^.]+?)[._]"
    r"(?:(stage\d_time|total_time)|(?:output_|draft_)?tokens|token_ids|output_ids)"
)
_OF_AN_ANSWER = re.compile(r"s(tage)?\d+_time|total_time|token_ids")
T = TypeVar("T")
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
        for form in self.form.rows:
            for path, model, listed in _at(value, form.path or place):
                self._rows(form, listed, path, model)
        # each the only possible name, or the first that has answers
        compared = [next((name for name in side if name in self.models or not side[1:]), "")
                    for side in self.form.pair]  # fmt: skip
        if compared and all(compared):
            self.draft, self.target = compared
            self.models = list(dict.fromkeys((*compared, *self.models)))
        known = {place, *(one.path.split(".")[0] for one in self.form.rows)}
        for key, inner in value.items() if isinstance(value, dict) else ():
            rows = inner.get("samples") if isinstance(inner, dict) else inner
            first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
            answers = any(map(_OF_AN_ANSWER.fullmatch, first)) or general(flat(first, depth=1))
            if answers and key not in known:  # a further model with a list of its own
                self.unread.setdefault(key, key)
        both = " and ".join(self.models[:2])
        for path in self.unread.values():
            self.cells.note("model", path, f"the answers read are those of {both}")
        self.rows[""] = self.rows[""] or self.rows[next(iter(self.models), "")]
        columns: dict[Field, list[float]] = {}
        for record in self.records:
            counted = {} if record.tokens is None else {"tokens": record.tokens}
            for name, one in {**record.times, **record.sizes, **counted}.items():
                columns.setdefault((record.model, name), []).append(one)
        for figure in self.figures:
            columns.setdefault(("", figure.name), []).append(figure.value)
        for summary, whose in self.form.stated.items():
            for path, named, stated in _at(value, summary):
                model = "baseline" if named == "VL baseline" else named
                self._state(columns, stated, path, model if whose == "*" else whose)

    def _rows(self, rows: Rows, listed: object, path: str, named: str) -> None:
        """One list of rows; named: the model of a list that is named by its model."""
        table = []
        for index, where, item in self.cells.objects(listed, path):
            if item:
                table.append((where, cells.sample_name(item, index), flat(item, depth=2)))
            else:
                self.cells.note("empty", where, "an empty object")
        keys = dict.fromkeys(key for _, _, row in table for key in row)
        answers = {
            model.replace("*", named[:80]): answer
            for model, answer in rows.answers.items()
            if not answer.prefix or any(re.match(answer.prefix, key) for key in keys)
        }
        owners = {key: owner for key in keys if (owner := _owner(key, answers))}
        numeric = {key for key in keys if self._is_numeric(key, owners, table)}
        sampled = [key for key in keys if (rows.all_figures or key not in owners)
                   and key not in NO_FIGURES]  # fmt: skip
        for model, answer in answers.items():
            if answer.claimed:
                self.claimed[model] = answer.claimed.replace("*", model)
            elif answer.text:
                texts = (key for key, owner in owners.items() if owner == (model, "text"))
                self.claimed.update((model, key) for key in texts)
            if not answer.prefix and model not in self.models:
                self.models.append(model)  # a list of its own
        length = len(listed) if isinstance(listed, list) else 0
        for model in (*answers, *([""] if numeric.intersection(sampled) else [])):
            self.rows[model] = max(self.rows[model], length)
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
                value, path = row.get(key), f"{where}.{key}"
                if key in numeric and not (key in owners and isinstance(value, list)):
                    read = self.cells.flag if key in FLAGS else self.cells.number
                    if (number := read(value, path)) is not None:
                        self.figures.append(SampleFigure(key, path, number))
                found = None if key in owners else _OF_A_MODEL.fullmatch(key)
                if found and (found[2] or isinstance(value, list)):
                    self.unread.setdefault(found[1], path)

    def _is_numeric(self, key: str, owners: Mapping[str, Field], table: list[Row]) -> bool:
        """Whether a key is known to have numbers, or at least half of its values are numbers."""
        _, name = owners.get(key, ("", ""))
        counted = name in (*COUNTS, *CONTEXTS) and name not in IDS
        listed = any(re.fullmatch(number, name or key) for number in self.form.numbers)
        if is_time(key) or key in FLAGS or counted or listed:
            return True
        values = [row[key] for _, _, row in table if row.get(key) is not None]
        if name in TEXTS or (name in IDS and any(isinstance(value, list) for value in values)):
            return False
        return 0 < len(values) <= 2 * sum(map(is_number, values))

    def _answer(self, model: str, place: Row, names: Names, numeric: set[str]) -> None:
        """Adds the record of one model's values in a row, if it has any."""
        where, sample, row = place
        values = {name: (row[key], f"{where}.{key}") for name, key in names.items()}
        other, path = values.get("object", (None, ""))
        if other is not None:  # some scripts write null if a model failed
            self.cells.note("type", path, f"{quoted(other)} is not an object")
        if not names or "object" in names or values.get("error", ("", ""))[0]:
            return  # the zeros of a failure are not measured
        times: dict[str, float] = {}
        sizes: dict[str, float] = {}
        lost = []
        for name, (value, path) in values.items():
            if names[name] not in numeric or (name in IDS and isinstance(value, list)):
                continue
            counts = "count" if name in COUNTS or name in CONTEXTS else ""
            number = self.cells.number(value, path, "time" if is_time(name) else counts)
            if number is not None:
                (times if is_time(name) else sizes)[name] = number
            else:
                lost.append(name)
        listed = [name for name in IDS if name in values and name not in {*times, *sizes, *lost}]
        ids = _first(self.cells.ids(*values[name]) for name in listed)
        text = _first(self.cells.of_type(str, "text", *values[name]) for name in TEXTS
                      if name in values)  # fmt: skip
        if not (times or sizes or lost) and ids is None and text is None:
            return
        words = {name: _first(row[key] for key in (names.get(name), name) if key in row
                              and isinstance(row[key], str)) or "" for name in WORDS}  # fmt: skip
        nested = any(key.startswith(f"{model}.") for key in names.values())
        if nested and words["model"]:
            self.claimed.setdefault(model, words["model"][:80])
        stated = _first(sizes.get(name) for name in COUNTS)
        record = AnswerRecord(
            model=model,
            sample=sample,
            path=f"{where}.{model}" if nested else where,
            group=self.form,
            question=(words["question"] or words["query"])[:500],
            times=times,
            sizes=sizes,
            tokens=len(ids) if stated is None and ids is not None else stated,
            ids=ids,
            text=text,
            context=_first(sizes.get(name) for name in CONTEXTS),
            lost=frozenset(name for name in lost if is_time(name)),
            clip=words["event_data"][:200],
        )
        self.records.append(record)
        if model not in self.models:
            self.models.append(model)

    def _state(self, columns: Columns, summary: object, path: str, whole: str) -> None:
        """Adds the figures of a summary, each beside the value from the rows.  They are of the
        model of the path, otherwise of `whole`, "" for the samples; or of the key's model."""
        for key, value in flat(summary, depth=DEPTH).items():
            *parts, last = f"{path}.{key}".split(".")
            stated = self.cells.number(value, f"{path}.{key}") if is_number(value) else None
            if stated is not None:
                model = _first(part for part in reversed(parts) if part in self.models) or whole
                name, _ = cells.statistic_of(last)
                start, _, rest = name.partition("_")
                named = start if start in self.models else SHORT.get(start, "")
                fields = [(model, name), self.form.fields.get(name, (named, rest))]
                made = cells.claim(f"{path}.{key}", stated, fields, columns, self.rows)
                self.claims.append(replace(made, model=model or named))


def _owner(key: str, answers: Mapping[str, Answer]) -> Field | None:
    """The field of a key of the rows, None if it belongs to no model."""
    for model, answer in answers.items():
        if key in answer.also:
            return model, answer.also[key]
    for model, answer in answers.items():
        if answer.prefix and key == model:
            return model, "object" if re.match(answer.prefix, f"{model}.") else "text"
        if answer.text and re.fullmatch(answer.text, key):
            return model, "text"
        start = re.match(answer.prefix, key)
        if start and key not in NO_FIGURES:
            return model, key[start.end() :]
    return None


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


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
