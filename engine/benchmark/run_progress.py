"""The progress of a run: counts, rate, time left, live medians, the last failures.

Memory does not grow with the run: medians cover the last WINDOW results, and the last FAILURES
failures are kept.
"""

import statistics
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.benchmark.cluster.workers import RATED, WorkerState
from engine.quoting import duration
from engine.storage.result_rows import ResultRow
from engine.types import STAGES

WINDOW = 200
FAILURES = 50
LEAST_S = 0.1  # no rate before this time: workers' first results may arrive at once
_BATCH = ("batch", "batch_ms", "batch_tokens_per_s", "batch_samples_per_s")
_LIVE = (*STAGES, "ttft", "tpot", "total", "new_tokens", *_BATCH)


@dataclass(frozen=True)
class ModelProgress:
    """One model so far.  `medians` cover the last results that were not cold, warm-up or cached:
    stages, ttft, tpot and total in ms, new_tokens; empty if there are none.  Batches have no times
    of single samples; their medians are under the names of their fields, for the most common batch
    size."""

    model: str
    done: int
    failed: int
    medians: Mapping[str, float]
    given_up: str = ""
    # Type of device and backend of the medians, if there are several in the run.  A shared device
    # and the compiled step are always named.
    device: str = ""


@dataclass(frozen=True)
class Progress:
    """done and failed count measured results of the whole run, with earlier sessions."""

    planned: int
    done: int
    failed: int
    per_s: float | None  # recent measured results per second, without pauses
    left_s: float | None
    paused_ms: float
    current: str  # a description of the current work
    models: tuple[ModelProgress, ...]
    failures: tuple[ResultRow, ...]
    notes: tuple[str, ...]
    workers: tuple[WorkerState, ...] = ()  # none if this process does the work itself
    batch: int = 1  # samples at once, as planned

    @property
    def line(self) -> str:
        rate = f", {self.per_s:.2f} per second" if self.per_s else ""
        left = f", about {duration(self.left_s)} left" if self.left_s else ""
        failed = f", {self.failed:,} failed" if self.failed else ""
        # The workers' states and problems, until the session is over.
        where = f"; {self.current}" if self.workers and self.current else ""
        return f"{self.done:,} of {self.planned:,} results{failed}{rate}{left}{where}"

    def end(self) -> Iterator[str]:
        """What a terminal shows at the end: the counts, and each failure's reason once."""
        yield self.line
        for live in self.models:
            if live.given_up:
                yield f"{live.model} was given up: {live.given_up}"
        for reason, count in Counter(f"{row.model}: {row.error}" for row in self.failures).items():
            yield f"{count:,}x {reason}"

    @property
    def incomplete(self) -> bool:
        return bool(self.failed) or any(live.given_up for live in self.models)


class AnsweredBy(NamedTuple):
    """What times depend on besides the model: type of device, what was shared, backend."""

    device: str = ""
    shared: str = ""
    backend: str = ""


@dataclass
class _ModelCounts:
    done: int = 0
    failed: int = 0
    # By kind of device and backend, and batch size.
    values: dict[tuple[AnsweredBy, int], dict[str, deque[float]]] = field(default_factory=dict)

    def progress(self, model: str, given_up: str, several: bool) -> ModelProgress:
        """With the medians of the kind with the most recent results: of single runs, and of batches
        of the most common size.  `several`: whether the run has several types of devices."""
        recent = Counter[AnsweredBy]()
        for (kind, _), figures in self.values.items():
            recent[kind] += len(figures["new_tokens"])
        shown = max(recent, key=recent.__getitem__, default=AnsweredBy())
        backend = shown.backend == "compiled" or len({kind.backend for kind in recent}) > 1
        note = (shown.device if several else shown.shared, shown.backend if backend else "")
        by_size = {size: figures for (kind, size), figures in self.values.items() if kind == shown}
        batches = [size for size in by_size if size > 1]
        common = max(batches, key=lambda size: (len(by_size[size]["batch"]), size), default=1)
        medians = {
            name: statistics.median(values)
            for size in dict.fromkeys((common, 1))
            for name, values in by_size.get(size, {}).items()
            if values
        }
        if batches:  # single runs have their own names
            medians["batch_new_tokens"] = statistics.median(by_size[common]["new_tokens"])
        device = ", ".join(filter(None, note))
        return ModelProgress(model, self.done, self.failed, medians, given_up, device)


