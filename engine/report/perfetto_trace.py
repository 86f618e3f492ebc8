"""Runs as Chrome trace JSON, which Perfetto opens: four stages and every token of each result.

Text comes one result at a time, to save memory.
Format: "Trace Event Format" of Chromium's catapult project; complete events (ph "X"), times in
microseconds.  Every result starts its own clock; results are placed one after another in the order
in which they ran, one process per model, and the gaps between them have no meaning.  Each worker of
a cluster has its own thread, so events of different threads at the same position need not have run
at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from engine.storage.result_rows import Place, ResultRow, Spans
from engine.storage.run_store import Run

GAP_MS = 1.0
_THREAD = 1  # of the run's own process; workers have those after it
Event = dict[str, Any]


def pieces(runs: Sequence[Run]) -> Iterator[str]:
    """The trace as text, piece by piece."""
    yield '{"displayTimeUnit":"ms","traceEvents":[\n'
    lead = ""
    for event in events(runs):
        yield lead + json.dumps(event, separators=(",", ":"))
        lead = ",\n"
    yield "\n]}\n"


def events(runs: Sequence[Run]) -> Iterator[Event]:
    """All events of all results in order: a process per run and model, a thread per worker."""
    processes: dict[tuple[int, str], dict[str, int]] = {}
    start = 0.0
    for number, run in enumerate(runs):
        clocks: dict[str, _Clock] = {}
        for _, row in run.results():
            worker, model = _worker(row), (number, row.model)
            names = {} if model in processes else {"process_name": f"{row.model} ({run.id})"}
            threads = processes.setdefault(model, {})
            process = list(processes).index(model) + 1
            if worker not in threads:
                others = sum(name != "" for name in threads)
                threads[worker] = _THREAD + 1 + others if worker else _THREAD
                names["thread_name"] = worker or "stages and tokens"
            for kind, text in names.items():
                ids = {"pid": process, "tid": threads[worker]}
                yield {"name": kind, "ph": "M", **ids, "args": {"name": text}}
            clock = clocks.setdefault(worker, _Clock(start))
            yield from clock.lay(row, process, threads[worker])
        start = max([start, *(clock.now_ms for clock in clocks.values())])


def _worker(row: ResultRow) -> str:
    """The name of a worker's thread; "" for the run's own process."""
    where = row.where
    if where is None or where == Place():
        return ""
    host = where.host or where.address or where.node or "an unknown host"
    device = where.device or where.type or "an unknown device"
    return f"worker {where.actor or 'without a name'} on {host}, {device}"


@dataclass
class _Clock:
    """The end of the last result of one worker, or of the run's own process, on the trace."""

    now_ms: float
    batch: str | None = None  # the one that is laid
    batch_end_ms: float = 0.0

    def lay(self, row: ResultRow, process: int, thread: int) -> Iterator[Event]:
        place = _Place(process, thread, self.now_ms)
        if not row.batch_id:
            yield from place.result(row)
            self.now_ms += (row.total_ms or 0.0) + GAP_MS
            return
        if row.batch_id != self.batch:
            args = _args(row, "repeat", "phase", "cold", "batch", "batch_tokens")
            ms = row.batch_ms or 0.0
            yield place.event(f"batch of {row.batch}", args | _answered_by(row), 0.0, ms)
            yield from place.stages(row.batch_spans, "source")
            self.batch, self.batch_end_ms = row.batch_id, self.now_ms + ms
            self.now_ms = self.batch_end_ms + GAP_MS
        args = _args(row, "new_tokens", "stop", "batch_id")
        yield _Place(process, thread, self.batch_end_ms).event(f"{row.sample}: answered", args)


def _answered_by(row: ResultRow) -> dict[str, Any]:
    """The backend, and the worker's type of device with what it shared."""
    device = {"device": row.device} if _worker(row) else {}
    return {"backend": row.ran} | device


def _args(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


class _Place(NamedTuple):
    """The position of one result on the trace."""

    process: int
    thread: int
    offset_ms: float

    def result(self, row: ResultRow) -> Iterator[Event]:
        args = _args(row, "repeat", "phase", "cold", "new_tokens", "stop") | _answered_by(row)
        if row.error:
            yield self.event(f"{row.sample}: no answer", args | {"error": row.error})
            return
        yield self.event(row.sample, args, 0.0, row.total_ms or 0.0)
        yield from self.stages(row.spans, "source", "original_ms", "cpu_ms", "waited_ms")
        # A token's event begins at the previous token; the first belongs to the prefill.
        times, ids = row.token_ms or (), row.token_ids or ()
        for index in range(1, min(len(times), len(ids))):
            args = {"index": index, "token_id": ids[index]}
            yield self.event(f"token {index + 1}", args, times[index - 1], times[index])

    def stages(self, spans: Spans, *names: str) -> Iterator[Event]:
        for name, span in spans.items():
            if span is not None:
                words = "token steps" if name == "steps" else name
                end = span.start_ms + span.ms
                yield self.event(words, _args(span, *names), span.start_ms, end)

    def event(
        self, name: str, args: dict[str, Any], start: float = 0.0, end: float | None = None
    ) -> Event:
        """A span of time, or a moment without an end."""
        moments = (start, start if end is None else max(start, end))
        first, last = (round((self.offset_ms + ms) * 1e6) for ms in moments)
        kind = {"ph": "i", "s": "t", "ts": first / 1000}
        if end is not None:
            kind = {"ph": "X", "ts": first / 1000, "dur": (last - first) / 1000}
        return {"name": name, **kind, "pid": self.process, "tid": self.thread, "args": args}
