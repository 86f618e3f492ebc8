"""How a run stands while it goes on: counts, rate, time left, live medians, the last failures.

Boundary: rows go in, a frozen view comes out.  What is kept does not grow with the run: medians
are those of the last WINDOW results, failures the last FAILURES.  Monotonic clock throughout.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.analysis.result_device import backend_of, device_of, shared_of
from engine.storage.result_rows import ResultRow
from engine.types import STAGES

WINDOW = 200
FAILURES = 50
LEAST_S = 0.1  # workers' first results may come at once: a rate of less is one of chance
RATED = 50  # the rate is that of so many last results: loading a model does not linger in it
_BATCH = ("batch", "batch_ms", "batch_tokens_per_s", "batch_samples_per_s")
_LIVE = (*STAGES, "ttft", "tpot", "total", "new_tokens", *_BATCH)


@dataclass(frozen=True)
class Failure:
    model: str
    sample: str
    reason: str


@dataclass(frozen=True)
class Live:
    """One model so far.  `medians` are of the last results that were neither cold nor warm-up nor
    read from the cache: stages, ttft, tpot and total in ms, new_tokens; absent without any.  Those
    of batches, which have no times of single samples, are under the names of their fields; where
    batches are of several sizes, of the commonest."""

    model: str
    done: int
    failed: int
    medians: Mapping[str, float]
    given_up: str = ""
    # Whose medians these are, where several have answered in the run: type of device, backend that
    # ran.  A shared device and the compiled step are always said.
    device: str = ""
    # How many results that may enter these medians there were of each batch size, singles under 1.
    sizes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerView:
    """A worker of a cluster as it stands.  `type` is what times depend on, `shares` what other
    workers use at the same time, `per_s` its measured results a second of late."""

    id: str
    node: str
    device: str
    type: str
    shares: tuple[str, ...]
    state: str
    ended: bool
    done: int
    per_s: float | None


@dataclass(frozen=True)
class Progress:
    """done and failed count measured results of the whole run, those of earlier sittings too."""

    planned: int
    done: int
    failed: int
    per_s: float | None  # measured results a second of late, pauses left out
    left_s: float | None
    paused_ms: float
    current: str  # what goes on, as words
    models: tuple[Live, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    workers: tuple[WorkerView, ...] = ()  # none where this process does the work itself
    batch: int = 1  # samples at once, as planned


class Kind(NamedTuple):
    """What times depend on beside the model: type of device, what of it was shared, backend."""

    device: str = ""
    shared: str = ""
    backend: str = ""


@dataclass
class _Model:
    done: int = 0
    failed: int = 0
    given_up: str = ""
    sizes: Counter[tuple[Kind, int]] = field(default_factory=Counter)
    # By what answered, and by batch size.
    values: dict[Kind, dict[int, dict[str, deque[float]]]] = field(default_factory=dict)

    def of(self, kind: Kind, batch: int) -> dict[str, deque[float]]:
        sizes = self.values.setdefault(kind, {})
        if batch not in sizes:
            sizes[batch] = {name: deque(maxlen=WINDOW) for name in _LIVE}
        return sizes[batch]

    def kind(self) -> Kind:
        """What has the most results of late."""
        return max(self.values, key=lambda kind: _seen(self.values[kind]), default=Kind())

    def told(self, several: bool) -> str:
        """What is to be said of that kind: what tells it from others, that its device was shared,
        and the compiled step.  `several`: whether types of devices differ, in the whole run."""
        kind = self.kind()
        said = [kind.device if several else kind.shared]
        if kind.backend == "compiled" or len({one.backend for one in self.values}) > 1:
            said.append(kind.backend)
        return ", ".join(one for one in said if one)

    def medians(self) -> dict[str, float]:
        """Of that kind alone: those of single runs, and those of the batches of the commonest size
        beside them."""
        found = self.values.get(self.kind(), {})
        sizes = sorted((s for s in found if s > 1), key=lambda s: (len(found[s]["batch"]), s))
        shown = [*sizes[-1:], *([1] if 1 in found else [])]
        medians = {
            name: statistics.median(values)
            for size in shown
            for name, values in found[size].items()
            if values
        }
        if sizes:  # beside those of single runs, which have the name to themselves
            medians["batch_new_tokens"] = statistics.median(found[sizes[-1]]["new_tokens"])
        return medians


def _seen(sizes: Mapping[int, Mapping[str, deque[float]]]) -> int:
    return sum(len(values["new_tokens"]) for values in sizes.values())


class Tracker:
    """Takes what a run does, in its thread; view() is for any thread."""

    def __init__(self, planned: int, models: Sequence[str], batch: int = 1) -> None:
        self._planned, self._batch = planned, batch
        self._models = {name: _Model() for name in models}
        self._failures: deque[Failure] = deque(maxlen=FAILURES)
        self._notes: deque[str] = deque(maxlen=FAILURES)
        self._here = 0  # measured results of this sitting
        # When the last ones ended, in worked time, and how many then.
        self._ends: deque[tuple[float, int]] = deque(maxlen=RATED)
        self._paused_ms = 0.0
        self._current = ""
        self._workers: tuple[WorkerView, ...] = ()
        self._start: float | None = None
        self._end: float | None = None
        self._lock = threading.Lock()

    def earlier(self, row: ResultRow) -> None:
        """A row that the run folder held before."""
        with self._lock:
            self._count(row)

    def begin(self) -> None:
        self._start = time.monotonic()

    def end(self) -> None:
        """The sitting is over: from now on its rate stays what it was."""
        self._end = time.monotonic()

    def doing(self, words: str) -> None:
        self._current = words

    def crew(self, workers: tuple[WorkerView, ...]) -> None:
        """The workers of a cluster, as they stand now."""
        self._workers = workers

    def rows(self, rows: Sequence[ResultRow]) -> None:
        """New rows that ended together: one, or those of a batch."""
        with self._lock:
            measured = sum(row.phase == "measured" for row in rows)
            if measured:
                self._here += measured
                self._ends.append((self._worked(), measured))
            for row in rows:
                self._count(row)

    def paused(self, ms: float) -> None:
        self._paused_ms += ms

    def give_up(self, model: str, reason: str) -> None:
        self._models[model].given_up = reason

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
            self._failures.append(Failure(row.model, row.sample, row.error))
        elif not row.cold:
            found = live_figures(row)
            kind = Kind(device_of(row), shared_of(row), backend_of(row))
            size = int(found.get("batch", 1))
            model.sizes[kind, size] += 1
            kept = model.of(kind, size)
            for name, value in found.items():
                kept[name].append(value)

    def view(self) -> Progress:
        with self._lock:
            done = sum(model.done for model in self._models.values())
            rate = self._rate()
            todo = sum(self._share() - m.done for m in self._models.values() if not m.given_up)
            return Progress(
                planned=self._planned,
                done=done,
                failed=sum(model.failed for model in self._models.values()),
                per_s=rate,
                left_s=max(0, todo) / rate if rate else None,
                paused_ms=self._paused_ms,
                current=self._current,
                models=tuple(self._live(name) for name in self._models),
                failures=tuple(self._failures),
                notes=tuple(self._notes),
                workers=self._workers,
                batch=self._batch,
            )

    def _share(self) -> int:
        return self._planned // max(1, len(self._models))

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
        """Seconds of this sitting, pauses left out."""
        now = self._end if self._end is not None else time.monotonic()
        start = self._start if self._start is not None else now
        return now - start - self._paused_ms / 1000

    def _several(self) -> bool:
        """Whether results of different types of devices stand beside each other."""
        kinds = (kind for model in self._models.values() for kind in model.values)
        return len({kind.device for kind in kinds if kind.device}) > 1

    def _live(self, name: str) -> Live:
        model = self._models[name]
        return Live(
            name,
            model.done,
            model.failed,
            model.medians(),
            model.given_up,
            model.told(self._several()),
            {size: n for (kind, size), n in model.sizes.items() if kind == model.kind()},
        )


def live_figures(row: ResultRow) -> dict[str, float]:
    """The figures of a row that may enter a median; what a cached stage touches is left out."""
    if row.size > 1:
        return _known(row, (*(_BATCH[:1] if row.batch_cached else _BATCH), "new_tokens"))
    spans = ((name, row.spans[name]) for name in STAGES)
    found = {name: span.ms for name, span in spans if span and span.source != "cached"}
    whole = () if row.cached else ("ttft_ms", "total_ms")
    known = _known(row, (*whole, "tpot_ms", "new_tokens"))
    return found | {name.removesuffix("_ms"): value for name, value in known.items()}


def _known(row: ResultRow, names: Sequence[str]) -> dict[str, float]:
    """Those fields that are not None."""
    found = {name: getattr(row, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}
