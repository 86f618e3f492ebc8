"""A verification as a job: it continues when the page changes, and can be cancelled."""

from dataclasses import dataclass, field
from typing import Any

from engine.errors import BadInput, Cancelled
from engine.jobs.queue import Job
from engine.verify import certificates, report
from engine.verify.report import Report
from engine.verify.verdict import Verdict, VerifyRequest, VerifyWatcher

WRONG = ("failed", "skipped")  # outcomes that are not a proof


@dataclass(eq=False, kw_only=True)
class VerifyJob(Job, VerifyWatcher):
    """Runs all checks of a request; it is also the verifier's watcher."""

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
