"""Readers of files whose rows are timed stages: groups A, B, B', C, D and E.

Schemas: see docs/published-files.md.  Each reader takes the parsed file and fills a FileReading;
keys that a file lacks stay absent.

Boundary: reads the keys; no audit.
"""

from __future__ import annotations

from typing import Any

from engine.published.read.cells import is_number, question_of, quoted, sample_name
from engine.published.read.file_reading import FileReading
from engine.published.read.record_types import Group, Part

FLAT = Group(
    "A",
    "flat-3stage",
    {
        "stage1_time": "load",
        "stage2_time": "preprocess",
        "stage3_time": "decode",  # the vision tower inside generate(), with the decoding
        "time": "total",
    },
    has_stage_times=True,
    total_is_whole_run=True,
)
FOUR: dict[str, Part] = {
    "stage1_time": "load",
    "stage2_time": "preprocess",
    "stage3_time": "vision",
    "stage4_time": "decode",
    "total_time": "total",
}
FIVE: dict[str, Part] = {**FOUR, "stage4_time": "prefill", "stage5_time": "steps"}
LEGACY = Group("B", "4stage-legacy", FOUR, has_stage_times=True, total_is_whole_run=True)
NEWEST = Group("B'", "4stage-newest", FOUR, has_stage_times=True, total_is_whole_run=True)
FRAMES = Group(
    "C",
    "1-vs-8-frames",
    {
        "stage12_time": "load+preprocess",
        "s3_time": "vision",
        "s4_time": "prefill",
        "s5_time": "steps",
        "total_time": "total",
    },
    has_stage_times=True,
    total_is_whole_run=True,
    fixed_length=True,
)
STAGES = Group(
    "D",
    "5stages",
    FIVE,
    has_stage_times=True,
    total_is_whole_run=True,
    first_token_in_prefill=True,
)
PARALLEL = Group(
    "E",
    "parallel-4bit",
    {
        "vision_time": "vision",
        "prefill_time": "prefill",
        "draft_time": "steps",
        "generation_time": "steps",
        "total_time": "total",
    },
    has_stage_times=True,
)


def flat_rows(data: list[Any], reading: FileReading) -> None:
    """A: one object per sample with the keys of both models, each with its model's prefix."""
    rows = list(reading.rows(data, "$", ""))
    models = [model for model in ("egpt", "videollava", "llava") if _any_key(rows, f"{model}_")]
    if "egpt" in models and len(models) > 1:
        reading.pair(*models[:2])
    for index, path, item in rows:
        sample, question = sample_name(item, index), question_of(item)
        for model in models[:2]:
            _flat_answer(reading, model, item, path, sample, question)


def _any_key(rows: list[tuple[int, str, dict[str, Any]]], start: str) -> bool:
    return any(key.startswith(start) for _, _, item in rows for key in item)


def _flat_answer(
    reading: FileReading, model: str, item: dict[str, Any], path: str, sample: str, question: str
) -> None:
    cells, prefix = reading.cells, f"{model}_"
    mine = {key[len(prefix) :]: value for key, value in item.items() if key.startswith(prefix)}
    if not mine:
        return
    named = model if model in item else _text_key(item)
    text = cells.text(item, path, named) if named else None
    if model != "egpt" and named:
        reading.claimed.setdefault(model, named)
    names = [f"{prefix}{key}" for key, value in mine.items()
             if key.endswith(("time", "_mb")) or is_number(value)]  # fmt: skip
    found = cells.numbers(item, path, names)
    numbers = {key[len(prefix) :]: value for key, value in found.items()}
    ids, clip = cells.ids(item, path, f"{prefix}token_ids"), item.get("event_data")
    seen = clip[:200] if isinstance(clip, str) else ""
    reading.add(model, path, sample, numbers, ids, text, question, seen)


def _text_key(item: dict[str, Any]) -> str:
    """The key of the second model's answer, which is the name of a checkpoint."""
    return next((key for key in item if "llava" in key and "_" not in key), "")


def legacy_rows(data: dict[str, Any], reading: FileReading) -> None:
    """B: a list of rows and a summary per model."""
    reading.pair("eventgpt", "videollava")
    for model in ("eventgpt", "videollava"):
        key = f"{model}_results"
        for index, path, item in reading.rows(data.get(key, []), key, model):
            reading.answer(model, item, path, sample_name(item, index, "sample"))
    for model in ("eventgpt", "videollava"):
        reading.state(data.get(f"{model}_summary"), f"{model}_summary", model)
    speculation = data.get("speculative_decoding")
    if isinstance(speculation, dict):
        name = "speculative_decoding.per_sample"
        for index, path, item in reading.rows(speculation.get("per_sample", []), name, ""):
            reading.per_sample(item, path, index, "matched_tokens", "compared_tokens",
                               "acceptance_rate")  # fmt: skip
        reading.state(speculation, "speculative_decoding")


def newest_rows(data: dict[str, Any], reading: FileReading) -> None:
    """B': one object per sample with an object per model; the summary has one per model too."""
    reading.pair("eventgpt", "videollava")
    _nested(data.get("samples"), "samples", reading)
    for name in ("summary", "speculative_decoding"):
        reading.state(data.get(name), name)


def frame_rows(data: dict[str, Any], reading: FileReading) -> None:
    """C: an object per model with its samples and statistics."""
    reading.pair("eventgpt", "videollava")
    for model in ("eventgpt", "videollava"):
        inner = data.get(model)
        if not isinstance(inner, dict):
            continue
        for index, path, item in reading.rows(inner.get("samples", []), f"{model}.samples", model):
            reading.answer(model, item, path, sample_name(item, index, "sample"))
        reading.state(inner.get("stats"), f"{model}.stats", model)


def stage_rows(data: dict[str, Any], reading: FileReading) -> None:
    """D and E: one object per sample with an object per model, and shared statistics."""
    reading.pair("eventgpt", "videollava")
    _nested(data.get("results"), "results", reading)
    reading.state(data.get("statistics"), "statistics")


def _nested(rows: object, name: str, reading: FileReading) -> None:
    models = ("eventgpt", "videollava")
    for index, path, item in reading.rows(rows, name, *models, ""):
        sample = sample_name(item, index)
        if not any(key in item for key in (*models, "egpt_prefill_time")):
            reading.cells.note("empty", path, "neither model is named in it")
        for model in models:
            if model in item:
                _nested_answer(reading, model, item[model], f"{path}.{model}", sample)
        reading.per_sample(item, path, index, "acceptance", "parallel")
        if "egpt_prefill_time" in item:  # an early form of E, flat
            _flat_parallel(reading, item, path, sample)


def _nested_answer(reading: FileReading, model: str, inner: object, path: str, sample: str) -> None:
    if not isinstance(inner, dict):
        reading.missing[model] += 1
        if inner is not None:  # some scripts write null if a model failed
            reading.cells.note("type", path, f"{quoted(inner)} is not an object")
        return
    label = inner.get("model")
    if isinstance(label, str):
        reading.claimed.setdefault(model, label[:80])
    reading.answer(model, inner, path, sample)


def _flat_parallel(reading: FileReading, item: dict[str, Any], path: str, sample: str) -> None:
    for model, prefix in (("eventgpt", "egpt_"), ("videollava", "vl_")):
        if item.get(f"{prefix}error"):
            continue  # its zeros are not measured
        mine = {key[len(prefix) :]: item[key] for key in item if key.startswith(prefix)}
        if model == "eventgpt":
            mine |= {key: item[key] for key in ("draft_tokens", "draft_time") if key in item}
        reading.answer(model, mine, path, sample)
