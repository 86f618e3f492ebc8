"""A queue of jobs and one worker thread for the device; jobs continue when a page is left.  Jobs
run one after another, so that models under comparison never share the device.  A job with
`patience_s` is cancelled if no page reads its view for that time."""

from __future__ import annotations

import gc
import logging
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Literal

from engine.errors import Cancelled, StageScopeError
from engine.models import registry
from engine.pipeline import Watcher

log = logging.getLogger(__name__)
State = Literal["queued", "loading", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")
KEPT = 600  # finished jobs that a link can reopen; one comparison has up to 30


@dataclass(eq=False)
class Job(Watcher, ABC):
    brief: ClassVar[bool] = False  # a brief job may interrupt a long one

    patience_s: float | None = None  # None: never cancelled for lack of reads
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    state: State = "queued"
    failure: Exception | None = None
    tell: Callable[[str], None] = lambda _: None  # gets each step as a line of text
    owner: str = ""  # the visit whose own files it reads; "": visible to all who know its id
    _queue: Jobs | None = None
    _cancel: threading.Event = field(default_factory=threading.Event)
    _over: threading.Event = field(default_factory=threading.Event)
    _last_read: float = field(default_factory=time.monotonic)
    _started: float | None = None
    _ended: float | None = None

    @property
    @abstractmethod
    def title(self) -> str:
        """The job's name in messages."""

    @abstractmethod
    def run(self) -> None:
        """Does the work on the worker's thread; done at its end unless it sets another state."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def stopping(self) -> bool:
        """Cancelled but not ended yet: the current step cannot be interrupted."""
        return self._cancel.is_set() and not self.ended

    @property
    def position(self) -> int:
        """0 for the running job (and for one that has ended)."""
        return self._queue.position(self) if self._queue else 0

    @property
    def elapsed_s(self) -> float:
        """Time since the start, without time in the queue."""
        return (self._ended or time.monotonic()) - self._started if self._started else 0.0

    def end(self, state: State, failure: Exception | None = None) -> None:
        """Sets the final state last, so that a reader of it also sees the failure and the time."""
        self.failure = failure
        self._ended = time.monotonic()
        self.state = state
        self._over.set()

    @property
    def progress(self) -> tuple[int, int]:
        """The steps that are done, of how many; 0 of 0 while that is not known."""
        return 0, 0

    def ends_within(self, seconds: float) -> bool:
        """Waits at most so long; a heartbeat."""
        self._last_read = time.monotonic()
        return self._over.wait(seconds)

    def cancelled(self) -> bool:
        unread = time.monotonic() - self._last_read
        return self._cancel.is_set() or (self.patience_s is not None and unread > self.patience_s)

    def cancel(self) -> None:
        """Stops the work at its next check; a queued job never starts."""
        self._cancel.set()
        if self._queue:
            self._queue.drop(self)

    def work(self) -> None:
        try:
            if self.cancelled():
                raise Cancelled(f"{self.title} was cancelled before it started.")
            self._started = time.monotonic()
            self.run()
            self.end(self.state if self.ended else "done")
        except Cancelled as error:
            self.end("cancelled", self.abandoned() or error)
        except Exception as error:  # any error of a model; the worker thread must go on
            if not isinstance(error, StageScopeError):
                log.exception("%s failed", self.title)
            self.end("failed", error)

    def abandoned(self) -> Cancelled | None:
        """The reason if the job was stopped for lack of heartbeats; None after a Cancel."""
        if self._cancel.is_set():
            return None
        return Cancelled(
            f"{self.title} was stopped because no page had shown this run for "
            f"{self.patience_s:g} s: press Run to repeat it."
        )

    def give_way(self) -> float:
        """Runs the waiting brief jobs; returns the milliseconds that they took."""
        return self._queue.serve_brief() if self._queue else 0.0

    @property
    def error(self) -> str:
        if self.failure is None or isinstance(self.failure, StageScopeError):
            return str(self.failure or "")
        kind = type(self.failure).__name__
        return f"{self.title} failed with {kind}: {self.failure}".strip()


class Jobs:
    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._warm: deque[str] = deque()
        self._busy: Job | None = None
        self._idle = True  # neither a job nor a load
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, job: Job) -> None:
        job._queue = self
        with self._change:
            self._jobs[job.id] = job
            self._waiting.append(job)
            for job_id in [key for key, old in self._jobs.items() if old.ended][:-KEPT]:
                del self._jobs[job_id]
            self._start()

    def get(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def all(self) -> list[Job]:
        """All stored jobs, oldest first."""
        with self._change:
            return list(self._jobs.values())

    def warm_up(self) -> None:
        """Loads the demo models in the background; queued jobs run first."""
        with self._change:
            self._warm.extend(item.name for item in registry.entries() if item.demo)
            self._start()

    def wait_until_idle(self, seconds: float | None = None) -> bool:
        """Whether nothing runs, waits or is loaded, which work beside it would slow down; returns
        as soon as that is so, at the latest after these seconds."""
        with self._change:
            return self._change.wait_for(
                lambda: self._idle and not (self._waiting or self._warm), seconds
            )

    def position(self, job: Job) -> int:
        with self._change:
            if job not in self._waiting:
                return 0
            return self._waiting.index(job) + (self._busy is not None)

    def drop(self, job: Job) -> None:
        with self._change:
            if job in self._waiting:
                self._waiting.remove(job)
                job.end("cancelled", Cancelled(f"{job.title} was cancelled before it started."))

    def serve_brief(self) -> float:
        """Runs the brief jobs of the queue on the calling thread, which is the worker's."""
        start, long_job, served = time.monotonic(), self._busy, False
        while True:
            with self._change:
                job = next((job for job in self._waiting if job.brief), None)
                self._busy = job or long_job
                if job is None:
                    return (time.monotonic() - start) * 1000 if served else 0.0
                self._waiting.remove(job)
            served = True
            job.work()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="stagescope", daemon=True)
            self._thread.start()
        self._change.notify_all()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._warm)
                job = self._busy = self._waiting.popleft() if self._waiting else None
                name = "" if job else self._warm.popleft()
                self._idle = False
            if job:
                job.work()
            else:  # a failure is reported when a run needs the model
                with suppress(StageScopeError):
                    registry.load(registry.entry(name))
                    # Streamlit collects garbage after each rerun, now without what was loaded.
                    gc.collect()
                    gc.freeze()
            with self._change:
                self._busy, self._idle = None, True
                self._change.notify_all()


@lru_cache(maxsize=1)
def manager() -> Jobs:
    return Jobs()
