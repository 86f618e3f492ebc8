"""Checks the times: the clock, the sum of the stages, stage 3 measured twice, figures recomputed.

Results of repeated warm runs are judged, in milliseconds.  Compared runs alternate, so that a
slower machine affects both.  A run's zero point is read on both clocks at the same moment, so a
pause between two readings does not shift the times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from engine.analysis import statistics
from engine.machine.clocks import ThreadWait, second_s, since
from engine.machine.load import MachineLoad, together
from engine.storage.result_rows import ResultRow
from engine.storage.schemas import Outcome
from engine.types import STAGES, RunResult, Span
from engine.verify.answer_paths import RecordedAnswer, Subject
from engine.verify.verdict import BEYOND, CheckFinding, judged

DRIFT = 0.001  # of a run: the system may adjust clocks
ROUNDING_MS = 0.05
NEAR_MS, EDGE_MS = 1e-6, 0.001  # equal figures; edges of spans
TOKEN_MS, TOKEN_SHARE = 1.0, 0.25  # the share is of the median time between two tokens


class Fault(NamedTuple):
    """What is wrong with a time; `sure` if a busy machine cannot explain it."""

    text: str
    sure: bool = True


def uncertainty_ms(result: RunResult) -> float:
    """The uncertainty of times in a run on the second clock, in ms."""
    widths = sum(moment.width_s for moment in result.clocks or ())
    resolution = time.get_clock_info("monotonic").resolution
    return 1000 * (widths + resolution) + ROUNDING_MS + DRIFT * result.total_ms


def clocks_differ(result: RunResult) -> Iterator[Fault]:
    """A fault if the run's length on the second clock differs from its total time."""
    if result.clocks is None:
        return
    began, ended = result.clocks
    second = (ended.second_s - began.second_s) * 1000
    if abs(second - result.total_ms) > uncertainty_ms(result):
        yield Fault(
            f"a run of {result.total_ms:.1f} ms took {second:.1f} ms by another clock, read at "
            "the same moments"
        )


def token_faults(answer: RecordedAnswer) -> Iterator[Fault]:
    """Faults if a token is not reported soon after the head computed it and before the next one.

    Each token is compared with its own computation.  A single late token may be due to a pause.  It
    is a sure fault if most tokens are reported after the next one was computed, or if one is
    reported before it was computed.
    """
    result = answer.result
    if result is None or not answer.ids or len(answer.head_ms) != len(answer.ids):
        return
    way, reported, seen = answer.way, np.array(result.generation.token_ms), np.array(answer.head_ms)
    if len(reported) != len(seen):
        yield Fault(f"{way}: {len(reported)} token times are reported for {len(seen)} tokens")
        return
    lag, gaps, slack = reported - seen, np.diff(seen), uncertainty_ms(result)
    if (lag < -slack).any():
        yield Fault(f"{way}: a token is reported before it was computed")
    bound, middle = TOKEN_MS, float(np.median(lag))
    bound = max(bound, TOKEN_SHARE * float(np.median(gaps))) if len(gaps) else bound
    if middle > bound + slack:
        passed = float(np.mean(lag[:-1] > gaps + slack)) if len(gaps) else 0.0
        sure = passed > 0.5 and "mps" not in result.environment.get("device", "")
        text = f"{way}: tokens are reported {middle:.1f} ms (median) after they were computed"
        yield Fault(text, sure)


# A share of what is measured, and ms that readings and calls take on a fast processor or in a small
# model: only what exceeds both is a fault.
UNACCOUNTED, UNACCOUNTED_MS = 0.02, 1.0  # of a run
STAGE3, STAGE3_MS = 0.15, 0.5  # of stage 3 measured alone
CLOCKS_SHARE, CLOCKS_MS = 0.05, 20.0  # two clocks around one run; the difference is text and row
CLEARLY = 2.0  # times a bound: without waits for a core, this is a fault under any load
ENOUGH = 5  # pairs: all five exceed a bound by chance in 1 of 32 cases
FEW = 3  # pairs needed to judge even a factor of two


class TimedRun(NamedTuple):
    """One run of the pipeline, and its length on a second clock."""

    kind: str
    result: RunResult
    outer_ms: float
    waited_ms: float | None = None  # the thread's wait for a core in that time


