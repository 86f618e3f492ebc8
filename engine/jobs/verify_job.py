"""A verification as a job: it goes on when pages change, and can be cancelled.

Boundary: the verifier's watcher on one side, a frozen view on the other; keeps the certificate.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import BadInput, Cancelled
from engine.jobs.queue import Job, State
from engine.verify import certificates
from engine.verify.verdict import Verdict, VerifyRequest, VerifyWatcher


@dataclass(frozen=True)
class VerifyView:
    """A verification as it stands now."""

    id: str
    state: State
    position: int
    request: VerifyRequest
    doing: tuple[str, str, str]  # model, sample, what; empty texts while nothing is done
    verdicts: tuple[Verdict, ...]
    error: str
    certificate: Mapping[str, Any] | None
    unkept: str
    elapsed_s: float  # at work; waiting for the device is no part of it

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")


@dataclass(eq=False, kw_only=True)
class VerifyJob(Job, VerifyWatcher):
    """All checks of a request.  Also the verifier's watcher."""

    request: VerifyRequest
    dataset: str
    certificate: dict[str, Any] | None = None
    unkept: str = ""  # why the certificate is not on disk
    misuse: bool = False  # a model was named that models.toml does not hold
    _doing: tuple[str, str, str] = ("", "", "")
    _verdicts: list[Verdict] = field(default_factory=list)
    _stopped: float | None = None

    @property
    def elapsed_s(self) -> float:
        if self._started is None:
            return 0.0
        return (self._stopped or time.monotonic()) - self._started

    def work(self) -> None:
        super().work()
        self._stopped = time.monotonic()

    @property
    def title(self) -> str:
        return "The verification"

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return tuple(self._verdicts)

    def doing(self, model: str, sample: str, what: str) -> None:
        self._doing = (model, sample, what)

    def found(self, verdict: Verdict) -> None:
        self._verdicts.append(verdict)

    def run(self) -> None:
        from engine.verify.runner import verify

        self.state = "running"
        try:
            examined = verify(self.request, self)
        except Cancelled as error:  # whichever run of it was stopped
            raise Cancelled("The verification was cancelled.") from error
        self.misuse = not all(one.known for one in examined)
        if self.cancelled():
            raise Cancelled("The verification was cancelled.")
        models = [
            certificates.model_entry(
                one.name,
                one.info.digest if one.info else "",
                one.info.precision if one.info else "",
                one.environment,
                one.verdicts,
                one.backend,
            )
            for one in examined
        ]
        self.certificate = certificates.make(self.request, models, self.verdicts, self.dataset)
        try:
            certificates.store(self.certificate)
        except BadInput as error:
            self.unkept = str(error)
        self.state = "done"

    def view(self) -> VerifyView:
        """How the verification stands."""
        self.look()
        return VerifyView(
            id=self.id,
            state=self.state,
            position=self.position,
            request=self.request,
            doing=self._doing,
            verdicts=self.verdicts,
            error=self.error,
            certificate=self.certificate,
            unkept=self.unkept,
            elapsed_s=self.elapsed_s,
        )
