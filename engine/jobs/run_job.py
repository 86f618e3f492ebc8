"""A single run as a job: one model answers one question, and a page shows its progress.

Boundary: the job is the pipeline's watcher; pages get a frozen view.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from engine.errors import BadInput
from engine.jobs.queue import Job, JobView
from engine.jobs.stage_progress import progress
from engine.models import registry
from engine.pipeline import prefix_cache
from engine.types import Doing, RunRequest, RunResult, Span

if TYPE_CHECKING:
    from engine.models.adapter import Adapter

PATIENCE_S = 15.0


@dataclass(frozen=True, kw_only=True)
class RunView(JobView):
    """The current state of a run.

    `progress`: the stages so far.  It grows all the time and does not count in a comparison of two
    views.
    """

    model: str
    stage: Doing | Literal[""]
    queued_ms: float  # time in the queue, not part of the run
    text: str
    new_tokens: int
    ttft_ms: float | None
    tokens_per_s: float | None
    result: RunResult | None
    request: RunRequest
    stopping: bool = False  # cancelled but not ended yet
    progress: tuple[Span, ...] = field(default=(), compare=False)
    repeat: int = 1  # this is the repeat-th of `repeats` runs of the same request
    repeats: int = 1


@dataclass(eq=False, kw_only=True)
class RunJob(Job):
    """A request, queued or running.  It is also the run's watcher."""

    brief: ClassVar[bool] = True

    request: RunRequest
    result: RunResult | None = None
    _stage: Doing | Literal[""] = ""
    _marks: list[tuple[Doing, float]] = field(default_factory=list)
    _tokens: list[tuple[int, float]] = field(default_factory=list)
    _adapter: Adapter | None = None
    _last_text: str = ""

    @property
    def title(self) -> str:
        return self.request.model

    def stage(self, name: Doing) -> None:
        self._stage = name
        self._marks.append((name, time.monotonic()))

    def token(self, token: int, ms: float) -> None:
        self._tokens.append((token, ms))

    def view(self) -> RunView:
        """The current state; the call also counts as a heartbeat."""
        self.heartbeat()
        tokens, result = list(self._tokens), self.result
        times = [ms for _, ms in tokens]
        rate = (len(times) - 1) / (times[-1] - times[0]) * 1000 if len(times) > 1 else None
        return RunView(
            id=self.id,
            model=self.request.model,
            state=self.state,
            stage=self._stage,
            position=self.position,
            queued_ms=self.queued_ms,
            text=result.generation.text if result else self._text([t for t, _ in tokens]),
            new_tokens=len(tokens),
            ttft_ms=times[0] if times else None,
            tokens_per_s=result.tokens_per_s if result else rate,
            error=self.error,
            result=result,
            request=self.request,
            stopping=self.stopping,
            progress=self._progress(times),
        )

    def _progress(self, token_ms: list[float]) -> tuple[Span, ...]:
        now = time.monotonic() if self._ended is None else self._ended
        return progress(list(self._marks), token_ms, now, self.request.mode)

    def _text(self, ids: list[int]) -> str:
        adapter = self._adapter  # a copy: the worker may reset it meanwhile
        return adapter.text(ids) if adapter and ids else self._last_text

    def run(self) -> None:
        """Loads the model if needed and answers."""
        from engine.pipeline import feature_cache, single_run

        self.state = "loading"
        entry = registry.entry(self.request.model)
        if reason := registry.cannot_run(entry, self.request.sample):
            raise BadInput(reason)
        adapter = self._adapter = registry.load(entry, self.request.decode.max_new_tokens)
        self.state = "running"
        try:
            cache, kept = feature_cache.shared(), prefix_cache.store()
            result = single_run.run(adapter, self.request, cache, self, kept)
        finally:  # a finished job must not keep an unloaded model in memory
            self._last_text = self._text([token for token, _ in self._tokens])
            self._adapter = None
        if result.generation.stop == "cancelled" and (stopped := self.abandoned()):
            result = replace(result, notes=(*result.notes, str(stopped)))
        self.result = result
        self.state = "cancelled" if result.generation.stop == "cancelled" else "done"
