"""Drafting as a job: several samples, one target and one draft, with progress and Cancel.  The job
lets brief jobs (a Compare) run between two samples, but not within one, because its pairs are
timed.  A sample that fails does not stop the others."""

from dataclasses import dataclass, field

from engine.analysis import drafting
from engine.analysis.drafting import DraftReport, UntriedSample
from engine.errors import BadInput, Cancelled, StageScopeError
from engine.jobs.queue import Job
from engine.models import registry
from engine.pipeline.drafts import LOOKUP, DraftRequest, SampleTrial
from engine.quoting import count


@dataclass(eq=False, kw_only=True)
class DraftJob(Job):
    """Drafts all samples of a request; it is also the watcher of the trials."""

    request: DraftRequest
    report: DraftReport | None = None
    title = "The drafting"
    done: int = 0  # rounds, over all samples
    _trials: list[SampleTrial] = field(default_factory=list)
    _failed: list[UntriedSample] = field(default_factory=list)

    def round(self, done: int, of: int) -> None:
        self.done = self.finished * of + done
        if done == 0:
            sample, pairs = self.request.samples[self.finished], of - 1  # the first warms up
            self.tell(f"{self.request.target}: sample {sample.id}, {count(pairs, 'pair')} ...")

    @property
    def progress(self) -> tuple[int, int]:
        return self.done, len(self.request.samples) * (self.request.runs + 1)

    @property
    def finished(self) -> int:
        return len(self._trials) + len(self._failed)

    def run(self) -> None:
        """A failure does not stop the other samples; the job fails with the first if all do."""
        from engine.models.adapter import refuse_other_vocabulary
        from engine.pipeline.draft_loop import CANCELLED, try_sample

        self.state = "loading"
        drafters = [] if self.request.draft == LOOKUP else [self.request.draft]
        entries = [registry.entry(name) for name in (self.request.target, *drafters)]
        reasons = {
            sample.id: next(filter(None, (registry.cannot_run(one, sample) for one in entries)), "")
            for sample in self.request.samples
        }
        if all(reasons.values()):
            raise BadInput(next(iter(reasons.values())))
        most = self.request.decode.max_new_tokens
        target, *drafts = adapters = [registry.load(entry, most) for entry in entries]
        for adapter in adapters:
            if why := adapter.refuses.get("draft"):
                raise BadInput(f"{adapter.info.name}: {why}")
        for adapter in drafts:
            refuse_other_vocabulary(adapter, target)
        draft = drafts[0] if drafts else None
        self.state = "running"
        first: StageScopeError | None = None
        for sample in self.request.samples:
            if self.cancelled():
                raise Cancelled(CANCELLED)
            try:
                if reason := reasons[sample.id]:
                    raise BadInput(reason)
                self._trials.append(try_sample(sample, self.request, target, draft, self))
            except Cancelled:
                raise
            except StageScopeError as error:
                first = first or error
                self._failed.append(UntriedSample(sample.id, str(error)))
            self.give_way()
        if first is not None and not self._trials:
            raise first
        self.report = drafting.report(self.request, self._trials, self._failed)