class Tracker:
    """Follows a run in the run's thread; view() may be called from any thread."""

    def __init__(self, planned: int, models: Sequence[str], batch: int = 1) -> None:
        self._planned, self._batch = planned, batch
        self.current = ""  # a description of the current work
        self.paused_ms = 0.0
        self.workers: tuple[WorkerState, ...] = ()  # of a cluster
        self.given_up: dict[str, str] = {}  # model -> reason
        self._models = {name: _ModelCounts() for name in models}
        self._failures: deque[ResultRow] = deque(maxlen=FAILURES)
        self._notes: deque[str] = deque(maxlen=FAILURES)
        self._here = 0  # measured results of this session
        # The work time and count at the end of the last results.
        self._ends: deque[tuple[float, int]] = deque(maxlen=RATED)
        self._start: float | None = None
        self._end: float | None = None
        self._lock = threading.Lock()

    def earlier(self, row: ResultRow) -> None:
        with self._lock:
            self._count(row)

    def begin(self) -> None:
        self._start = time.monotonic()

    def end(self) -> None:
        """Ends the session: its rate no longer changes."""
        self._end = time.monotonic()

    def rows(self, rows: Sequence[ResultRow]) -> None:
        """Adds rows that ended together: one, or those of a batch."""
        with self._lock:
            measured = sum(row.phase == "measured" for row in rows)
            if measured:
                self._here += measured
                self._ends.append((self._worked(), measured))
            for row in rows:
                self._count(row)

    def note(self, text: str) -> None:
        with self._lock:
            self._notes.append(text)

    def _count(self, row: ResultRow) -> None:
        model = self._models.get(row.model)
        if model is None or row.phase != "measured":
            return
        model.done += 1
        if row.error:
            model.failed += 1
            self._failures.append(row)
        elif not row.cold:
            key = (AnsweredBy(row.device, row.shared, row.ran), row.batch)
            last = model.values.setdefault(key, {name: deque(maxlen=WINDOW) for name in _LIVE})
            for name, value in live_figures(row).items():
                last[name].append(value)

    def view(self) -> Progress:
        with self._lock:
            done = sum(model.done for model in self._models.values())
            rate = self._rate()
            share = self._planned // max(1, len(self._models))
            answered = (kind for model in self._models.values() for kind, _ in model.values)
            several = len({kind.device for kind in answered if kind.device}) > 1
            todo = sum(share - m.done for n, m in self._models.items() if n not in self.given_up)
            return Progress(
                planned=self._planned,
                done=done,
                failed=sum(model.failed for model in self._models.values()),
                per_s=rate,
                left_s=max(0, todo) / rate if rate else None,
                paused_ms=self.paused_ms,
                current=self.current,
                models=tuple(
                    model.progress(name, self.given_up.get(name, ""), several)
                    for name, model in self._models.items()
                ),
                failures=tuple(self._failures),
                notes=tuple(self._notes),
                workers=self.workers,
                batch=self._batch,
            )

    def _rate(self) -> float | None:
        if self._start is None or not self._here:
            return None
        span_s = self._ends[-1][0] - self._ends[0][0] if self._ends else 0.0
        if span_s >= LEAST_S or (len(self._ends) == RATED and span_s > 0):
            counted = sum(number for _, number in list(self._ends)[1:])
            return counted / span_s
        worked = self._worked()
        return self._here / worked if worked > 0 else None

    def _worked(self) -> float:
        now = self._end if self._end is not None else time.monotonic()
        start = self._start if self._start is not None else now
        return now - start - self.paused_ms / 1000


def live_figures(row: ResultRow) -> dict[str, float]:
    """The figures of a row that may enter a median; what a cached stage touches is left out."""
    figures: dict[str, float | None] = {"new_tokens": row.new_tokens}
    if row.batch > 1:
        figures |= {name: getattr(row, name) for name in _BATCH[: 1 if row.batch_cached else None]}
    else:
        spans = ((name, row.spans[name]) for name in STAGES)
        figures |= {name: span.ms for name, span in spans if span and span.source != "cached"}
        figures["tpot"] = row.tpot_ms
        if not row.cached:
            figures |= {"ttft": row.ttft_ms, "total": row.total_ms}
    return {name: value for name, value in figures.items() if value is not None}