def repeat(subject: Subject, runs: int) -> Iterator[list[TimedRun]]:
    """runs + 1 rounds of the three kinds of run; the first round is the warm-up."""
    config = subject.brief
    requests = {
        "computed": subject.run_request(config, "refresh"),
        "cached": subject.run_request(config, "use"),
        "hooked": subject.run_request(config, "off", "hooked"),
    }
    if "decoupled" not in subject.ways:
        requests = {"hooked": requests["hooked"]}
    wait = ThreadWait()
    for _ in range(runs + 1):
        found = []
        for kind, request in requests.items():
            waited, start = wait.ms(), second_s()
            result = subject.run(request)
            outer = (second_s() - start) * 1000
            found.append(TimedRun(kind, result, outer, since(waited, wait.ms())))
        yield found
    wait.close()


def load_of(rounds: Sequence[Sequence[TimedRun]]) -> MachineLoad | None:
    """The machine's load during all these runs; None if it is unknown for one."""
    loads = [timed.result.machine_load for round_ in rounds for timed in round_]
    known = [load for load in loads if load is not None]
    return together(known) if len(known) == len(loads) else None


def clock(rounds: Sequence[Sequence[TimedRun]], more: Sequence[Fault] = ()) -> CheckFinding:
    """Spans and tokens must never go back in time, and a second clock must agree."""
    runs = [timed for round_ in rounds for timed in round_]
    faults = [*more, *(fault for timed in runs for fault in clocks_differ(timed.result))]
    faults += [Fault(text) for timed in runs for text in _backwards(timed.result)]
    faults += _clocks_apart(runs)
    monotonic = time.get_clock_info("perf_counter").monotonic
    if not monotonic:
        faults.append(Fault("this system's performance counter can be set back"))
    texts = [fault.text for fault in faults]
    evidence = {"runs": len(runs), "faults": texts[:10], "monotonic": monotonic}
    evidence |= {BEYOND: any(fault.sure for fault in faults)} if faults else {}
    worst = [f"{len(faults)} faults in {len(runs)} runs; the first: {text}." for text in texts]
    good = f"In {len(runs)} runs time only goes forward, and a second clock agrees."
    return judged(worst, good, "faults", evidence)


def _backwards(result: RunResult) -> Iterator[str]:
    spans = [span for span in result.spans if span.name in STAGES]
    for span in result.spans:
        if span.ms < 0:
            yield f"{span.name} lasts {span.ms:.3f} ms"
        if not -EDGE_MS <= span.start_ms <= span.start_ms + span.ms <= result.total_ms + EDGE_MS:
            yield f"{span.name} is not within the run"
    for before, after in pairwise(spans):
        if after.start_ms < before.start_ms + before.ms - EDGE_MS:
            yield f"{after.name} starts before {before.name} ends"
    if any(b < a for a, b in pairwise(result.generation.token_ms)):
        yield "a token comes before the previous one"
    if _outside_decode(result):
        yield "a token is not within stage 4"


def _outside_decode(result: RunResult) -> bool:
    decode, times = result.span("decode"), result.generation.token_ms
    if decode is None or not times:
        return False
    start, end = decode.start_ms - EDGE_MS, decode.start_ms + decode.ms + EDGE_MS
    return not start <= min(times) <= max(times) <= end


def _clocks_apart(runs: Sequence[TimedRun]) -> Iterator[Fault]:
    """A run must not be longer than the second clock's time around it, nor much shorter.

    Only the run with the smallest difference counts, because a busy machine may pause any run
    between two clock readings.  It is a fault under any load if the thread's waits outside the run
    do not explain it.
    """
    gaps = {timed.outer_ms - timed.result.total_ms: timed for timed in runs}
    shortest = gaps[min(gaps)]
    bound = max(CLOCKS_MS, CLOCKS_SHARE * shortest.outer_ms)
    if not -uncertainty_ms(shortest.result) <= min(gaps) <= bound:
        text = (
            f"a run of {shortest.result.total_ms:.1f} ms took {shortest.outer_ms:.1f} ms by "
            "another clock"
        )
        waited, load = shortest.waited_ms, shortest.result.machine_load
        outside = since(load.waited_ms if load else None, waited)
        net = min(gaps) - max(0.0, outside or 0.0)
        yield Fault(text, min(gaps) < 0 or (outside is not None and net > CLEARLY * bound))


