"""A verification in one form, running or from a certificate, and what it proves of each model.  A
claim is made only if all its checks passed on every sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from engine.models import registry
from engine.quoting import count, joined
from engine.storage.result_rows import PASSED
from engine.verify import certificates
from engine.verify.verdict import (
    CHECKS,
    EVERY,
    OUTCOMES,
    SERVED,
    Check,
    Verdict,
    VerifyRequest,
    checks_of,
    taken,
    undone,
    verified,
)

WORST_FIRST = tuple(OUTCOMES)
OTHER_VERSION = "A check from another version of StageScope."
State = Literal["verified", "refused", "unfinished", "checking", "waiting"]
WORDS: dict[State, str] = {"verified": "✓ Verified", "refused": "✕ Not verified",
    "unfinished": "– Not finished", "checking": "… Checking", "waiting": "Queued"}  # fmt: skip
# checks -> what they prove if all of them passed on all samples
CLAIMS: dict[tuple[str, ...], str] = {
    ("answer", "equal_hooked", "equal_decoupled", "equal_features", "greedy", "counted"): (
        "Hooked, decoupled and from given features, its tokens equal those of its own generate()."
    ),
    ("pixels",): "Its pixels equal its image processor's.",
    ("sampled",): (
        "This also holds for sampled tokens, with temperature, top_p, seed and minimum length."
    ),
    ("ends",): "Its answers end at the same token as those of its own generate().",
    ("long",): "Answers longer than 256 tokens also have equal tokens.",
    ("shapes",): "Answers to wide and to tall pictures also have equal tokens.",
    ("equal_batch",): "A sample's answer in a batch equals its answer alone.",
    ("rows",): "Projector, adaptor and pooling match a float64 computation from the weights.",
    ("probe",): "The probe times every layer of stage 3.",
    ("encoded_once",): "Each picture is encoded once, and not at all if its features are cached.",
    ("clock", "accounted"): "The stages' times cover the whole run, and two clocks agree.",
    ("stage3",): "Stage 3 timed by the probe takes as long as stage 3 alone.",
    ("observer",): "The probe does not slow generate() down.",
    ("left_as_found",): "The verification leaves the model unchanged.",
    ("sight",): "Its answer depends on its pictures.",
}
SERVED_CLAIMS: dict[tuple[str, ...], str] = {
    ("reached", "same"): "It read the requests, and gave the answers of the checkpoint here.",
    ("saw",): "Other pictures change its answers as they do here.",
    ("arrivals",): "Its text comes piece by piece, at the times that are shown.",
    ("repeats",): "It gives the same answer to the same request, and computes it each time.",
    ("steady",): "Its times to the first text vary little.",
}


class Model(NamedTuple):
    """A verified model.  verified is None while it is not decided."""

    name: str
    verified: bool | None
    dtype: str = ""
    place: str = ""
    coverage: str = ""  # what the certificate covers, in one sentence
    served: bool = False


@dataclass(frozen=True)
class Report:
    """The state of one verification; `doing`: the current model, sample and step."""

    models: tuple[Model, ...]
    samples: tuple[str, ...]
    runs: int
    rows: tuple[Verdict, ...]
    ended: bool
    doing: tuple[str, str, str] = ("", "", "")
    certificate: Mapping[str, Any] | None = field(default=None, compare=False)

    @cached_property
    def checks(self) -> tuple[str, ...]:
        """All checks in their fixed order; those of another version last."""
        tables = [self.table(model) for model in sorted(self.models, key=lambda one: one.served)]
        known = (check for table in tables for check in table)
        return tuple(dict.fromkeys((*known, *(row.check for row in self.rows))))

    def table(self, model: Model) -> dict[str, Check]:
        return SERVED if model.served else CHECKS

    def found(self, model: str, check: str, sample: str) -> Sequence[Verdict]:
        """The rows of one check on one sample, the worst first; usually one or none."""
        rows = [row for row in self.of(model) if (row.check, row.sample) == (check, sample)]
        return sorted(rows, key=lambda row: WORST_FIRST.index(row.outcome))

    def of(self, model: str) -> list[Verdict]:
        return [row for row in self.rows if row.model == model]

    def title(self, check: str) -> tuple[str, str]:
        if check in EVERY:
            return EVERY[check].title, EVERY[check].question
        return next(row.title for row in self.rows if row.check == check), OTHER_VERSION

    @property
    def progress(self) -> tuple[int, int]:
        """(checks done, checks in total); a failed model's remaining checks do not count."""
        done = total = 0
        for model in self.models:
            rows = self.of(model.name)
            done += len(rows)
            able = len(taken(rows, self.samples))
            full = sum(1 if check.once else able for check in self.table(model).values())
            total += len(rows) if self.passed_by(model.name) else full
        return done, max(total, done)

    def passed_by(self, name: str) -> bool:
        names = [model.name for model in self.models]
        current = names.index(self.doing[0]) if self.doing[0] in names else -1
        return self.ended or names.index(name) < current


