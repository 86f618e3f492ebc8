"""Do the times hold: the clock, the stages' sum, stage 3 measured twice, the observer's cost.

Boundary: judges RunResults of repeated warm runs and pairs of bare generate() calls.  Milliseconds;
what is compared is alternated, so that a machine that slows down slows both.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch

from engine.figures import stats
from engine.timing import VisionProbe, synchronizer
from engine.types import STAGES, RunResult, Span
from engine.verify.verdict import Finding, Outcome
from engine.verify.ways import Answer, Subject

UNACCOUNTED = 0.02  # of a run
STAGE3 = 0.15  # of stage 3 measured alone
OBSERVER = 0.01  # of generate()
CLOCKS_MS, CLOCKS_SHARE = 5.0, 0.05  # two clocks around one run; the rest is the text and the row
ENOUGH = 5  # pairs, below which an interval says nothing
FEW = 3  # pairs, below which not even a factor of two does
MANY = 20  # pairs, below which nobody is accused of one per cent
PAIR_TOKENS = 2  # vision and prefill, where the probe works: its share is never larger


@dataclass(frozen=True)
class Timed:
    """One run of the pipeline, and how long another clock saw it last."""

    kind: str
    result: RunResult
    outer_ms: float


def repeat(subject: Subject, runs: int) -> Iterator[list[Timed]]:
    """runs + 1 rounds of the three kinds of run; the first round warms up and stays apart."""
    config = subject.brief
    requests = {
        "computed": subject.run_request(config, "refresh"),
        "cached": subject.run_request(config, "use"),
        "hooked": subject.run_request(config, "off", "hooked"),
    }
    for _ in range(runs + 1):
        found = []
        for kind, request in requests.items():
            start = time.monotonic()
            result = subject.run(request)
            found.append(Timed(kind, result, (time.monotonic() - start) * 1000))
        yield found


def token_times(answer: Answer) -> Iterator[str]:
    """A token is reported when the head has computed it (the median token, that is)."""
    if answer.result is None or len(answer.head_ms) != len(answer.ids):
        return
    said = answer.result.generation.token_ms
    apart = [abs(t - seen) for t, seen in zip(said, answer.head_ms, strict=False)]
    if stats.spread(apart).median > max(CLOCKS_MS, CLOCKS_SHARE * answer.head_ms[-1]):
        yield f"{answer.way}: tokens are reported at other times than they were computed"


def clock(rounds: Sequence[Sequence[Timed]], more: Sequence[str] = ()) -> Finding:
    """No span and no token goes back in time, and a second clock agrees; `more` faults of it."""
    runs = [timed for round_ in rounds for timed in round_]
    steps = [fault for timed in runs for fault in _backwards(timed.result)]
    faults = [*more, *steps, *_clocks_apart(runs)]
    monotonic = time.get_clock_info("perf_counter").monotonic
    if not monotonic:
        faults.append("this system's performance counter can be set back")
    evidence = {"runs": len(runs), "faults": faults[:10], "monotonic": monotonic}
    if faults:
        sentence = f"{len(faults)} faults in {len(runs)} runs; the first: {faults[0]}."
        return Finding("failed", sentence, len(faults), 0, "faults", evidence)
    sentence = f"In {len(runs)} runs time only went forward, and a second clock agrees."
    return Finding("passed", sentence, 0, 0, "faults", evidence)


def _backwards(result: RunResult) -> Iterator[str]:
    spans = [span for span in result.spans if span.name in STAGES]
    for span in result.spans:
        if span.ms < 0:
            yield f"{span.name} lasts {span.ms:.3f} ms"
        if not -0.001 <= span.start_ms <= span.start_ms + span.ms <= result.total_ms + 0.001:
            yield f"{span.name} is not within the run"
    for before, after in pairwise(spans):
        if after.start_ms < before.start_ms + before.ms - 0.001:
            yield f"{after.name} starts before {before.name} ends"
    times = result.generation.token_ms
    if any(b < a for a, b in pairwise(times)):
        yield "a token came before the one in front of it"


def _clocks_apart(runs: Sequence[Timed]) -> Iterator[str]:
    """A run cannot outlast its frame; and in the closest run the frame is hardly longer.

    Only the closest one counts, because a busy machine may stop any run between two looks at the
    clocks.
    """
    gaps = {timed.outer_ms - timed.result.total_ms: timed for timed in runs}
    shortest = gaps[min(gaps)]
    bound = max(CLOCKS_MS, CLOCKS_SHARE * shortest.outer_ms)
    if not -CLOCKS_MS / 10 <= min(gaps) <= bound:
        yield (
            f"a run of {shortest.result.total_ms:.1f} ms took {shortest.outer_ms:.1f} ms by "
            "another clock"
        )


def accounted(rounds: Sequence[Sequence[Timed]]) -> Finding:
    """The median share of a run that its stages do not cover, in the worst kind of run."""
    warm = rounds[1:]
    shares: dict[str, float] = {}
    spreads: dict[str, Any] = {}
    for index, first in enumerate(rounds[0]):
        results = [round_[index].result for round_ in warm]
        share = stats.spread([abs(r.unaccounted_ms) / r.total_ms for r in results])
        shares[first.kind] = share.median
        spreads[first.kind] = _spreads(results) | {"first_run_ms": _stages(first.result)}
    worst = max(shares, key=lambda kind: shares[kind])
    sentence = (
        f"{shares[worst]:.2%} of a run is not covered by its stages (median of the warm {worst} "
        f"runs, the worst of three kinds, n = {len(warm)})."
    )
    evidence = {"shares": shares, "kinds": spreads, "n": len(warm)}
    outcome: Outcome = "passed" if shares[worst] <= UNACCOUNTED else "failed"
    if outcome == "failed" and len(warm) < ENOUGH:
        outcome = "unresolved"
    if wrong := _misquoted(rounds):
        outcome, sentence = "failed", wrong
    return Finding(outcome, sentence, shares[worst], UNACCOUNTED, "of a run", evidence)


def _misquoted(rounds: Sequence[Sequence[Timed]]) -> str:
    """What a cached stage says that it took must be what it took when it was computed."""
    for round_ in rounds:
        took, said = _vision(round_, "computed").ms, _vision(round_, "cached").original_ms
        if said is None or abs(said - took) > 1e-6:
            return f"A cached stage 3 says that it took {said} ms; it took {took} ms."
    return ""


def _stages(result: RunResult) -> dict[str, float]:
    found = {span.name: span.ms for span in result.spans if span.name in STAGES}
    return found | {"total": result.total_ms, "unaccounted": result.unaccounted_ms}


def _spreads(results: Sequence[RunResult]) -> dict[str, Any]:
    columns = [_stages(result) for result in results]
    names = columns[0]
    return {
        name: vars(stats.spread([column[name] for column in columns]))
        | {"values": [column[name] for column in columns]}
        for name in names
    }


def stage3(rounds: Sequence[Sequence[Timed]]) -> Finding:
    """The probe's time over that of the encoder alone, paired by round."""
    warm = rounds[1:]
    alone = [_vision(round_, "computed").ms for round_ in warm]
    probed = [_vision(round_, "hooked").ms for round_ in warm]
    ratios = [p / a for p, a in zip(probed, alone, strict=True)]
    interval = stats.bootstrap(ratios)
    outcome = _within(interval)
    said = f"; not resolved with n = {interval.n}" if outcome == "unresolved" else ""
    sentence = (
        f"The probe sees {interval.median:.3f} times what stage 3 takes alone "
        f"({_range(interval)}{said})."
    )
    evidence = {"alone_ms": alone, "probe_ms": probed, **vars(interval)}
    return Finding(outcome, sentence, interval.median - 1, STAGE3, "of stage 3", evidence)