def accounted(rounds: Sequence[Sequence[TimedRun]]) -> CheckFinding:
    """Checks the median share of a run outside its stages, for the worst kind of run."""
    shares: dict[str, float] = {}
    most: dict[str, float] = {}
    spreads: dict[str, Any] = {}
    clear, n = False, len(rounds) - 1
    for index, timed in enumerate(rounds[0]):
        warm = [round_[index].result for round_ in rounds[1:]]
        share = statistics.spread([_share(r, abs(r.unaccounted_ms)) for r in warm])
        shares[timed.kind] = share.median
        most[timed.kind] = statistics.spread([_allowed(r) for r in warm]).median
        spreads[timed.kind] = _spreads(warm) | {"first_run_ms": _stages(timed.result)}
        clear = clear or _clearly_open(warm)
    worst = max(shares, key=lambda kind: shares[kind] / most[kind])
    sentence = (
        f"{shares[worst]:.2%} of a run is not covered by its stages (median of the warm {worst} "
        f"runs, the worst of three kinds, n = {n})."
    )
    evidence = {"shares": shares, "kinds": spreads, "n": n, BEYOND: clear}
    outcome: Outcome = "failed" if n >= ENOUGH else "unresolved"
    outcome = "passed" if shares[worst] <= most[worst] else outcome
    if wrong := _misquoted(rounds):
        outcome, sentence = "failed", wrong
        evidence |= {BEYOND: True}
    return CheckFinding(outcome, sentence, shares[worst], most[worst], "of a run", evidence)


def _clearly_open(results: Sequence[RunResult]) -> bool:
    """Whether stages have a gap or an overlap that waits for a core do not explain."""
    excess = []  # multiples of what is allowed
    for result in results:
        load, stages = result.machine_load, [s for s in result.spans if s.name in STAGES]
        inside = [span.waited_ms for span in stages]
        if load is None or load.waited_ms is None or None in inside:
            return False
        between = max(0.0, load.waited_ms - sum(filter(None, inside)))
        gap = result.unaccounted_ms
        share = _share(result, max(0.0, gap - between) if gap > 0 else -gap)
        excess.append(share / _allowed(result))
    return bool(excess) and statistics.spread(excess).median > CLEARLY


def _share(result: RunResult, ms: float) -> float:
    """A share of the run; 1 if a faulty clock gives the run no time."""
    return ms / result.total_ms if result.total_ms > 0 else 1.0


def _allowed(result: RunResult) -> float:
    return max(UNACCOUNTED, _share(result, UNACCOUNTED_MS))


def _misquoted(rounds: Sequence[Sequence[TimedRun]]) -> str:
    """A fault if a cached stage reports another original time than was measured."""
    for round_ in rounds:
        if len(round_) == 1:  # hooked runs only, which cache nothing
            continue
        took, reported = _vision(round_, "computed").ms, _vision(round_, "cached").original_ms
        if reported is None or abs(reported - took) > 1e-6:
            return f"A cached stage 3 reports an original time of {reported} ms; it took {took} ms."
    return ""


def _stages(result: RunResult) -> dict[str, float]:
    found = {span.name: span.ms for span in result.spans if span.name in STAGES}
    return found | {"total": result.total_ms, "unaccounted": result.unaccounted_ms}


def _spreads(results: Sequence[RunResult]) -> dict[str, Any]:
    columns = [_stages(result) for result in results]
    names = columns[0]
    return {
        name: vars(statistics.spread([column[name] for column in columns]))
        | {"values": [column[name] for column in columns]}
        for name in names
    }


def stage3(rounds: Sequence[Sequence[TimedRun]]) -> CheckFinding:
    """Compares the probe's time with that of the encoder alone, paired by round."""
    warm = rounds[1:]
    alone = [_vision(round_, "computed").ms for round_ in warm]
    probed = [_vision(round_, "hooked").ms for round_ in warm]
    ratios = [p / a for p, a in zip(probed, alone, strict=True)]
    interval = statistics.median_interval(ratios, ratios=True)
    bound = max(STAGE3, STAGE3_MS / statistics.spread(alone).median)
    outcome = _within(interval, bound)
    more = f"; not resolved with n = {interval.n}, more warm runs may decide"
    open_note = more if outcome == "unresolved" else ""
    low, high = f"{interval.low:.3f}", f"{interval.high:.3f}"
    reach = f"between {low} and {high}"
    if interval.n >= statistics.MIN_CLUSTERS:
        reach = f"95 % interval {low} to {high}"
    sentence = (
        f"The probe measures {interval.median:.3f} times the time that stage 3 takes alone "
        f"({reach}{open_note})."
    )
    net = [_net_ratio(round_) for round_ in warm]
    ratios = [ratio for ratio in net if ratio is not None]
    clear = len(ratios) == len(warm) >= FEW and _far(
        statistics.median_interval(ratios, ratios=True), bound
    )
    outcome = "failed" if clear else outcome
    evidence = {"alone_ms": alone, "probe_ms": probed, BEYOND: clear, **vars(interval)}
    cpu = [[_vision(round_, kind).cpu_ms for round_ in warm] for kind in ("computed", "hooked")]
    evidence |= {"alone_cpu_ms": cpu[0], "probe_cpu_ms": cpu[1]}
    return CheckFinding(outcome, sentence, interval.median - 1, bound, "of stage 3", evidence)


