"""The group of a file, from its keys, and the conversion to the common form.

Boundary: file names are not used.  A file of another kind is "unknown", with its keys in a message;
a run that only failed is "failed" and has no figures.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from engine.published.read import (
    corrected,
    paired_readers,
    timed_readers,
    unread_models,
    who_answered,
)
from engine.published.read.cells import Cells, brief, settings
from engine.published.read.file_reading import FileReading
from engine.published.read.parsing import RecordsError, parse, shown
from engine.published.read.record_types import Group, ResultFile

UNKNOWN = Group("?", "unknown")
OTHER = "choose a result file of the benchmark"
FAILED = Group("Z", "failed run (results empty, only errors)")
NO_ROWS = Group("Z", "no rows")
_FLAT = re.compile(r"(egpt|llava|videollava)_(time|stage\d_time|token_ids|memory_\w+)")
_BESIDE = {"config", "statistics", "summary", "errors"}
Reader = Callable[[Any, FileReading], None]
LIMIT_ROWS = 200_000  # the longest published list has 2,220
SHOWN_KEYS, SHOWN_ROW_KEYS = 3, 8


def read_bytes(name: str, data: bytes) -> ResultFile:
    """A file's bytes in the common form; no content raises an exception."""
    title = shown(name)
    try:
        value = parse(data, title)
    except RecordsError as error:
        return unreadable(title, str(error), len(data))
    return read_value(title, value, len(data))


def unreadable(name: str, message: str, size: int = 0) -> ResultFile:
    """A file that could not be read, with the reason."""
    return ResultFile(name, UNKNOWN, "unknown", message, bytes=size)


def read_value(name: str, value: Any, size: int = 0) -> ResultFile:
    """A parsed JSON value in the common form."""
    rows = _most_rows(value)
    if rows > LIMIT_ROWS:
        limit = f"result files may have at most {LIMIT_ROWS:,}"
        return unreadable(name, f"{name} has a list of {rows:,} rows: {limit}.", size)
    found = group_of(value)
    if found is None:
        return unreadable(name, f"{name} is of another kind ({_keys(value)}): {OTHER}.", size)
    group, reader = found
    reading = FileReading(group, Cells())
    reader(value, reading)
    reading.settle()
    if group not in (FAILED, NO_ROWS):
        unread_models.name(value, reading)
    return _finish(name, value, reading, size)


def _most_rows(value: Any, depth: int = 2) -> int:
    """The length of the longest list that may contain the rows."""
    if isinstance(value, list):
        return len(value)
    inner = value.values() if isinstance(value, dict) and depth else ()
    return max((_most_rows(one, depth - 1) for one in inner), default=0)


def group_of(value: Any) -> tuple[Group, Reader] | None:
    """The group and its reader, or None for a file of another kind."""
    if isinstance(value, list):
        return _bare(value)
    if not isinstance(value, dict):
        return None
    if "eventgpt_results" in value or "videollava_results" in value:
        return timed_readers.LEGACY, timed_readers.legacy_rows
    if "baseline_per_sample" in value or "sd_per_sample" in value:
        return paired_readers.WALLCLOCK, paired_readers.wallclock_rows
    if any(isinstance(value.get(m), dict) and "samples" in value[m]
           for m in ("eventgpt", "videollava")):  # fmt: skip
        return timed_readers.FRAMES, timed_readers.frame_rows
    if value.get("results") == [] and value.get("errors"):
        return FAILED, _nothing
    return _by_rows(value) or ((NO_ROWS, _nothing) if _is_without_rows(value) else None)


def _bare(value: list[Any]) -> tuple[Group, Reader] | None:
    """A bare list of rows: flat, or token pairs."""
    rows = [item for item in value[:50] if isinstance(item, dict)]
    if any(_FLAT.fullmatch(key) for row in rows[:1] for key in row):
        return timed_readers.FLAT, timed_readers.flat_rows
    keys = {key for row in rows for key in row}
    if paired_readers.is_metrics(keys):
        return paired_readers.METRICS, paired_readers.metric_rows
    found = _paired(keys, rows)
    if found and found[0] is paired_readers.PAIRS:
        return found
    return None if value else (NO_ROWS, _nothing)


def _is_without_rows(value: dict[str, Any]) -> bool:
    """Whether the list of rows is empty, among other known keys."""
    return bool(_BESIDE & value.keys()) and any(
        value.get(key) == [] for key in ("samples", "results")
    )


def _by_rows(value: dict[str, Any]) -> tuple[Group, Reader] | None:
    """Groups whose rows are in `results` or `samples`, recognised by the rows' keys."""
    for name in ("samples", "results"):
        rows = value.get(name)
        if isinstance(rows, list):
            keys = {key for item in rows[:50] if isinstance(item, dict) for key in item}
            nested = _nested_keys(rows[:50])
            if nested:
                return _staged(nested, name)
            if "egpt_prefill_time" in keys:
                return timed_readers.PARALLEL, timed_readers.stage_rows
            if paired_readers.is_metrics(keys):
                return paired_readers.METRICS, paired_readers.metric_rows
            found = _paired(keys, rows)
            if found:
                return found
    return None


