"""Work that outlives a page: a fair queue and one worker thread for the device.

Boundary: threads and states, no Streamlit and no model code; what a job does is its subclass's.
Jobs go one after another, so that models that are compared never share the device.  A page looks
at a job through its view, which is also its heartbeat: a job with a patience that nobody has looked
at for so long is cancelled.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Literal

from engine.errors import Cancelled, StageScopeError
from engine.models import registry
from engine.pipeline.watcher import Watcher

log = logging.getLogger(__name__)
State = Literal["queued", "loading", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")
KEPT = 200  # finished jobs that a link can still reopen


@dataclass(eq=False)
class Job(Watcher, ABC):
    """Something for the device, queued or at work."""

    brief: ClassVar[bool] = False  # brief ones may go before the rest of a long one

    patience_s: float | None = None  # None: goes on whether anybody looks or not
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    state: State = "queued"
    failure: Exception | None = None
    owner: str = ""  # the visit whose own files it reads; "": anybody with its id may see it
    _queue: Jobs | None = None
    _cancel: threading.Event = field(default_factory=threading.Event)
    _seen: float = field(default_factory=time.monotonic)
    _submitted: float = field(default_factory=time.monotonic)
    _started: float | None = None
    _ended: float | None = None

    @property
    @abstractmethod
    def title(self) -> str:
        """What messages call it."""

    @abstractmethod
    def run(self) -> None:
        """Does the work, on the worker's thread; sets the last state unless it raises."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def stopping(self) -> bool:
        """Cancelled and not ended yet: it is at work on something that cannot be interrupted."""
        return self._cancel.is_set() and not self.ended

    def look(self) -> None:
        """Somebody is interested."""
        self._seen = time.monotonic()

    @property
    def position(self) -> int:
        """0 for the job that has the device (and for one that has ended)."""
        return self._queue.position(self) if self._queue else 0

    @property
    def queued_ms(self) -> float:
        """Time in the queue; of a job that never started, until it ended."""
        return ((self._started or self._ended or time.monotonic()) - self._submitted) * 1000

    def end(self, state: State, failure: Exception | None = None) -> None:
        """The last state, set after all that belongs to it: who sees it sees the rest as well."""
        self.failure = failure
        self._ended = time.monotonic()
        self.state = state

    def cancelled(self) -> bool:
        unseen = time.monotonic() - self._seen
        return self._cancel.is_set() or (self.patience_s is not None and unseen > self.patience_s)

    def cancel(self) -> None:
        """Stops the work at its next look; a queued job never starts."""
        self._cancel.set()
        if self._queue:
            self._queue.drop(self)

    def work(self) -> None:
        """Runs; every outcome becomes a state."""
        try:
            if self.cancelled():
                raise Cancelled(f"{self.title} was cancelled before it started.")
            self._started = time.monotonic()
            self.run()
        except Cancelled as error:
            self.end("cancelled", self.unseen() or error)
        except StageScopeError as error:
            self.end("failed", error)
        except Exception as error:  # the worker outlives whatever a model raises
            log.exception("%s failed", self.title)
            self.end("failed", error)

    def unseen(self) -> Cancelled | None:
        """Why the job was stopped, if it was not for somebody's Cancel."""
        if self._cancel.is_set():
            return None
        return Cancelled(
            f"{self.title} was stopped, because no page had shown this run for "
            f"{self.patience_s:g} s: press Run to repeat it."
        )

    def give_way(self) -> float:
        """Lets brief jobs that wait have the device; how many milliseconds that took."""
        return self._queue.serve_brief() if self._queue else 0.0

    @property
    def error(self) -> str:
        """One sentence, or nothing."""
        if self.failure is None or isinstance(self.failure, StageScopeError):
            return str(self.failure or "")
        kind = type(self.failure).__name__
        return f"{self.title} failed with {kind}: {self.failure}".strip()


class Jobs:
    """The queue of one device, and the thread that works it off."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._waiting: deque[Job] = deque()
        self._warm: deque[str] = deque()
        self._busy: Job | None = None
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, job: Job) -> None:
        """Queues a job behind those that wait."""
        job._queue = self
        with self._change:
            self._jobs[job.id] = job
            self._waiting.append(job)
            self._forget_old()
            self._start()
            self._change.notify()

    def get(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def all(self) -> list[Job]:
        """Every job still known, the oldest first."""
        with self._change:
            return list(self._jobs.values())

    def warm_up(self) -> None:
        """Loads the demo models behind the page, before the first click; a run goes first."""
        with self._change:
            self._warm.extend(item.name for item in registry.entries() if item.demo)
            self._start()
            self._change.notify()

    def position(self, job: Job) -> int:
        with self._change:
            if job not in self._waiting:
                return 0
            return self._waiting.index(job) + (self._busy is not None)

    def drop(self, job: Job) -> None:
        """Takes a job that has not started out of the queue."""
        with self._change:
            if job in self._waiting:
                self._waiting.remove(job)
                job.end("cancelled", Cancelled(f"{job.title} was cancelled before it started."))

    def serve_brief(self) -> float:
        """Works off the brief jobs in the queue, on the caller's thread: the worker's own."""
        start, long = time.monotonic(), self._busy
        served = False
        while (job := self._next_brief()) is not None:
            served = True
            job.work()
        with self._change:
            self._busy = long
        return (time.monotonic() - start) * 1000 if served else 0.0

    def _next_brief(self) -> Job | None:
        with self._change:
            found = next((job for job in self._waiting if job.brief), None)
            if found is not None:
                self._waiting.remove(found)
                self._busy = found
            return found

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="stagescope", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._warm)
                job = self._busy = self._waiting.popleft() if self._waiting else None
                name = "" if job else self._warm.popleft()
            if job:
                job.work()
            else:
                _load_quietly(name)
            with self._change:
                self._busy = None

    def _forget_old(self) -> None:
        for job_id in [key for key, job in self._jobs.items() if job.ended][:-KEPT]:
            del self._jobs[job_id]


def _load_quietly(name: str) -> None:
    """A model that cannot be loaded says so when it is asked for, not before."""
    try:
        registry.load(registry.entry(name))
    except StageScopeError:
        return
    # Streamlit collects garbage after each rerun; what is loaded now stays, so keep it out of that.
    gc.collect()
    gc.freeze()


@lru_cache(maxsize=1)
def manager() -> Jobs:
    """The one queue of this process."""
    return Jobs()
