"""A single run as a job: one model answers one question, and a page shows its progress."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal

from engine.errors import BadInput
from engine.jobs.queue import ENDED, Job, State
from engine.models import registry, variants
from engine.quoting import cut
from engine.types import Doing, Mode, RunRequest, RunResult, Span

if TYPE_CHECKING:
    from engine.models.adapter import Adapter

PATIENCE_S = 15.0
GENERATE = "generate"  # in hooked mode, vision and prefill are told apart at the end only


@dataclass(frozen=True, kw_only=True)
class RunView:
    """position 0 is the running job.  `progress` has the stages so far: it grows all the time and
    does not count in a comparison of two views."""

    id: str
    state: State
    position: int
    error: str
    model: str
    stage: Doing | Literal[""]
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

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(eq=False, kw_only=True)
class RunJob(Job):
    brief: ClassVar[bool] = True

    request: RunRequest
    result: RunResult | None = None
    _stage: Doing | Literal[""] = ""
    _marks: list[tuple[Doing, float]] = field(default_factory=list)
    _tokens: list[tuple[int, float]] = field(default_factory=list)
    _adapter: Adapter | None = None
    _last_text: str = ""
    _first_ms: float | None = None  # of a server's text

    @property
    def title(self) -> str:
        return registry.label(self.request.model)

    def stage(self, name: Doing) -> None:
        self._stage = name
        self._marks.append((name, time.monotonic()))

    def token(self, token: int, ms: float) -> None:
        self._tokens.append((token, ms))

    def piece(self, text: str, ms: float) -> None:
        self._first_ms = ms if self._first_ms is None else self._first_ms
        self._last_text = text

    def view(self) -> RunView:
        """A heartbeat.  The state is read first: all is there when it is a final one."""
        self._last_read = time.monotonic()
        state, tokens, result = self.state, list(self._tokens), self.result
        times = [ms for _, ms in tokens]
        rate = (len(times) - 1) / (times[-1] - times[0]) * 1000 if len(times) > 1 else None
        now = time.monotonic() if self._ended is None else self._ended
        return RunView(
            id=self.id,
            state=state,
            position=self.position,
            error=self.error,
            model=self.request.model,
            stage=self._stage,
            text=result.generation.text if result else self._text([t for t, _ in tokens]),
            new_tokens=len(tokens),
            ttft_ms=times[0] if times else self._first_ms,
            tokens_per_s=result.tokens_per_s if result else rate,
            result=result,
            request=self.request,
            stopping=self.stopping,
            progress=progress(list(self._marks), times, now, self.request.how.mode),
        )

    def _text(self, ids: list[int]) -> str:
        adapter = self._adapter  # a copy: the worker may reset it meanwhile
        return adapter.text(ids) if adapter and ids else self._last_text

    def end(self, state: State, failure: Exception | None = None) -> None:
        self.failure = failure
        for note in self.result.notes if self.result else (self.error,):
            self.tell(f"{cut(self.request.model)}: {note}")
        super().end(state, failure)

    def run(self) -> None:
        from engine.pipeline import feature_cache, single_run

        self.state = "loading"
        entry = registry.entry(self.request.model)
        if reason := registry.cannot_run(entry, self.request.sample):
            raise BadInput(reason)
        doing = f"asking {entry.server.host}" if entry.server else "answering"
        if not entry.server and variants.loaded(entry) not in registry.resident():
            doing = "loading the model, then answering"
        self.tell(f"{self.request.model}: {doing} ...")
        if entry.server:
            from engine.served import column

            self.state = "running"
            result = column.answer(entry, self.request, self)
        else:
            adapter = self._adapter = registry.load(entry, self.request.how.decode.max_new_tokens)
            self.state = "running"
            try:
                result = single_run.run(adapter, self.request, feature_cache.shared(), self)
            finally:  # a finished job must not keep an unloaded model in memory
                self._last_text = self._text([token for token, _ in self._tokens])
                self._adapter = None
        cancelled = result.generation.stop == "cancelled"
        if cancelled and (stopped := self.abandoned()):
            result = replace(result, notes=(*result.notes, str(stopped)))
        self.result = result
        if cancelled:
            self.state = "cancelled"


def progress(
    marks: Sequence[tuple[Doing, float]], token_ms: Sequence[float], now: float, mode: Mode
) -> tuple[Span, ...]:
    """The spans so far, on a clock that starts with the load stage.  `marks`: the stages begun,
    each with its moment in seconds on the clock of `now`.  The last one lasts until `now`; the
    first token divides decode into prefill and steps."""
    begun = [(name, moment) for name, moment in marks if name != "compile"]
    if not begun:
        return ()
    start = begun[0][1]
    ends = [(name, 1000 * (moment - start)) for name, moment in [*begun, ("", now)]]
    spans = [Span(name, at, max(0.0, end - at)) for (name, at), (_, end) in pairwise(ends)]
    last = "vision" if mode == "hooked" else "decode"
    if spans[-1].name != last:
        return tuple(spans)
    split = spans.pop()
    end = split.start_ms + split.ms
    first = min(max(token_ms[0], split.start_ms), end) if token_ms else end
    name = GENERATE if last == "vision" else "decode.prefill"
    spans.append(Span(name, split.start_ms, first - split.start_ms))
    if token_ms:
        spans.append(Span("decode.steps", first, end - first))
    return tuple(spans)
