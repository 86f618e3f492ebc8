"""Drafting as a job: some samples, one target, one draft, with progress and Cancel.

Boundary: the queue on one side, draft_trial.py on the other, a frozen view for pages.  Between two
samples it lets brief jobs (a Compare) pass, never within one: its pairs are timed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine import drafts
from engine.drafts import LOOKUP, DraftReport, DraftRequest, Tried
from engine.errors import BadInput, Cancelled
from engine.jobs import ENDED, Job, State
from engine.models import registry

if TYPE_CHECKING:
    from engine.models.base import Adapter


@dataclass(frozen=True)
class DraftView:
    """A drafting as it stands now: rounds done of all samples, and the report at its end."""

    id: str
    state: State
    position: int
    request: DraftRequest
    done: int
    total: int
    error: str
    report: DraftReport | None

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(eq=False, kw_only=True)
class DraftJob(Job):
    """All samples of a request.  Also the trial's watcher."""

    request: DraftRequest
    report: DraftReport | None = None
    _done: int = 0
    _tried: list[Tried] = field(default_factory=list)

    @property
    def title(self) -> str:
        return "The drafting"

    def round(self, done: int, of: int) -> None:
        self._done = len(self._tried) * of + done

    def run(self) -> None:
        """Loads both models and tries each sample; the report is of those that were tried."""
        self.state = "loading"
        target = self._load(self.request.target)
        draft = None if self.request.draft == LOOKUP else self._load(self.request.draft)
        self.state = "running"
        from engine.draft_trial import CANCELLED, try_sample

        for sample in self.request.samples:
            if self.cancelled():
                raise Cancelled(CANCELLED)
            self._tried.append(try_sample(sample, self.request, target, draft, self))
            self.give_way()
        self.report = drafts.report(self.request, self._tried)
        self.state = "done"

    def _load(self, name: str) -> Adapter:
        entry = registry.entry(name)
        for sample in self.request.samples:
            if reason := registry.cannot_run(entry, sample):
                raise BadInput(reason)
        return registry.load(entry, self.request.decode.max_new_tokens)

    def view(self) -> DraftView:
        """How it stands; looking keeps it alive."""
        self.look()
        return DraftView(
            id=self.id,
            state=self.state,
            position=self.position,
            request=self.request,
            done=self._done,
            total=len(self.request.samples) * (self.request.runs + 1),
            error=self.error,
            report=self.report,
        )
