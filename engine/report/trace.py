"""Runs as Chrome trace JSON, which Perfetto opens: four stages and every token of each result.

Boundary: rows in, pieces of text out, one result at a time, so that a long run needs no memory.
Format: "Trace Event Format" of Chromium's catapult project; complete events (ph "X"), times in
microseconds.  Every result has a clock of its own; they are laid end to end in the order in which
they ran, a process per model, and the gaps between them mean nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.figures.places import backend_of
from engine.store import Run, task_of
from engine.types import STAGES

GAP_MS = 1.0
_THREAD = 1


def pieces(runs: Sequence[Run]) -> Iterator[str]:
    """The trace as text, piece by piece."""
    yield '{"displayTimeUnit":"ms","traceEvents":[\n'
    lead = ""
    for event in events(runs):
        yield lead + json.dumps(event, separators=(",", ":"))
        lead = ",\n"
    yield "\n]}\n"


def events(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """All events of all results in order."""
    processes: dict[tuple[int, str], int] = {}
    offset = ended = 0.0
    last: tuple[int, str] | None = None  # the batch that is laid already
    for number, run in enumerate(runs):
        for _, row in run.results():
            if task_of(row) is None:
                continue
            key = (number, row["model"])
            if key not in processes:
                processes[key] = len(processes) + 1
                yield from _names(processes[key], f"{row['model']} ({run.id})")
            place = _Place(processes[key], offset)
            if batch := row.get("batch_id"):
                if (number, batch) != last:
                    yield from place.batch(row)
                    last, ended = (number, batch), offset + row["batch_ms"]
                    offset = ended + GAP_MS
                yield _Place(processes[key], ended).member(row)
                continue
            yield from place.result(row)
            offset += (row.get("total_ms") or 0.0) + GAP_MS


def _names(process: int, name: str) -> Iterator[dict[str, Any]]:
    for kind, text in (("process_name", name), ("thread_name", "stages and tokens")):
        yield {
            "name": kind,
            "ph": "M",
            "pid": process,
            "tid": _THREAD,
            "args": {"name": text},
        }


class _Place:
    """Where on the trace one result lies."""

    def __init__(self, process: int, offset_ms: float) -> None:
        self.process, self.offset_ms = process, offset_ms

    def result(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        args = {key: row.get(key) for key in ("repeat", "phase", "cold", "new_tokens", "stop")}
        args["backend"] = backend_of(row)
        if row.get("error"):
            told = f"{row['sample']}: no answer"
            yield self._moment(told, args | {"error": row["error"]})
            return
        total = row["total_ms"]
        yield self._event(row["sample"], 0.0, total, args)
        spans: list[tuple[str, Any]] = [(name, row["stages"].get(name)) for name in STAGES]
        spans += [("prefill", row.get("prefill")), ("token steps", row.get("steps"))]
        for name, span in spans:
            if span is not None:
                more = {"source": span["source"], "original_ms": span["original_ms"]}
                yield self._event(name, span["start_ms"], span["start_ms"] + span["ms"], more)
        yield from self._tokens(row)

    def batch(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The stages of a batch, of which a row of any of its samples tells."""
        total = row["batch_ms"]
        args = {key: row.get(key) for key in ("repeat", "phase", "cold", "batch", "batch_tokens")}
        args["backend"] = backend_of(row)
        yield self._event(f"batch of {row['batch']}", 0.0, total, args)
        spans: list[tuple[str, Any]] = [(s, row["batch_stages"].get(s)) for s in STAGES]
        spans += [("prefill", row.get("batch_prefill")), ("token steps", row.get("batch_steps"))]
        for name, span in spans:
            if span is not None:
                end = span["start_ms"] + span["ms"]
                yield self._event(name, span["start_ms"], end, {"source": span["source"]})

    def member(self, row: Mapping[str, Any]) -> dict[str, Any]:
        args = {key: row.get(key) for key in ("new_tokens", "stop", "batch_id")}
        return self._moment(f"{row['sample']}: answered", args)

    def _tokens(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """A token lasts from the one before it to itself; the first is the prefill's."""
        times, ids = row["token_ms"], row["token_ids"]
        for index in range(1, min(len(times), len(ids))):
            args = {"index": index, "token_id": ids[index]}
            yield self._event(f"token {index + 1}", times[index - 1], times[index], args)

    def _event(self, name: str, start: float, end: float, args: dict[str, Any]) -> dict[str, Any]:
        first, last = self._ns(start), self._ns(max(start, end))
        return {
            "name": name,
            "ph": "X",
            "ts": first / 1000,
            "dur": (last - first) / 1000,
            "pid": self.process,
            "tid": _THREAD,
            "args": args,
        }

    def _moment(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "ph": "i",
            "s": "t",
            "ts": self._ns(0.0) / 1000,
            "pid": self.process,
            "tid": _THREAD,
            "args": args,
        }

    def _ns(self, ms: float) -> int:
        return round((self.offset_ms + ms) * 1e6)
