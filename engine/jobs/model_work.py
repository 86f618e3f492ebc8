"""Work with models as jobs, so that it never overlaps with a run, shows its progress and can be
cancelled: drafting, explaining, verifying; loading, unloading and hashing a model."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from msgspec import structs

from engine.analysis import drafting
from engine.analysis.drafting import DraftReport, UntriedSample
from engine.attribution import explained
from engine.attribution.explained import ExplainRequest, ExplainWatcher, Explanation
from engine.errors import BadInput, Cancelled, ModelUnavailable, StageScopeError
from engine.jobs.queue import Job
from engine.models import checkpoint_files, registry, variants
from engine.models.checkpoint import ModelEntry
from engine.models.checkpoint_files import Step
from engine.pipeline.drafts import LOOKUP, DraftRequest, SampleTrial
from engine.quoting import count, cut, shown
from engine.storage import explanations
from engine.storage.explanations import Cost
from engine.storage.result_rows import ResultRow
from engine.verify import certificates, report
from engine.verify.report import Report
from engine.verify.verdict import Verdict, VerifyRequest, VerifyWatcher

WRONG = ("failed", "skipped")  # outcomes of a verification that are not a proof
Action = Literal["load", "unload", "hash"]


@dataclass(eq=False, kw_only=True)
class DraftJob(Job):
    """Drafts all samples of a request, and watches the trials.  Brief jobs (a Compare) run between
    two samples, but not within one, because its pairs are timed."""

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


@dataclass(eq=False, kw_only=True)
class ExplainJob(Job, ExplainWatcher):
    """Explains the words of one answer; it is also the watcher of the explanation.  It keeps the
    figures and the map, not the pictures, so that many explanations fit into memory."""

    request: ExplainRequest
    kept: tuple[Path, ResultRow] | None = None  # a run and its answer: the explanation joins them
    found: Explanation | None = None
    map: bytes = b""  # a PNG, at the end
    title = "The explanation"
    progress: tuple[int, int] = (0, 0)  # encodings

    def planned(self, cost: Cost) -> None:
        self.progress = (self.progress[0], cost.encodings)
        self.tell(f"{cut(self.request.run.model)}: {cost.sentence}")

    def done(self, encodings: int, of: int) -> None:
        self.progress = (encodings, of)
        self.tell(f"{cut(self.request.run.model)}: {encodings:,} of {of:,} inputs")

    def run(self) -> None:
        from engine.attribution import explain, occlusion

        self.state = "loading"
        run = self.request.run
        entry = registry.entry(run.model)
        if reason := registry.cannot_run(entry, run.sample):
            raise BadInput(reason)
        self.tell(f"{cut(run.model)}: loading the model ...")
        adapter = registry.load(entry, run.how.decode.max_new_tokens)
        self.state = "running"
        if self.kept is not None:
            explain.refuse(adapter)
            ids = explain.answer_ids(adapter, run, self)
            explained.refuse_other(ids, self.kept[1].token_ids, run)
            self.request = replace(self.request, token_ids=ids)
        found = explain.explain(adapter, self.request, self)
        if self.kept is not None:
            folder, row = self.kept
            explained.keep(folder, found, row.repeat)
            self.tell(f"Kept in {shown(folder / explanations.EXPLANATIONS)}.")
            if problem := explanations.problem(folder):
                self.tell(problem)
        self.map = occlusion.heat_map(found)
        self.found = structs.replace(found, pictures=())


@dataclass(eq=False, kw_only=True)
class VerifyJob(Job, VerifyWatcher):
    request: VerifyRequest
    dataset: str
    certificate: dict[str, Any] | None = None
    title = "The verification"
    unkept: str = ""  # why the certificate was not saved
    step: tuple[str, str, str] = ("", "", "")  # model, sample, check
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def report(self) -> Report:
        """What the certificate says once there is one."""
        if self.certificate is not None:
            return report.of_certificate(self.certificate)
        return report.running(self.request, tuple(self.verdicts), self.step, self.ended)

    @property
    def progress(self) -> tuple[int, int]:
        return self.report.progress

    def doing(self, model: str, sample: str, what: str) -> None:
        if (model, sample) != self.step[:2]:
            self.tell(f"{model}: {f'sample {sample}' if sample else what} ...")
        self.step = (model, sample, what)

    def found(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)
        if verdict.outcome in WRONG:
            self.tell(f"{verdict.model}: {verdict.title}: {verdict.sentence}")

    def run(self) -> None:
        from engine.verify.runner import verify

        self.state = "running"
        try:
            models = verify(self.request, self)
        except Cancelled as error:  # raised by one of its runs
            raise Cancelled("The verification was cancelled.") from error
        if self.cancelled():
            raise Cancelled("The verification was cancelled.")
        self.certificate = certificates.make(self.request, models, self.dataset)
        try:
            certificates.store(self.certificate)
        except BadInput as error:
            self.unkept = str(error)
            self.tell(self.unkept)


@dataclass(eq=False, kw_only=True)
class ModelJob(Job):
    """Loads, unloads or hashes a model.  `freed`: bytes of the weights of an unloaded one;
    `progress`: hashed bytes, or loaded weights."""

    brief: ClassVar[bool] = True

    entry: ModelEntry
    action: Action = "load"
    freed: int = 0
    step: Step | None = None
    progress: tuple[int, int] = (0, 0)

    @property
    def title(self) -> str:
        return self.entry.name

    def run(self) -> None:
        self.state = "loading" if self.action == "load" else "running"
        with checkpoint_files.reported_to(self._follow):
            if self.action == "load":
                if reason := registry.unavailable(self.entry):  # before hashing a large checkpoint
                    raise ModelUnavailable(reason)
                registry.load(self.entry)
            elif self.action == "unload":
                size = registry.resident_bytes().get(variants.loaded(self.entry), 0)
                self.freed = size if registry.unload(self.entry) else 0
            else:
                registry.full_digest(self.entry)

    def _follow(self, step: Step, done: int, total: int) -> None:
        self.step, self.progress = step, (done, total)
        if self.cancelled():
            raise Cancelled(f"The {self.action} of {self.title} was cancelled; nothing is kept.")