def _net_ratio(round_: Sequence[TimedRun]) -> float | None:
    """The probe's time over that of the encoder alone, minus the thread's waits for a core."""
    probed, alone = (_vision(round_, kind) for kind in ("hooked", "computed"))
    if probed.waited_ms is None or alone.waited_ms is None or alone.ms <= alone.waited_ms:
        return None
    return max(probed.ms - probed.waited_ms, 0.0) / (alone.ms - alone.waited_ms)


def _far(interval: statistics.Interval, bound: float) -> bool:
    """Whether a ratio is clearly outside a factor of two, and outside the bound."""
    return interval.high < min(0.5, 1 - bound) or interval.low > max(2, 1 + bound)


def _within(interval: statistics.Interval, bound: float) -> Outcome:
    """Whether a ratio is 1 within the bound; open with too few pairs."""
    if interval.n < ENOUGH:
        return "failed" if _far(interval, bound) and interval.n >= FEW else "unresolved"
    low, high = interval.low - 1, interval.high - 1
    if low >= -bound and high <= bound:
        return "passed"
    return "failed" if low > bound or high < -bound else "unresolved"


def _vision(round_: Sequence[TimedRun], kind: str) -> Span:
    result = next(timed.result for timed in round_ if timed.kind == kind)
    span = result.span("vision")
    assert span is not None  # both kinds of run encode
    return span


def figures(rounds: Sequence[Sequence[TimedRun]]) -> CheckFinding:
    """Checks token times of all runs, and the figures of the last round's results and rows."""
    results = [timed.result for round_ in rounds for timed in round_]
    faults = [fault for result in results for fault in _tokens(result)]
    for timed in rounds[-1]:
        expected = recomputed(timed.result)
        faults += _different(timed.kind, "result", timed.result, expected)
        faults += _different(timed.kind, "row", ResultRow.from_result(timed.result), expected)
    evidence = {"runs": len(results), "faults": faults[:10]}
    good = f"TTFT, TPOT, totals and token times of {len(results)} runs follow from the raw spans."
    return judged(faults, good, "faults", evidence)


def recomputed(result: RunResult) -> dict[str, float | None]:
    """Every derived figure by its definition, from spans, token times and the run's end."""
    times, count = result.generation.token_ms, len(result.generation.token_ids)
    stages = [span for span in result.spans if span.name in STAGES]
    first = times[0] if times else None
    after = None if first is None or count < 2 else (result.total_ms - first) / (count - 1)
    cold: float | None = result.total_ms
    for span in stages:
        if span.source == "cached" and cold is not None:
            cold = None if span.original_ms is None else cold - span.ms + span.original_ms
    return {
        "ttft_ms": first,
        "tpot_ms": after,
        "tokens_per_s": None if not after else 1000 / after,
        "unaccounted_ms": result.total_ms - math.fsum(span.ms for span in stages),
        "uncached_total_ms": cold,
        "new_tokens": count,
    }


def _different(
    kind: str, what: str, found: RunResult | ResultRow, expected: Mapping[str, float | None]
) -> Iterator[str]:
    for name, value in expected.items():
        stated = getattr(found, name)
        if stated is None or value is None:
            if stated is value:
                continue
            yield f"{kind}: {name} of the {what} is {stated}, but the spans give {value}."
        elif abs(stated - value) > NEAR_MS * max(1.0, abs(value)):
            yield f"{kind}: {name} of the {what} is {stated:.6g}, but the spans give {value:.6g}."


def _tokens(result: RunResult) -> Iterator[str]:
    """Faults unless each token has one time, in ascending order and within the decode stage."""
    times, count = result.generation.token_ms, len(result.generation.token_ids)
    if len(times) != count:
        yield f"{count} tokens have {len(times)} times."
    if any(after <= before for before, after in pairwise(times)):
        yield "Two tokens have the same time, or a token's time is before that of the previous one."
    if result.span("decode") is None or not times:
        return
    if _outside_decode(result):
        yield "A token's time is not within the decode stage."
    prefill = result.span("decode.prefill")
    if prefill is None or abs(prefill.start_ms + prefill.ms - times[0]) > EDGE_MS:
        yield "The prefill does not end at the first token."