def running(
    request: VerifyRequest, verdicts: tuple[Verdict, ...], doing: tuple[str, str, str], ended: bool
) -> Report:
    """A verification without a certificate; one that has ended verifies no model."""
    names, models = request.models, []
    current = names.index(doing[0]) if doing[0] in names else 0
    for place, name in enumerate(names):
        proved = verified(verdicts, name) if place < current else None
        entry = registry.find(name)
        served = entry is not None and entry.server is not None
        models.append(Model(name, False if ended else proved, served=served))
    samples = tuple(sample.id for sample in request.samples)
    return Report(tuple(models), samples, request.runs, verdicts, ended, doing)


def of_certificate(certificate: Mapping[str, Any]) -> Report:
    models = []
    for one in certificate["models"]:
        where = one["environment"]
        known = {"device", "hardware"} <= where.keys()
        place = f"{where['device']} ({where['hardware']})" if known else where.get("server", "")
        covered, served = certificates.covers(one).sentence(), "server" in where
        models.append(Model(one["name"], one["verified"], one["dtype"], place, covered, served))
    request, rows = certificate["request"], certificates.verdicts_in(certificate)
    samples = tuple(request["samples"])
    return Report(tuple(models), samples, request["runs"], rows, True, certificate=certificate)


class Summary(NamedTuple):
    state: State
    headline: str
    proved: tuple[str, ...]


def summary(report: Report, model: Model) -> Summary:
    rows, over = report.of(model.name), report.passed_by(model.name)
    left = undone(rows, report.samples)
    open_ = {row.check for row in rows if row.outcome not in (*PASSED, "skipped")} | set(left)
    claims = SERVED_CLAIMS if model.served else CLAIMS
    proved = [claim for checks, claim in claims.items() if over and not open_ & set(checks)]
    failed = [row for row in rows if row.outcome == "failed"]
    # The checks by their worst outcome on any sample: how many passed, which did not.
    ordered = sorted(rows, key=lambda row: WORST_FIRST.index(row.outcome), reverse=True)
    worst = {row.check: row.outcome for row in ordered}
    outcomes = list(worst.values())
    parts = [f"{sum(outcome in PASSED for outcome in outcomes)} passed"]
    for outcome, word in {"failed": "failed", "unresolved": "open"}.items():
        titles = [report.title(check)[0] for check, one in worst.items() if one == outcome]
        parts += [f"{len(titles)} {word}: {joined(titles)}"] if titles else []
    others = {
        "not offered": outcomes.count("refused"),
        "cannot run": outcomes.count("skipped"),
        "not done": len(checks_of(rows)) - len(worst),
    }
    parts += [f"{number} {word}" for word, number in others.items() if number]
    counted = f"{'; '.join(parts)}."
    if model.served and rows and over:
        # Why its answers differ, otherwise the first fault, otherwise that they do not differ.
        failed.sort(key=lambda row: row.check != "why")
        same = [row for row in rows if row.check == "same"]
        counted = [*failed, *same, *rows][0].sentence
    state: State
    if report.ended and report.certificate is None and not failed:
        state, said = "unfinished", "The verification did not finish, so there is no certificate."
    elif model.verified:
        state, said = "verified", counted
    elif failed or model.verified is False:
        state, said = "refused", counted
    elif report.doing[0] == model.name:
        state, said = "checking", f"{count(len(rows), 'check')} done, none failed so far."
    else:
        state, said = "waiting", "Not started yet."
    return Summary(state, said, tuple(proved))


def shared(each: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The sentences of (label, sentences) of each model, once; with labels if it is not all."""
    who: dict[str, list[str]] = {}
    for label, sentences in each:
        for sentence in sentences:
            who.setdefault(sentence, []).append(label)
    return [
        sentence if len(labels) == len(each) else f"{joined(labels)}: {sentence}"
        for sentence, labels in who.items()
    ]


def passed_by_all(report: Report) -> list[str]:
    """The checks that need no look, once all are over: each model passed them on each sample."""
    if not report.ended:
        return []
    done = {check: [row for row in report.rows if row.check == check] for check in report.checks}
    return [
        check
        for check, rows in done.items()
        if all(row.outcome in PASSED for row in rows)
        and {row.model for row in rows}
        == {one.name for one in report.models if one.served == (check in SERVED)}
    ]
