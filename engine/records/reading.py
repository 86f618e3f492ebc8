"""What a reader fills in while it goes through one file, and the figures the file states itself.

Boundary: collects; groups.py turns it into a ResultFile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.records.cells import Cells, flat, is_time, sample_name
from engine.records.types import Claim, Figure, Group, Record

DEPTH = 6  # of summaries within summaries
COUNTS = ("num_output_tokens", "tokens", "n_tokens", "draft_tokens", "decode_tokens")
CONTEXTS = ("prefill_length", "prefill_len", "prefill_tokens", "context_tokens")
IDS = ("token_ids", "output_tokens", "output_ids", "tokens")
TEXTS = ("output_text", "output", "text")
# what summaries call a field of the rows
ALIASES = {
    "tokens": ("tokens", "num_output_tokens", "n_tokens"),
    "time": ("time", "total_time"),
    "output_tokens": ("num_output_tokens", "tokens"),
    "gpu_peak_memory": ("gpu_memory_mb.peak",),
    "total_tokens_compared": ("acceptance.total_tokens",),
    "accepted_tokens": ("accepted_tokens",),
    "compared_tokens": ("total_compared", "compared_tokens"),
    "acceptance_rate": ("acceptance.acceptance_rate", "acceptance_rate", "acceptance_estimate"),
}
SHORT = {"egpt": "eventgpt", "vllava": "videollava", "vl": "videollava"}
SIZES = {"n_samples", "samples", "total_samples", "matched_samples"}


@dataclass
class Reading:
    """One file on its way into the common form."""

    group: Group
    cells: Cells
    unit: str = "s"
    models: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    claimed: dict[str, str] = field(default_factory=dict)
    draft: str = ""
    target: str = ""

    def pair(self, draft: str, target: str) -> None:
        """The two models that the file compares, in this order."""
        self.draft, self.target = draft, target
        for model in (draft, target):
            if model not in self.models:
                self.models.append(model)

    def answer(
        self, model: str, item: dict[str, Any], path: str, sample: str, question: str = ""
    ) -> None:
        """A record whose fields stand in an object of their own."""
        values = flat(item, depth=1)
        numbers = self.cells.numbers(
            values, path, [key for key in values if _numeric(key, values[key])]
        )
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
        numbers: Mapping[str, float],
        ids: tuple[int, ...] | None = None,
        text: str | None = None,
        question: str = "",
        clip: str = "",
    ) -> None:
        """A record of numbers: times by their keys, the count of tokens, and the others."""
        times = {key: value for key, value in numbers.items() if is_time(key)}
        sizes = {key: value for key, value in numbers.items() if not is_time(key)}
        for key in (*COUNTS, *CONTEXTS):
            if sizes.get(key, 0.0) < 0:
                self.cells.note("negative", f"{path}.{key}", f"{sizes[key]:g} is below zero")
                del sizes[key]
        stated = next((sizes[key] for key in COUNTS if key in sizes), None)
        self.records.append(
            Record(
                model=model,
                sample=sample,
                path=path,
                question=question,
                times=times,
                sizes=sizes,
                tokens=len(ids) if stated is None and ids is not None else stated,
                ids=ids,
                text=text,
                context=next((sizes[key] for key in CONTEXTS if key in sizes), None),
                clip=clip,
            )
        )
        if model not in self.models:
            self.models.append(model)

    def per_sample(self, item: dict[str, Any], path: str, index: int, *keys: str) -> None:
        """Numbers of a row that belong to no model; of the objects named, all their numbers."""
        sample = sample_name(item, index)
        for name, value in flat({key: item[key] for key in keys if key in item}).items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found = self.cells.number(value, f"{path}.{name}")
                if found is not None:
                    self.figures.append(Figure(name, sample, f"{path}.{name}", found))

    def state(self, summary: object, path: str, model: str = "", depth: int = DEPTH) -> None:
        """The figures of a summary, each beside what the rows give."""
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
            of = model or (self.models[0] if self.models else "")
            count = sum(record.model == of for record in self.records)
            return Claim(path, stated, float(count) if count else None, "the number of rows")
        name, statistic = statistic_of(key)
        found = self._values(name, model, path) if statistic else []
        if statistic and not found:
            model, name = self._spoken(name)
            found = self._values(name, model, path) if model else []
        if not found:
            return Claim(path, stated)
        value = math.fsum(found) / (len(found) if statistic == "mean" else 1)
        return Claim(path, stated, value, f"the {statistic} of {name} over {len(found)} rows")

    def _values(self, name: str, model: str, path: str = "") -> list[float]:
        """The rows' values of a field: of a model, else of the sample."""
        rows = [record for record in self.records if record.model == model]
        tried = (name, f"{name}_time", f"sd_{name}", *ALIASES.get(name, ()))
        for key in tried:
            found = [_of(row, key) for row in rows]
            values = [value for value in found if value is not None]
            if values:
                return values
        nested = path.split(".")[-2] if path.count(".") else ""
        for key in (f"{nested}.{name}", *tried, f"acceptance.{name}"):
            values = [figure.value for figure in self.figures if figure.name == key]
            if values and not model:
                return values
        return []

    def _spoken(self, name: str) -> tuple[str, str]:
        """("videollava", "time") of "vllava_time": the model that a summary's key speaks of."""
        start, _, rest = name.partition("_")
        model = start if start in self.models else SHORT.get(start, "")
        return (model, rest) if model in self.models else ("", name)


def statistic_of(key: str) -> tuple[str, str]:
    """(field, "mean" or "sum") of a summary's key; ("", "") for one that is neither."""
    for end in ("_avg", "_mean"):
        if key.endswith(end):
            return key[: -len(end)], "mean"
    if key.startswith("avg_"):
        return key[4:], "mean"
    if key.endswith("_total"):
        return key[: -len("_total")], "sum"
    if key == "total_tokens_compared":
        return key, "sum"
    if key.startswith("total_") and key.endswith("_tokens"):
        return key[len("total_") :], "sum"
    return "", ""


def _of(record: Record, key: str) -> float | None:
    if key == "tokens":
        return record.tokens
    return record.times.get(key, record.sizes.get(key))


def _numeric(key: str, value: object) -> bool:
    """A number, or a text where these files have a number."""
    if isinstance(value, str):
        return is_time(key) or key in COUNTS or key in CONTEXTS
    return isinstance(value, (int, float)) and not isinstance(value, bool)
