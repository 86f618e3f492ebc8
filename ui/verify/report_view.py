"""A verification in one form for drawing: running, ended, or read from a certificate.

Boundary: views and certificates in, frozen rows out; no streamlit.  A certificate is an untrusted
file: a wrong form raises BadInput, and evidence is passed on unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from engine.errors import BadInput
from engine.jobs.verify_job import VerifyView
from engine.verify import certificates
from engine.verify.verdict import CHECKS, MAY_STAY_OPEN, ONCE, verified

WORST_FIRST = ("failed", "unresolved", "skipped", "refused", "tie", "passed")
OTHER_VERSION = "A check from another version of StageScope."
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME_CHARS = 14


@dataclass(frozen=True)
class CheckRow:
    """One finding.  sample is "" if it is about all samples."""

    check: str
    title: str
    model: str
    sample: str
    outcome: str
    sentence: str
    figure: float | None
    bound: float | None
    unit: str
    evidence: Mapping[str, Any]


@dataclass(frozen=True)
class Model:
    """A verified model.  verified is None while it is not decided."""

    name: str
    verified: bool | None
    dtype: str = ""
    place: str = ""
    coverage: str = ""  # what the certificate covers, in one sentence


@dataclass(frozen=True)
class Report:
    """The state of one verification."""

    models: tuple[Model, ...]
    samples: tuple[str, ...]
    prompt: str
    max_new_tokens: int
    runs: int
    rows: tuple[CheckRow, ...]
    ended: bool
    doing: tuple[str, str, str] = ("", "", "")
    certificate: Mapping[str, Any] | None = field(default=None, compare=False)

    @cached_property
    def checks(self) -> tuple[str, ...]:
        """All checks in their fixed order; those of another version last."""
        return tuple(dict.fromkeys((*CHECKS, *(row.check for row in self.rows))))

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str], tuple[CheckRow, ...]]:
        cells: dict[tuple[str, str, str], list[CheckRow]] = {}
        for row in self.rows:
            cells.setdefault((row.model, row.check, row.sample), []).append(row)
        order = WORST_FIRST.index
        return {
            key: tuple(sorted(rows, key=lambda row: order(row.outcome)))
            for key, rows in cells.items()
        }

    def found(self, model: str, check: str, sample: str) -> tuple[CheckRow, ...]:
        """The rows of one check on one sample, the worst first; usually one or none."""
        return self._cells.get((model, check, sample), ())

    def of(self, model: str, check: str | None = None) -> list[CheckRow]:
        """A model's rows, of one check or of all."""
        return [row for row in self.rows if row.model == model and check in (None, row.check)]

    def taken(self, model: str) -> tuple[str, ...]:
        """The samples that a model can run on."""
        left = {row.sample for row in self.of(model) if row.outcome == "skipped"}
        return tuple(sample for sample in self.samples if sample not in left)

    def title(self, check: str) -> tuple[str, str]:
        """A check's title and question."""
        if check in CHECKS:
            return CHECKS[check]
        return next(row.title for row in self.rows if row.check == check), OTHER_VERSION

    @property
    def progress(self) -> tuple[int, int]:
        """(checks done, checks in total); a failed model's remaining checks do not count."""
        each = len(CHECKS) - len(ONCE)
        done = total = 0
        for model in self.models:
            rows = self.of(model.name)
            done += len(rows)
            full = each * len(self.taken(model.name)) + len(ONCE)
            total += len(rows) if self.passed_by(model.name) else full
        return done, max(total, done)

    def passed_by(self, name: str) -> bool:
        """Whether all checks of a model are over."""
        names = [model.name for model in self.models]
        current = names.index(self.doing[0]) if self.doing[0] in names else -1
        return self.ended or names.index(name) < current


def of_view(view: VerifyView) -> Report:
    """The state of a job, or its certificate once it has one."""
    if view.certificate is not None:
        return of_certificate(view.certificate)
    request = view.request
    return Report(
        models=tuple(Model(name, _so_far(view, name)) for name in request.models),
        samples=tuple(sample.id for sample in request.samples),
        prompt=request.prompt,
        max_new_tokens=request.max_new_tokens,
        runs=request.runs,
        rows=tuple(_row(certificates.as_row(verdict)) for verdict in view.verdicts),
        ended=view.ended,
        doing=view.doing,
    )


def _so_far(view: VerifyView, name: str) -> bool | None:
    """A model's verdict during the job; a job that ended without certificate verifies none."""
    names = view.request.models
    if view.ended:
        return False
    current = names.index(view.doing[0]) if view.doing[0] in names else 0
    return verified(view.verdicts, name) if names.index(name) < current else None


def of_certificate(certificate: Mapping[str, Any]) -> Report:
    """The report in a certificate, or BadInput if it is not in the form of one."""
    try:
        request = certificate["request"]
        _ = (request["dataset"], certificate["engine"], certificate["libraries"].items())
        rows = tuple(_row(row) for row in certificate["verdicts"])
        return Report(
            models=tuple(_model(model, rows) for model in certificate["models"]),
            samples=tuple(str(sample) for sample in request["samples"]),
            prompt=str(request["prompt"]),
            max_new_tokens=int(request["max_new_tokens"]),
            runs=int(request["runs"]),
            rows=rows,
            ended=True,
            certificate=certificate,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"This certificate is damaged or incomplete ({error}): verify again to make a new one."
        ) from error


def _row(found: Mapping[str, Any]) -> CheckRow:
    if found["outcome"] not in WORST_FIRST or not isinstance(found["evidence"], Mapping):
        raise ValueError(f"outcome {found['outcome']!r}")
    return CheckRow(
        **{name: str(found[name]) for name in ("check", "title", "model", "sample", "outcome")},
        sentence=str(found["sentence"]),
        figure=_number(found["figure"]),
        bound=_number(found["bound"]),
        unit=str(found["unit"]),
        evidence=found["evidence"],
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _model(found: Mapping[str, Any], rows: Sequence[CheckRow]) -> Model:
    """A certificate that calls a model verified in spite of a failed row is not believed."""
    name, environment = str(found["name"]), found["environment"]
    _ = (found["digest"], environment.items())
    spoilt = any(row.model == name and _spoils(row) for row in rows)
    words = [str(environment[key]) for key in ("device", "hardware") if key in environment]
    place = f"{words[0]} ({words[1]})" if len(words) == 2 else ""
    good = found["verified"] is True and not spoilt
    covered = certificates.coverage_in(found).sentence()
    return Model(name, good, str(found["dtype"]), place, covered)


def _spoils(row: CheckRow) -> bool:
    may_stay = row.outcome == "unresolved" and row.check in MAY_STAY_OPEN
    return row.outcome in ("failed", "unresolved") and not may_stay


def short_names(samples: Sequence[str]) -> dict[str, str]:
    """id -> a short name for a narrow column, numbered where two are equal."""
    found: dict[str, str] = {}
    for sample in samples:
        name = sample[:8] if _UUID.fullmatch(sample) else sample
        if len(name) > _NAME_CHARS:
            name = f"{name[: _NAME_CHARS - 1]}…"
        if name in found.values():
            name = f"{len(found) + 1}: {name}"
        found[sample] = name
    return found


def made(certificate: Mapping[str, Any]) -> str:
    """The certificate's date and minute, in UTC."""
    text = str(certificate.get("made", ""))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text[:40]
    return f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"