def _range(interval: stats.Interval) -> str:
    words = "95 % interval" if interval.n >= ENOUGH else "between"
    return f"{words} {interval.low:.3f} to {interval.high:.3f}"


def _within(interval: stats.Interval) -> Outcome:
    """Whether a ratio is 1, up to STAGE3: a handful of pairs decides nothing."""
    low, high = interval.low - 1, interval.high - 1
    if interval.n < ENOUGH:
        far = interval.high < 0.5 or interval.low > 2
        return "failed" if far and interval.n >= FEW else "unresolved"
    if low >= -STAGE3 and high <= STAGE3:
        return "passed"
    return "failed" if low > STAGE3 or high < -STAGE3 else "unresolved"


def _vision(round_: Sequence[Timed], kind: str) -> Span:
    result = next(timed.result for timed in round_ if timed.kind == kind)
    span = result.span("vision")
    assert span is not None  # both kinds of run encode
    return span


@torch.inference_mode()
def pairs(subject: Subject, number: int, budget_s: float) -> list[tuple[float, float]]:
    """(without, with the probe) in ms: plain generate() of a few tokens, in alternating order.

    At most `number` pairs, fewer when the budget is spent, but five at least.
    """
    found: list[tuple[float, float]] = []
    end = time.monotonic() + budget_s
    while len(found) < number and (len(found) < ENOUGH or time.monotonic() < end):
        first = _generate_ms(subject, probed=len(found) % 2 == 1)
        second = _generate_ms(subject, probed=len(found) % 2 == 0)
        found.append((first, second) if len(found) % 2 == 0 else (second, first))
    return found


def _generate_ms(subject: Subject, probed: bool) -> float:
    adapter = subject.adapter
    config = replace(subject.greedy, max_new_tokens=min(PAIR_TOKENS, subject.greedy.max_new_tokens))
    options, sync = subject.options(config), synchronizer(adapter.device)
    sync()
    start = time.perf_counter()
    if probed:
        with VisionProbe(adapter.vision_modules(), adapter.device):
            adapter.generate(subject.prepared, **options)
    else:
        adapter.generate(subject.prepared, **options)
    sync()
    return (time.perf_counter() - start) * 1000


def observer(found: Sequence[tuple[float, float]]) -> Finding:
    """What the probe adds to generate(), by the interval of the paired ratios."""
    interval = stats.bootstrap([probed / bare for bare, probed in found])
    added = f"{interval.median - 1:+.2%} (95 % interval {interval.low - 1:+.2%} to "
    added += f"{interval.high - 1:+.2%}, {interval.n} pairs)"
    evidence = {"pairs_ms": [list(pair) for pair in found], **vars(interval)}
    outcome: Outcome
    if interval.low - 1 > OBSERVER and interval.n >= MANY:
        outcome, sentence = "failed", f"The probe adds {added} to generate()."
    elif interval.n < MANY or interval.width > OBSERVER or interval.high - 1 > OBSERVER:
        outcome = "unresolved"
        sentence = f"Not resolved with {interval.n} pairs: the probe adds {added}."
    else:
        outcome, sentence = "passed", f"The probe adds {added} to generate()."
    return Finding(outcome, sentence, interval.median - 1, OBSERVER, "of generate()", evidence)