def _nested_keys(rows: list[Any]) -> set[str]:
    return {
        key
        for item in rows
        if isinstance(item, dict)
        for model in ("eventgpt", "videollava")
        if isinstance(item.get(model), dict)
        for key in item[model]
    }


def _staged(keys: set[str], name: str) -> tuple[Group, Reader] | None:
    if name == "samples" and "stage4_time" in keys:
        return timed_readers.NEWEST, timed_readers.newest_rows
    if "stage5_time" in keys or "stage4_time" in keys:
        return timed_readers.STAGES, timed_readers.stage_rows
    if keys & {"draft_time", "generation_time", "prefill_time", "vision_time"}:
        return timed_readers.PARALLEL, timed_readers.stage_rows
    return (timed_readers.NEWEST, timed_readers.newest_rows) if name == "samples" and keys else None


def _paired(keys: set[str], rows: list[Any]) -> tuple[Group, Reader] | None:
    if "sd_output_tokens" in keys or "adapted_draft_tokens" in keys or "vl_verify_ms" in keys:
        return paired_readers.SPECULATION, paired_readers.speculation_rows
    lists = {key for item in rows[:50] if isinstance(item, dict)
             for key, inner in item.items() if isinstance(inner, list)}  # fmt: skip
    if lists & {"eventgpt_tokens", "egpt_tokens", "draft_tokens"}:
        return paired_readers.PAIRS, paired_readers.pair_rows
    if lists & {"videollava_tokens", "vl_tokens", "target_tokens"}:
        return paired_readers.PAIRS, paired_readers.pair_rows
    if keys & {"egpt_text", "vl_text", "acceptance_estimate"}:
        return paired_readers.TEXTS, paired_readers.text_rows
    return None


def _nothing(_value: Any, _reading: FileReading) -> None:
    """A failed run has no rows."""


def _keys(value: Any) -> str:
    if isinstance(value, dict):
        names = [_quoted(key) for key in list(value)[:SHOWN_KEYS]]
        more = len(value) - SHOWN_KEYS
        rest = f" and {more:,} more" if more > 0 else ""
        description = f"unknown: keys {', '.join(names)}{rest}" if names else "an empty object"
        return description + _row_keys(value)
    if isinstance(value, list):
        first = next((item for item in value if isinstance(item, dict)), None)
        return f"a list; {_keys(first)}" if first else "a list without known objects"
    kinds = {str: "text", bool: "a single true or false", type(None): "only null"}
    return kinds.get(type(value), "a single number")


def _quoted(key: object) -> str:
    """A key in quotes, to separate it from the message."""
    return f"'{shown(brief(key, 40))}'"


def _row_keys(value: dict[str, Any]) -> str:
    """The keys of the first row, which show the models' names."""
    for name in ("results", "samples"):
        rows = value.get(name)
        row = next((item for item in rows if isinstance(item, dict)), {}) if isinstance(
            rows, list) else {}  # fmt: skip
        if row:
            names = [_quoted(key) for key in list(row)[:SHOWN_ROW_KEYS]]
            return f"; rows with {', '.join(names)}{', ...' * (len(row) > SHOWN_ROW_KEYS)}"
    return ""


def _finish(name: str, value: Any, reading: FileReading, size: int) -> ResultFile:
    document = value if isinstance(value, dict) else {}
    config = settings(document.get("config"))
    failures = reading.cells.failures(document.get("errors"))
    identities = who_answered.identities(reading.models, reading.claimed, reading.records, config)
    failed = not reading.records
    return ResultFile(
        name=name,
        group=reading.group,
        status="failed" if failed else "ok",
        message=_why_failed(name, failures, reading.group) if failed else "",
        unit=reading.unit,
        models=tuple(model for model in reading.models if not failed),
        records=tuple(reading.records),
        corrected=corrected.corrected(reading.records, identities),
        failures=failures,
        figures=tuple(reading.figures),
        claims=tuple(reading.claims),
        identities={} if failed else identities,
        config=config,
        problems=tuple(reading.cells.problems),
        draft="" if failed else reading.draft,
        target="" if failed else reading.target,
        bytes=size,
    )


def _why_failed(name: str, failures: tuple[Any, ...], group: Group) -> str:
    if group is NO_ROWS:
        return f"{name} has no rows: its run wrote no result. Run it again."
    if not failures:
        return f"{name} has no usable result: check how it was written."
    every = f"all of its {len(failures):,} samples" if len(failures) > 1 else "its only sample"
    return f"{name} has no result: {every} failed. First message: {failures[0].message}."
