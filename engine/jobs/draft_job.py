"""Drafting as a job: some samples, one target, one draft, with progress and Cancel.

Boundary: the queue on one side, draft_trial.py on the other, a frozen view for pages.  Between two
samples it lets brief jobs (a Compare) pass, never within one: its pairs are timed.  A sample that
cannot be asked costs itself alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import BadInput, Cancelled, StageScopeError
from engine.jobs.queue import ENDED, Job, State
from engine.models import registry
from engine.pipeline import draft_results
from engine.pipeline.draft_results import (
    LOOKUP,
    DraftReport,
    DraftRequest,
    DraftWatcher,
    Lost,
    Tried,
)
from engine.types import Sample

if TYPE_CHECKING:
    from engine.models.adapter import Adapter
    from engine.models.checkpoint import ModelEntry


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
class DraftJob(Job, DraftWatcher):
    """All samples of a request.  Also the trial's watcher."""

    request: DraftRequest
    report: DraftReport | None = None
    _done: int = 0
    _tried: list[Tried] = field(default_factory=list)
    _lost: list[Lost] = field(default_factory=list)

    @property
    def title(self) -> str:
        return "The drafting"

    def round(self, done: int, of: int) -> None:
        self._done = self.asked * of + done

    @property
    def asked(self) -> int:
        """How many samples have been tried or lost."""
        return len(self._tried) + len(self._lost)

    def run(self) -> None:
        """Loads both models and tries each sample; the report is of those that were tried.

        What made the first sample unusable is the job's failure if none could be asked.
        """
        self.state = "loading"
        draft = self.request.draft
        names = [self.request.target, *([] if draft == LOOKUP else [draft])]
        entries = [registry.entry(name) for name in names]
        reasons = {sample.id: _cannot(entries, sample) for sample in self.request.samples}
        if all(reasons.values()):
            raise BadInput(next(iter(reasons.values())))
        models = self._load(entries)
        self.state = "running"
        failure = self._try_all(*models, reasons)
        if failure is not None and not self._tried:
            raise failure
        self.report = draft_results.report(self.request, self._tried, self._lost)
        self.state = "done"

    def _load(self, entries: Sequence[ModelEntry]) -> tuple[Adapter, Adapter | None]:
        from engine.models.vocabulary import refuse_other

        most = self.request.decode.max_new_tokens
        target, *others = [registry.load(entry, most) for entry in entries]
        for draft in others:
            refuse_other(draft, target)
        return target, others[0] if others else None

    def _try_all(
        self, target: Adapter, draft: Adapter | None, reasons: Mapping[str, str]
    ) -> StageScopeError | None:
        """The first failure of a sample; a failure is the sample's own and costs no other."""
        from engine.pipeline.draft_trial import CANCELLED, try_sample

        first = None
        for sample in self.request.samples:
            if self.cancelled():
                raise Cancelled(CANCELLED)
            try:
                if reason := reasons[sample.id]:
                    raise BadInput(reason)
                self._tried.append(try_sample(sample, self.request, target, draft, self))
            except Cancelled:
                raise
            except StageScopeError as error:
                first = first or error
                self._lost.append(Lost(sample.id, str(error)))
            self.give_way()
        return first

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


def _cannot(entries: Sequence[ModelEntry], sample: Sample) -> str:
    """Why one of these models cannot answer this sample, or nothing."""
    return next((why for entry in entries if (why := registry.cannot_run(entry, sample))), "")
