"""The state of reading one file, and the figures that the file states.

Boundary: collects values; file_forms.py converts them to a ResultFile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.published.read import stated_figures as claims
from engine.published.read.cells import NOTED, Cells, flat, is_time, quoted, sample_name
from engine.published.read.record_types import AnswerRecord, Claim, Group, SampleFigure

DEPTH = 6  # of summaries within summaries
COUNTS = ("num_output_tokens", "tokens", "n_tokens", "draft_tokens", "decode_tokens")
CONTEXTS = ("prefill_length", "prefill_len", "prefill_tokens", "context_tokens")
IDS = ("token_ids", "output_tokens", "output_ids", "tokens")
TEXTS = ("output_text", "output", "text")
SHORT = {"egpt": "eventgpt", "vllava": "videollava", "vl": "videollava"}
SIZES = {"n_samples", "samples", "total_samples", "matched_samples"}
Values = tuple[list[float], int]


@dataclass
class FileReading:
    """One file while it is read.

    missing: unreadable rows by model, "" for rows of no model.  odd: (model, key, path, value) of
    values that are not numbers; they are noted if other rows have numbers there.  summary_fields:
    (model, field) of summary keys that do not name their model.  unread: unknown keys of rows.
    """

    group: Group
    cells: Cells
    unit: str = "s"
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
    summary_fields: dict[str, tuple[str, str]] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def rows(
        self, value: object, path: str, *models: str
    ) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """(index, path, object) of each row.  Empty rows and other values count as missing."""
        if isinstance(value, list):
            bad = sum(not isinstance(item, dict) or not item for item in value)
            self.missing.update(dict.fromkeys(models, bad))
        for index, place, item in self.cells.objects(value, path):
            if item:
                yield index, place, item
            else:
                self.cells.note("empty", place, "an empty object")

    def pair(self, draft: str, target: str) -> None:
        """The two models that the file compares, in this order."""
        self.draft, self.target = draft, target
        for model in (draft, target):
            if model not in self.models:
                self.models.append(model)

    def answer(
        self, model: str, item: dict[str, Any], path: str, sample: str, question: str = ""
    ) -> None:
        """Adds a record from an object that has only this model's keys."""
        values = flat(item, depth=1) | {key: item[key] for key in item if is_time(key)}
        numbers = self.cells.numbers(
            values, path, [key for key in values if _numeric(key, values[key])]
        )
        self._note_odd(model, path, {key: values[key] for key in values if key not in numbers})
        self.add(
            model,
            path,
            sample,
            numbers,
            ids=self.cells.ids(item, path, *IDS),
            text=self.cells.text(item, path, *TEXTS),
            question=question,
        )

    def add(
        self,
        model: str,
        path: str,
        sample: str,
        numbers: Mapping[str, float | None],
        ids: tuple[int, ...] | None = None,
        text: str | None = None,
        question: str = "",
        clip: str = "",
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
        self.records.append(
            AnswerRecord(
                model=model,
                sample=sample,
                path=path,
                group=self.group,
                question=question,
                times=times,
                sizes=sizes,
                tokens=len(ids) if stated is None and ids is not None else stated,
                ids=ids,
                text=text,
                context=next((sizes[key] for key in CONTEXTS if key in sizes), None),
                lost=frozenset(key for key in numbers if is_time(key) and key not in times),
                clip=clip,
            )
        )
        if model not in self.models:
            self.models.append(model)

    def per_sample(self, item: dict[str, Any], path: str, index: int, *keys: str) -> None:
        """Adds numbers of a row that belong to no model."""
        sample = sample_name(item, index)
        self.sampled += 1
        values = flat({key: item[key] for key in keys if key in item}, lists=True)
        for name, value in values.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found = self.cells.number(value, f"{path}.{name}")
                if found is not None:
                    self.figures.append(SampleFigure(name, sample, f"{path}.{name}", found))
            else:
                self._note_odd("", path, {name: value})

    def flag(self, item: dict[str, Any], path: str, index: int, key: str) -> None:
        """Adds a true or false of a row as 1 or 0."""
        if isinstance(item.get(key), bool):
            place = f"{path}.{key}"
            self.figures.append(
                SampleFigure(key, sample_name(item, index), place, float(item[key]))
            )

    def _note_odd(self, model: str, path: str, values: Mapping[str, object]) -> None:
        for key, value in values.items():
            if value is not None and len(self.odd) < NOTED:
                self.odd.append((model, key, f"{path}.{key}", value))

    def settle(self) -> None:
        """Notes values that are not numbers if other rows have numbers there."""
        numeric = {("", figure.name) for figure in self.figures}
        numeric |= {(record.model, key) for record in self.records for key in record.sizes}
        for model, key, path, value in self.odd:
            if (model, key) in numeric:
                kind, what = ("text", "text instead of a") if isinstance(value, str) else (
                    "type", "not a")  # fmt: skip
                self.cells.note(kind, path, f"{quoted(value)} is {what} number")

    def state(self, summary: object, path: str, model: str = "", depth: int = DEPTH) -> None:
        """Adds the figures of a summary, each beside the value from the rows."""
        if not isinstance(summary, dict) or not depth:
            return
        for key, value in summary.items():
            place = f"{path}.{key}"
            if isinstance(value, dict) and key in self.models:
                self.state(value, place, key, depth - 1)
            elif isinstance(value, dict):
                self.state(value, place, model, depth - 1)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
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
        if name in self.summary_fields:
            return self.summary_fields[name]
        start, _, rest = name.partition("_")
        model = start if start in self.models else SHORT.get(start, "")
        return (model, rest) if model in self.models else ("", name)


def _of(record: AnswerRecord, key: str) -> float | None:
    if key == "tokens":
        return record.tokens
    return record.times.get(key, record.sizes.get(key))


def _numeric(key: str, value: object) -> bool:
    """Whether the value is a number, or its key is known to have numbers."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return True
    return is_time(key) or key in COUNTS or key in CONTEXTS
