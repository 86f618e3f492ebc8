"""What was proved about a model and what was not, in sentences for any reader.

Boundary: a report in, sentences out; no streamlit.  A claim is made only if all its checks passed
on every sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.verify.limits import ALWAYS
from engine.verify.verdict import CHECKS, ONCE
from ui.verify.report_view import CheckRow, Model, Report
from ui.widgets.text import count

State = Literal["verified", "refused", "unfinished", "checking", "waiting"]
WORDS: dict[State, str] = {
    "verified": "✓ Verified",
    "refused": "✕ Not verified",
    "unfinished": "– Not finished",
    "checking": "… Checking",
    "waiting": "Queued",
}
# checks -> what they prove if all of them passed on all samples
CLAIMS: dict[tuple[str, ...], str] = {
    ("answer", "equal_hooked", "equal_decoupled", "equal_features", "greedy", "counted"): (
        "Hooked, decoupled and from given features, its tokens equal those of its own generate()."
    ),
    ("pixels",): "Its pixels equal its image processor's, within the pixel setting's tolerance.",
    ("equal_sampled", "settings"): (
        "This also holds for sampled tokens, with temperature, top_p, seed and minimum length."
    ),
    ("ends",): "Its answers end at the same token as those of its own generate().",
    ("long",): "Answers longer than 256 tokens also have equal tokens.",
    ("shapes",): "Answers to wide and to tall pictures also have equal tokens.",
    ("equal_batch",): "A sample's answer in a batch equals its answer alone.",
    ("comparison",): "The comparison detects planted differences, up to the last token.",
    ("rows",): "Projector, adaptor and pooling match a float64 computation from the weights.",
    ("frames",): "It gets the frames that the frame rule selects.",
    ("work", "probe", "synchronised"): (
        "Each stage times its own work: files are read in stage 1, pixels made in stage 2, and the "
        "clock waits for the device."
    ),
    ("figures",): "TTFT, TPOT, totals and token times follow from the raw spans.",
    ("equal_prefix",): "A second question with a reused prompt prefix gets the same answer.",
    ("encoded_once",): "Each picture is encoded once, and not at all if its features are cached.",
    ("clock", "accounted"): "The stages' times cover the whole run, and two clocks agree.",
    ("stage3",): "Stage 3 timed by the probe takes as long as stage 3 alone.",
    ("observer",): "The probe does not slow generate() down.",
    ("left_as_found",): "The verification leaves the model unchanged.",
    ("keys", "damage"): "The feature cache distinguishes inputs and detects a damaged entry.",
    ("sight",): "Its answer depends on its pictures.",
}


NAMED = 5  # missing checks that are listed by name


@dataclass(frozen=True)
class Summary:
    """One model in sentences."""

    state: State
    headline: str
    proved: tuple[str, ...]
    not_proved: tuple[str, ...]

    @property
    def words(self) -> str:
        return WORDS[self.state]


def summary(report: Report, model: Model) -> Summary:
    """The summary of one model from its rows so far."""
    state = _state(report, model)
    proved = tuple(_proved(report, model.name)) if report.passed_by(model.name) else ()
    unproved = [*_bad(report, model.name), *_missing(report, model.name, state)]
    limits = () if state in ("waiting", "checking") else (*_limits(report, model), *ALWAYS)
    return Summary(state, _headline(report, model, state), proved, (*unproved, *limits))


def _state(report: Report, model: Model) -> State:
    failed = any(row.outcome == "failed" for row in report.of(model.name))
    if report.ended and report.certificate is None and not failed:
        return "unfinished"
    if model.verified is not None:
        return "verified" if model.verified else "refused"
    if failed:
        return "refused"
    return "checking" if report.doing[0] == model.name else "waiting"


def _headline(report: Report, model: Model, state: State) -> str:
    rows = report.of(model.name)
    ties = sum(row.outcome == "tie" for row in rows)
    failed = sum(row.outcome == "failed" for row in rows)
    if state == "verified":
        tied = f", except for {count(ties, 'numeric tie')}" if ties else ""
        on = count(len(report.taken(model.name)), "sample")
        return f"Verified: decoupled inference equals its own generate() on {on}{tied}."
    if state == "refused":
        return f"Not verified: {_why_refused(report, model.name, failed)}"
    if state == "unfinished":
        return "The verification did not finish, so there is no certificate."
    if state == "waiting":
        return "Not started yet."
    return f"{count(len(rows), 'check')} done, none failed so far."


def _why_refused(report: Report, name: str, failed: int) -> str:
    rows = report.of(name)
    if failed:
        return f"{failed} of {count(len(rows), 'check')} failed."
    if left := _not_done(report, name):
        return f"{len(left)} of {count(len(CHECKS), 'check')} were not done on every sample."
    return "a required check stayed open."


def _proved(report: Report, name: str) -> Iterator[str]:
    for checks, claim in CLAIMS.items():
        if all(_all_passed(report, name, check) for check in checks):
            yield claim


def _all_passed(report: Report, name: str, check: str) -> bool:
    rows = [row for row in report.of(name, check) if row.outcome != "skipped"]
    good = all(row.outcome in ("passed", "tie") for row in rows)
    return good and check not in _not_done(report, name)


def _not_done(report: Report, name: str) -> list[str]:
    """Checks without a finding on some sample."""
    found = {(row.check, row.sample) for row in report.of(name)}
    taken = report.taken(name)
    return [
        check
        for check in CHECKS
        if any((check, sample) not in found for sample in (("",) if check in ONCE else taken))
    ]


NAMED_OUTCOMES = (
    ("failed", "Failed"),
    ("unresolved", "Open"),
    ("skipped", "Cannot run"),
    ("refused", "Not offered"),
)


def _bad(report: Report, name: str) -> Iterator[str]:
    """Failed checks, open ones, samples it cannot run on, ways it refuses; with sentences."""
    for outcome, word in NAMED_OUTCOMES:
        for check in report.checks:
            rows = [row for row in report.of(name, check) if row.outcome == outcome]
            if rows:
                yield f"{word}: {_in_one(report, rows)}"


def _in_one(report: Report, rows: Sequence[CheckRow]) -> str:
    """One check's bad rows: on how many samples, and the first sentence."""
    first, of = rows[0], len(report.samples)
    where = f", on {len(rows)} of {of} samples" if first.sample and of > 1 else ""
    begin = "first: " if len(rows) > 1 else ""
    return f"{first.title}{where}. {begin.capitalize()}{first.sentence}"


def _missing(report: Report, name: str, state: State) -> Iterator[str]:
    if state in ("waiting", "checking") or not report.passed_by(name):
        return
    left = [CHECKS[check][0] for check in _not_done(report, name)]
    if len(left) > NAMED:
        yield f"{len(left)} checks were not done on every sample: see the table."
    elif left:
        yield f"Not done on every sample: {', '.join(left)}."


def _limits(report: Report, model: Model) -> tuple[str, ...]:
    """The limits of the proof: samples, machine, and what the certificate covers."""
    number = len(report.taken(model.name))
    these = "this sample" if number == 1 else f"these {number} samples"
    place = f" on {model.place}" if model.place else ""
    machine = f"{model.dtype}{place}" if model.dtype else "this dtype and machine"
    reach = f"Nothing is proved beyond {these}, this question and {machine}."
    return (reach, model.coverage) if model.coverage else (reach,)
