"""What was proved about a model and what was not, so that a stranger understands it.

Boundary: a report in, sentences out; no streamlit.  Each claim is made only where every check
behind it passed on every sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.verify.limits import ALWAYS
from engine.verify.verdict import CHECKS, MAY_STAY_OPEN, ONCE
from ui.verify.report_view import CheckRow, Model, Report
from ui.widgets.text import count

State = Literal["verified", "refused", "unfinished", "checking", "waiting"]
WORDS: dict[State, str] = {
    "verified": "✓ Verified",
    "refused": "✕ Not verified",
    "unfinished": "– Not finished",
    "checking": "… Checking",
    "waiting": "Waiting",
}
# checks -> what they prove when all of them passed on all samples
CLAIMS: dict[tuple[str, ...], str] = {
    ("answer", "equal_hooked", "equal_decoupled", "equal_features", "greedy", "counted"): (
        "Hooked, decoupled or from given features, it gives the tokens of its own generate()."
    ),
    ("pixels",): "Its pixels are its image processor's, as near as their setting says.",
    ("equal_sampled", "settings"): (
        "It does so when tokens are sampled, for temperature, top_p, seed and minimum length."
    ),
    ("ends",): "Its answers end where its own generate() ends them.",
    ("long",): "Answers longer than 256 tokens have equal tokens.",
    ("equal_batch",): "An answer of a batch equals the sample's own answer.",
    ("comparison",): "The comparison finds differences that are planted, up to the last token.",
    ("rows",): "Projector, adaptor and pooling compute what float64 computes from the weights.",
    ("frames",): "It is shown the frames that the rule names.",
    ("work", "probe", "synchronised"): (
        "Each stage times its own work: files are read in stage 1, pixels made in stage 2, and the "
        "clock waits for the device."
    ),
    ("figures",): "TTFT, TPOT, totals and token times follow from the raw spans.",
    ("equal_prefix",): "A second question that goes on from a kept prefix gets the same answer.",
    ("encoded_once",): "Each picture is encoded once, and not at all when its features are cached.",
    ("clock", "accounted"): "The stages' times cover the whole run, and two clocks agree.",
    ("stage3",): "Stage 3 timed by the probe takes as long as stage 3 alone.",
    ("observer",): "The probe does not slow generate() down.",
    ("left_as_found",): "The model is left as it was found.",
    ("keys", "damage"): "The feature cache tells inputs apart and notices a damaged entry.",
    ("sight",): "What it is shown changes what it says.",
}


NAMED = 5  # checks that were not done, by name


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
    """What the rows found so far say about one model."""
    state = _state(report, model)
    proved = tuple(_proved(report, model.name)) if report.passed_by(model.name) else ()
    open_ends = [*_bad(report, model.name), *_missing(report, model.name, state)]
    limits = () if state in ("waiting", "checking") else (*_limits(report, model), *ALWAYS)
    return Summary(state, _headline(report, model, state), proved, (*open_ends, *limits))


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
        tied = f", {count(ties, 'numeric tie')} apart" if ties else ""
        on = count(len(report.taken(model.name)), "sample")
        return f"Verified: decoupled, its inference is its own generate() on {on}{tied}."
    if state == "refused":
        return f"Not verified: {_why_refused(report, model.name, failed)}"
    if state == "unfinished":
        return "The verification did not end, so that no certificate proves anything."
    if state == "waiting":
        return "Its turn has not come."
    return f"{count(len(rows), 'check')} done, none failed so far."


def _why_refused(report: Report, name: str, failed: int) -> str:
    rows = report.of(name)
    if failed:
        return f"{failed} of {count(len(rows), 'check')} failed."
    if left := _not_done(report, name):
        return f"{len(left)} of {count(len(CHECKS), 'check')} were not done on every sample."
    return "a check stayed open that must not."


def _proved(report: Report, name: str) -> Iterator[str]:
    for checks, claim in CLAIMS.items():
        if all(_all_passed(report, name, check) for check in checks):
            yield claim


def _all_passed(report: Report, name: str, check: str) -> bool:
    rows = [row for row in report.of(name, check) if row.outcome != "skipped"]
    good = all(row.outcome in ("passed", "tie") for row in rows)
    return good and check not in _not_done(report, name)


def _not_done(report: Report, name: str) -> list[str]:
    """Checks that have no finding on some sample."""
    found = {(row.check, row.sample) for row in report.of(name)}
    return [
        check
        for check in CHECKS
        if any((check, sample) not in found for sample in _where(report, name, check))
    ]


def _where(report: Report, name: str, check: str) -> Sequence[str]:
    return ("",) if check in ONCE else report.taken(name)


def _bad(report: Report, name: str) -> Iterator[str]:
    """Failed checks, then open ones, then samples it cannot take, with their sentences."""
    for outcome, word in (("failed", "Failed"), ("unresolved", "Open"), ("skipped", "Cannot run")):
        for check in report.checks:
            rows = [row for row in report.of(name, check) if row.outcome == outcome]
            if rows:
                yield f"{word}: {_in_one(report, rows)}"


def _in_one(report: Report, rows: Sequence[CheckRow]) -> str:
    """One check's bad rows: on how many samples, and what the first one says."""
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
    """How far the proof reaches: the samples, the machine, and what the certificate covers."""
    number = len(report.taken(model.name))
    these = "this sample" if number == 1 else f"these {number} samples"
    place = f" on {model.place}" if model.place else ""
    machine = f"{model.dtype}{place}" if model.dtype else "this dtype and machine"
    reach = f"Nothing is proved beyond {these}, this question and {machine}."
    return (reach, model.coverage) if model.coverage else (reach,)


def may_stay_open(check: str) -> bool:
    """Whether a model can be verified although this check found no answer."""
    return check in MAY_STAY_OPEN
