"""Work that outlives a page: a fair queue and one worker thread for the device.

Boundary: threads and states, no Streamlit and no model code.  Runs go one after another, so that
models that are compared never share the device.  A page looks at a job through `view`, which is
also its heartbeat: an interactive job that nobody has looked at for PATIENCE_S is cancelled.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from engine import settings
from engine.errors import BadInput, Cancelled, StageScopeError
from engine.models import registry
from engine.types import RunRequest, RunResult, StageName

if TYPE_CHECKING:
    from engine.cache import FeatureCache
    from engine.models.base import Adapter

log = logging.getLogger(__name__)
State = Literal["queued", "loading", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")
PATIENCE_S = 15.0
KEPT = 200  # finished jobs that a link can still reopen


@dataclass(frozen=True)
class JobView:
    """A job as it stands now.  position 0 is the one that has the device."""

    id: str
    model: str
    sample_id: str
    state: State
    stage: StageName | Literal[""]
    position: int
    queued_ms: float  # waiting for the device; no part of the run
    text: str
    new_tokens: int
    ttft_ms: float | None
    tokens_per_s: float | None
    error: str
    result: RunResult | None
    request: RunRequest

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(eq=False)
class Job:
    """One run, queued or at work.  It is also the run's watcher."""

    request: RunRequest
    queue: Jobs
    patience_s: float | None = None  # None: goes on whether anybody looks or not
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    state: State = "queued"
    failure: Exception | None = None
    result: RunResult | None = None
    _stage: StageName | Literal[""] = ""
    _tokens: list[tuple[int, float]] = field(default_factory=list)
    _adapter: Adapter | None = None
    _cancel: threading.Event = field(default_factory=threading.Event)
    _seen: float = field(default_factory=time.monotonic)
    _submitted: float = field(default_factory=time.monotonic)
    _started: float | None = None

    def stage(self, name: StageName) -> None:
        self._stage = name

    def token(self, token: int, ms: float) -> None:
        self._tokens.append((token, ms))

    def cancelled(self) -> bool:
        unseen = time.monotonic() - self._seen
        return self._cancel.is_set() or (self.patience_s is not None and unseen > self.patience_s)

    def cancel(self) -> None:
        """Stops the run between two tokens or stages; a queued one never starts."""
        self._cancel.set()
        self.queue.drop(self)

    def view(self) -> JobView:
        """How the job stands; looking keeps it alive."""
        self._seen = time.monotonic()
        tokens, result = list(self._tokens), self.result
        times = [ms for _, ms in tokens]
        rate = (len(times) - 1) / (times[-1] - times[0]) * 1000 if len(times) > 1 else None
        return JobView(
            id=self.id,
            model=self.request.model,
            sample_id=self.request.sample.id,
            state=self.state,
            stage=self._stage,
            position=self.queue.position(self),
            queued_ms=((self._started or time.monotonic()) - self._submitted) * 1000,
            text=result.generation.text if result else self._text([t for t, _ in tokens]),
            new_tokens=len(tokens),
            ttft_ms=times[0] if times else None,
            tokens_per_s=result.tokens_per_s if result else rate,
            error=self.error,
            result=result,
            request=self.request,
        )

    @property
    def error(self) -> str:
        """One sentence, or nothing."""
        if self.failure is None or isinstance(self.failure, StageScopeError):
            return str(self.failure or "")
        kind = type(self.failure).__name__
        return f"{self.request.model} failed with {kind}: {self.failure}".strip()

    def _text(self, ids: list[int]) -> str:
        return self._adapter.text(ids) if self._adapter and ids else ""

    def work(self) -> None:
        """Loads the model if need be and runs; every outcome becomes a state."""
        try:
            self._run()
        except Cancelled as error:
            self.state, self.failure = "cancelled", self._unseen() or error
        except StageScopeError as error:
            self.state, self.failure = "failed", error
        except Exception as error:  # the worker outlives whatever a model raises
            log.exception("run of %s failed", self.request.model)
            self.state, self.failure = "failed", error

    def _unseen(self) -> Cancelled | None:
        """Why the run was stopped, if it was not for somebody's Cancel."""
        if self._cancel.is_set():
            return None
        return Cancelled(
            f"{self.request.model} was stopped, because no page had shown this run for "
            f"{self.patience_s:g} s: press Run to repeat it."
        )

    def _run(self) -> None:
        from engine import pipeline

        if self.cancelled():
            raise Cancelled(f"{self.request.model} was cancelled before it started.")
        self._started = time.monotonic()
        self.state = "loading"
        entry = registry.entry(self.request.model)
        if reason := registry.cannot_run(entry, self.request.sample):
            raise BadInput(reason)
        self._adapter = registry.load(entry)
        self.state = "running"
        result = pipeline.run(self._adapter, self.request, self.queue.cache(), self)
        if result.generation.stop == "cancelled" and (unseen := self._unseen()):
            result = replace(result, notes=(*result.notes, str(unseen)))
        self.result = result
        self.state = "cancelled" if result.generation.stop == "cancelled" else "done"


class Jobs:
    """The queue of one device, and the thread that works it off."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queue: deque[Job] = deque()
        self._warm: deque[str] = deque()
        self._busy: Job | None = None
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, request: RunRequest) -> Job:
        """Queues a run behind those that wait."""
        job = Job(request, self, PATIENCE_S)
        with self._change:
            self._jobs[job.id] = job
            self._queue.append(job)
            self._forget_old()
            self._start()
            self._change.notify()
        return job

    def get(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def warm_up(self) -> None:
        """Loads the demo models behind the page, before the first click; a run goes first."""
        with self._change:
            self._warm.extend(item.name for item in registry.entries() if item.demo)
            self._start()
            self._change.notify()

    def position(self, job: Job) -> int:
        with self._change:
            return self._queue.index(job) + (self._busy is not None) if job in self._queue else 0

    def drop(self, job: Job) -> None:
        """Takes a job that has not started out of the queue."""
        with self._change:
            if job in self._queue:
                self._queue.remove(job)
                job.state = "cancelled"
                job.failure = Cancelled(f"{job.request.model} was cancelled before it started.")

    @staticmethod
    def cache() -> FeatureCache:
        return feature_cache()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="stagescope", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._queue or self._warm)
                job = self._busy = self._queue.popleft() if self._queue else None
                name = "" if job else self._warm.popleft()
            if job:
                job.work()
            else:
                _load_quietly(name)
            with self._change:
                self._busy = None

    def _forget_old(self) -> None:
        for job_id in [key for key, job in self._jobs.items() if job.state in ENDED][:-KEPT]:
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


@lru_cache(maxsize=1)
def feature_cache() -> FeatureCache:
    """The cache of the settings' folder."""
    from engine.cache import FeatureCache

    chosen = settings.load()
    return FeatureCache(chosen.features_dir, chosen.cache_limit_mb)
