"""The state of reading one file by the table of forms, and the figures that the file states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.published.read import stated_figures as claims
from engine.published.read.cells import (
    NOTED,
    Cells,
    brief,
    flat,
    is_number,
    is_time,
    question_of,
    quoted,
    sample_name,
)
from engine.published.read.file_forms import Answer, Form, Rows
from engine.published.read.record_types import AnswerRecord, Claim, SampleFigure

DEPTH = 6  # of summaries within summaries
COUNTS = ("num_output_tokens", "tokens", "n_tokens", "draft_tokens", "decode_tokens")
CONTEXTS = ("prefill_length", "prefill_len", "prefill_tokens", "context_tokens")
SHORT = {"egpt": "eventgpt", "vllava": "videollava", "vl": "videollava"}
TARGET_ALONE = "VL baseline"  # what summaries call the model "baseline"
SIZES = {"n_samples", "samples", "total_samples", "matched_samples"}
Values = tuple[list[float], int]


@dataclass
class FileReading:
    """One file while it is read.

    missing: unreadable rows by model, "" for rows of no model.  odd: (model, key, path, value) of
    values that are not numbers; they are noted if other rows have numbers there.  unread: unknown
    keys of rows.
    """

    form: Form
    cells: Cells = field(default_factory=Cells)
    models: list[str] = field(default_factory=list)
    records: list[AnswerRecord] = field(default_factory=list)
    figures: list[SampleFigure] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    claimed: dict[str, str] = field(default_factory=dict)
    draft: str = ""
    target: str = ""
    sampled: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    odd: list[tuple[str, str, str, object]] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)

    def read(self, value: Any, place: str) -> None:
        """All rows and summaries of a file; place: the path of the rows that identify its form."""
        if self.form.pair:
            self._compare(*self.form.pair)
        for rows in self.form.rows:
            for path, model, listed in _at(value, rows.path or place):
                self._rows(rows, listed, path, model)
        for summary, whose in self.form.stated.items():
            for path, named, stated in _at(value, summary):
                model = "baseline" if named == TARGET_ALONE else named
                self._state(stated, path, model if whose == "*" else whose)
        self._settle()

    def _compare(self, draft: str, target: str) -> None:
        """The two models that the file compares, in this order."""
        self.draft, self.target = draft, target
        self.models += [model for model in (draft, target) if model not in self.models]

    def _rows(self, rows: Rows, listed: object, path: str, named: str) -> None:
        """One list of rows; named: the model of a list that is named by its model."""
        keys = {key for row in listed if isinstance(row, dict) for key in row} if isinstance(
            listed, list) else set()  # fmt: skip
        answers = {
            model.replace("*", named[:80]): answer
            for model, answer in rows.answers.items()
            if any(key.startswith(answer.needs) for key in keys) or not answer.needs
        }
        if not self.form.pair and len(answers) > 1:
            answers = dict(list(answers.items())[:2])
            if "egpt" in answers:
                self._compare(*answers)
        for model, answer in answers.items():
            if answer.claimed:
                self.claimed[model] = answer.claimed.replace("*", model)
            if answer == Answer(claimed=answer.claimed) and model not in self.models:
                self.models.append(model)  # a list of its own
        if isinstance(listed, list):
            bad = sum(not isinstance(item, dict) or not item for item in listed)
            self.missing.update(dict.fromkeys((*answers, *([""] if rows.figures else [])), bad))
        for index, where, item in self.cells.objects(listed, path):
            if item:
                self._row(rows, answers, index, where, item)
            else:
                self.cells.note("empty", where, "an empty object")

    def _row(
        self, rows: Rows, answers: Mapping[str, Answer], index: int, path: str, item: dict[str, Any]
    ) -> None:
        sample = sample_name(item, index, *rows.names)
        if answers and all(one.at and one.at not in item for one in answers.values()):
            self.cells.note("empty", path, "neither model is named in it")
        for model, answer in answers.items():
            if not answer.at:
                self._answer(model, answer, item, path, sample)
            elif answer.at in item:
                self._nested(model, answer, item[answer.at], path, sample)
        if rows.figures:
            ids = {key for one in answers.values() for key in one.ids}
            times = "*_ms" in rows.figures
            keys = [key for key in item
                    if (key in rows.figures or (times and key.endswith("_ms")))
                    and not (key in ids and isinstance(item[key], list))]  # fmt: skip
            self._per_sample(item, path, sample, keys)
        for key in rows.flags:
            if isinstance(item.get(key), bool):
                figure = SampleFigure(key, sample, f"{path}.{key}", float(item[key]))
                self.figures.append(figure)
        for key in sorted(item.keys() - rows.known - self.unread) if rows.known else ():
            self.unread.add(key)
            self.cells.note("key", f"{path}.{brief(key, 40)}", "no meaning is known for it")

    def _nested(self, model: str, answer: Answer, inner: object, path: str, sample: str) -> None:
        if isinstance(inner, dict):
            if isinstance(inner.get("model"), str):
                self.claimed.setdefault(model, inner["model"][:80])
            self._answer(model, answer, inner, f"{path}.{model}", sample)
            return
        self.missing[model] += 1
        if inner is not None:  # some scripts write null if a model failed
            self.cells.note("type", f"{path}.{model}", f"{quoted(inner)} is not an object")

    def _answer(
        self, model: str, answer: Answer, item: dict[str, Any], path: str, sample: str
    ) -> None:
        """Adds a record if the object has anything of this model."""
        if answer.prefix and item.get(f"{answer.prefix}error"):
            return  # its zeros are not measured
        values = flat(item, depth=1) | {key: item[key] for key in item if is_time(key)}
        if answer.numbers is None:
            names = {key: key.removeprefix(answer.prefix) for key in values
                     if key.startswith(answer.prefix) or key in answer.also}  # fmt: skip
        else:
            names = {key: name for key, name in answer.numbers.items() if key in item
                     and not (key in answer.ids and isinstance(item[key], list))}  # fmt: skip
            values = item
        numeric = [key for key, name in names.items()
                   if answer.numbers is not None or _numeric(name, values[key])]  # fmt: skip
        found = self.cells.numbers(values, path, numeric)
        self._note_odd(model, path, {names[key]: values[key] for key in names if key not in found})
        texts = answer.texts
        if answer.by_checkpoint and model not in item:
            texts = tuple(key for key in item if "llava" in key and "_" not in key)[:1]
        if answer.by_checkpoint and texts:
            self.claimed.setdefault(model, texts[0])
        ids = self.cells.ids(item, path, *answer.ids)
        text = self.cells.text(item, path, *texts)
        shared = answer.prefix or answer.numbers is not None  # a row of several models
        if shared and ids is None and text is None and not names:
            self.missing[model] += 1
            return
        numbers = {names[key]: value for key, value in found.items()}
        self._add(model, path, sample, numbers, ids, text, item)

    def _add(
        self,
        model: str,
        path: str,
        sample: str,
        numbers: Mapping[str, float | None],
        ids: tuple[int, ...] | None,
        text: str | None,
        item: Mapping[str, Any],
    ) -> None:
        """Adds a record; unusable numbers are None."""
        usable = {key: value for key, value in numbers.items() if value is not None}
        times = {key: value for key, value in usable.items() if is_time(key)}
        sizes = {key: value for key, value in usable.items() if not is_time(key)}
        for key in (*COUNTS, *CONTEXTS):
            if sizes.get(key, 0.0) < 0:
                self.cells.note("negative", f"{path}.{key}", f"{sizes[key]:g} is below zero")
                del sizes[key]
            elif not sizes.get(key, 0.0).is_integer():
                self.cells.note(
                    "whole", f"{path}.{key}", f"{sizes[key]:g} is not a number of tokens"
                )
                del sizes[key]
        stated = next((sizes[key] for key in COUNTS if key in sizes), None)
        clip = item.get("event_data")
        self.records.append(
            AnswerRecord(
                model=model,
                sample=sample,
                path=path,
                group=self.form.group,
                question=question_of(item),
                times=times,
                sizes=sizes,
                tokens=len(ids) if stated is None and ids is not None else stated,
                ids=ids,
                text=text,
                context=next((sizes[key] for key in CONTEXTS if key in sizes), None),
                lost=frozenset(key for key in numbers if is_time(key) and key not in times),
                clip=clip[:200] if isinstance(clip, str) else "",
            )
        )
        if model not in self.models:
            self.models.append(model)

    def _per_sample(
        self, item: Mapping[str, Any], path: str, sample: str, keys: Sequence[str]
    ) -> None:
        """Adds numbers of a row that belong to no model."""
        self.sampled += 1
        for name, value in flat({key: item[key] for key in keys}, lists=True).items():
            if is_number(value):
                found = self.cells.number(value, f"{path}.{name}")
                if found is not None:
                    self.figures.append(SampleFigure(name, sample, f"{path}.{name}", found))
            else:
                self._note_odd("", path, {name: value})

    def _note_odd(self, model: str, path: str, values: Mapping[str, object]) -> None:
        for key, value in values.items():
            if value is not None and len(self.odd) < NOTED:
                self.odd.append((model, key, f"{path}.{key}", value))

    def _settle(self) -> None:
        """Notes values that are not numbers if other rows have numbers there."""
        numeric = {("", figure.name) for figure in self.figures}
        numeric |= {(record.model, key) for record in self.records for key in record.sizes}
        for model, key, path, value in self.odd:
            if (model, key) in numeric:
                kind, what = ("text", "text instead of a") if isinstance(value, str) else (
                    "type", "not a")  # fmt: skip
                self.cells.note(kind, path, f"{quoted(value)} is {what} number")

    def _state(self, summary: object, path: str, model: str = "", depth: int = DEPTH) -> None:
        """Adds the figures of a summary, each beside the value from the rows."""
        if not isinstance(summary, dict) or not depth:
            return
        for key, value in summary.items():
            place = f"{path}.{key}"
            if isinstance(value, dict) and key in self.models:
                self._state(value, place, key, depth - 1)
            elif isinstance(value, dict):
                self._state(value, place, model, depth - 1)
            elif is_number(value):
                stated = self.cells.number(value, place)
                if stated is not None:
                    self.claims.append(self._claim(place, stated, key, model))

    def _claim(self, path: str, stated: float, key: str, model: str) -> Claim:
        if key in SIZES:
            return claims.count(path, stated, self._listed(model))
        if key in claims.RATES:
            accepted, compared = (self._of_rows(names) for names in claims.RATES[key])
            return claims.rate(path, stated, accepted, compared)
        name, statistic = claims.statistic_of(key)
        found, rows = self._values(name, model, path) if statistic else ([], 0)
        if statistic and not found:
            model, name = self._summary_field(name)
            found, rows = self._values(name, model, path) if model else ([], 0)
        if not statistic or not found:
            return Claim(path, stated)
        return claims.checked(path, stated, (name, statistic), found, rows)

    def _of_rows(self, names: Sequence[str]) -> list[float]:
        """The values of the first of these names that rows have."""
        every = ([f.value for f in self.figures if f.name == name] for name in names)
        return next((values for values in every if values), [])

    def _listed(self, model: str) -> int:
        """The number of rows of a model or of samples, including unreadable ones."""
        if not model and self.sampled:
            return self.sampled + self.missing[""]
        of = model or (self.models[0] if self.models else "")
        return sum(record.model == of for record in self.records) + self.missing[of]

    def _values(self, name: str, model: str, path: str = "") -> Values:
        """The rows' values of a field, of a model or of the sample, and the number of rows."""
        rows = [record for record in self.records if record.model == model]
        tried = (name, f"{name}_time", f"sd_{name}", *claims.ALIASES.get(name, ()))
        for key in tried:
            found = [_of(row, key) for row in rows]
            values = [value for value in found if value is not None]
            if values:
                return values, self._listed(model)
        nested = path.split(".")[-2] if path.count(".") else ""
        for key in (f"{nested}.{name}", *tried, f"acceptance.{name}"):
            values = [figure.value for figure in self.figures if figure.name == key]
            if values and not model:
                return values, max(self.sampled + self.missing[""], len(values))
        return [], 0

    def _summary_field(self, name: str) -> tuple[str, str]:
        """("videollava", "time") for "vllava_time": the model and field of a summary key."""
        if name in self.form.fields:
            return self.form.fields[name]
        start, _, rest = name.partition("_")
        model = start if start in self.models else SHORT.get(start, "")
        return (model, rest) if model in self.models else ("", name)


def _of(record: AnswerRecord, key: str) -> float | None:
    if key == "tokens":
        return record.tokens
    return record.times.get(key, record.sizes.get(key))


def _numeric(key: str, value: object) -> bool:
    """Whether the value is a number, or its key is known to have numbers."""
    if is_number(value):
        return True
    return is_time(key) or key in COUNTS or key in CONTEXTS


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
