"""Checks the times: the clock, the sum of the stages, stage 3 measured twice, and the cost of the
probe.

Milliseconds.  Results of repeated warm runs are judged.  Compared runs alternate, so that a slower
machine affects both.  A run's zero point is read on both clocks at the same moment, so a pause
between two readings does not shift the times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from engine.analysis import statistics
from engine.machine.clocks import ThreadWait, second_s, since
from engine.machine.load import MachineLoad, Meter, together
from engine.storage.schemas import Outcome
from engine.timing import VisionProbe, synchronizer
from engine.types import STAGES, DecodeConfig, RunResult, Span
from engine.verify.answer_paths import RecordedAnswer, Subject
from engine.verify.verdict import BEYOND, CheckFinding, judged

DRIFT = 0.001  # of a run: the system may adjust clocks
ROUNDING_MS = 0.05
NEAR_MS, EDGE_MS = 1e-6, 0.001  # equal figures; edges of spans
TOKEN_MS, TOKEN_SHARE = 1.0, 0.25  # the share is of the median time between two tokens
# A share of what is measured, and ms that readings and calls take on a fast processor or in a small
# model: only what exceeds both is a fault.
UNACCOUNTED, UNACCOUNTED_MS = 0.02, 1.0  # of a run
STAGE3, STAGE3_MS = 0.15, 0.5  # of stage 3 measured alone
CLOCKS_SHARE, CLOCKS_MS = 0.05, 20.0  # two clocks around one run; the difference is text and row
OBSERVER, OBSERVER_MS = 0.01, 0.5  # of a whole answer's generate(), added by the probe
CLEARLY = 2.0  # times a bound: without waits for a core, this is a fault under any load
SLOW_PROBE, MANY = 0.25, 20  # of a short answer without waits, in so many pairs: the same
ENOUGH = 5  # pairs: all five exceed a bound by chance in 1 of 32 cases
FEW = 3  # pairs needed to judge even a factor of two
PAIR_TOKENS = 2  # of the short answers


class Fault(NamedTuple):
    """What is wrong with a time; `sure` if a busy machine cannot explain it."""

    text: str
    sure: bool = True


class TimedRun(NamedTuple):
    """One run of the pipeline, and its length on a second clock."""

    kind: str
    result: RunResult
    outer_ms: float
    waited_ms: float | None = None  # the thread's wait for a core in that time


Rounds = Sequence[Sequence[TimedRun]]


def repeat(subject: Subject, runs: int) -> Iterator[list[TimedRun]]:
    """runs + 1 rounds of the three kinds of run; the first round is the warm-up."""
    config = subject.brief
    requests = {"hooked": subject.run_request(config, "off", "hooked")}
    if "decoupled" in subject.ways:
        caches = {"computed": "refresh", "cached": "use"}
        requests = {
            kind: subject.run_request(config, cache) for kind, cache in caches.items()
        } | requests
    wait = ThreadWait()
    for _ in range(runs + 1):
        timed = []
        for kind, request in requests.items():
            waited, start = wait.ms(), second_s()
            result = subject.run(request)
            outer = (second_s() - start) * 1000
            timed.append(TimedRun(kind, result, outer, since(waited, wait.ms())))
        yield timed
    wait.close()


def load_of(rounds: Rounds) -> MachineLoad | None:
    """The machine's load during all these runs; None if it is unknown for one."""
    loads = [timed.result.machine_load for round_ in rounds for timed in round_]
    known = [load for load in loads if load is not None]
    return together(known) if len(known) == len(loads) else None


def uncertainty_ms(result: RunResult) -> float:
    """The uncertainty of times in a run on the second clock."""
    widths = sum(moment.width_s for moment in result.clocks or ())
    resolution = time.get_clock_info("monotonic").resolution
    return 1000 * (widths + resolution) + ROUNDING_MS + DRIFT * result.total_ms


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
    middle = float(np.median(lag))
    bound = max(TOKEN_MS, TOKEN_SHARE * float(np.median(gaps))) if len(gaps) else TOKEN_MS
    if middle > bound + slack:
        passed = float(np.mean(lag[:-1] > gaps + slack)) if len(gaps) else 0.0
        sure = passed > 0.5 and "mps" not in result.environment.get("device", "")
        text = f"{way}: tokens are reported {middle:.1f} ms (median) after they were computed"
        yield Fault(text, sure)


def clock(rounds: Rounds, more: Sequence[Fault] = ()) -> CheckFinding:
    """Spans must never go back in time, and a second clock must agree."""
    runs = [timed for round_ in rounds for timed in round_]
    faults = [*more, *(fault for timed in runs for fault in clocks_differ(timed.result))]
    for timed in runs:
        faults += map(Fault, (*_backwards(timed.result), *_tokens(timed.result)))
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


def clocks_differ(result: RunResult) -> Iterator[Fault]:
    """A fault if the run's length on the second clock differs from its total time."""
    if result.clocks is None:
        return
    began, ended = result.clocks
    second = (ended.second_s - began.second_s) * 1000
    if abs(second - result.total_ms) > uncertainty_ms(result):
        lengths = f"a run of {result.total_ms:.1f} ms took {second:.1f} ms"
        yield Fault(f"{lengths} by another clock, read at the same moments")


def _backwards(result: RunResult) -> Iterator[str]:
    for span in result.spans:
        if span.ms < 0:
            yield f"{span.name} lasts {span.ms:.3f} ms"
        if not -EDGE_MS <= span.start_ms <= span.start_ms + span.ms <= result.total_ms + EDGE_MS:
            yield f"{span.name} is not within the run"
    for before, after in pairwise(_stages(result)):
        if after.start_ms < before.start_ms + before.ms - EDGE_MS:
            yield f"{after.name} starts before {before.name} ends"


def _clocks_apart(runs: Sequence[TimedRun]) -> Iterator[Fault]:
    """A run must not be longer than the second clock's time around it, nor much shorter.

    Only the run with the smallest difference counts, because a busy machine may pause any run
    between two clock readings.  It is a fault under any load if the thread's waits outside the run
    do not explain it.
    """
    gap, timed = min(((t.outer_ms - t.result.total_ms, t) for t in runs), key=lambda pair: pair[0])
    bound, total = max(CLOCKS_MS, CLOCKS_SHARE * timed.outer_ms), timed.result.total_ms
    if not -uncertainty_ms(timed.result) <= gap <= bound:
        load = timed.result.machine_load
        outside = since(load.waited_ms if load else None, timed.waited_ms)
        sure = outside is not None and gap - max(0.0, outside) > CLEARLY * bound
        text = f"a run of {total:.1f} ms took {timed.outer_ms:.1f} ms by another clock"
        yield Fault(text, gap < 0 or sure)


def _stages(result: RunResult) -> list[Span]:
    return [span for span in result.spans if span.name in STAGES]


def accounted(rounds: Rounds) -> CheckFinding:
    """Checks the median share of a run outside its stages, for the worst kind of run."""
    shares, most, spreads = dict[str, float](), dict[str, float](), dict[str, Any]()
    clear, n = False, len(rounds) - 1
    for first, *again in zip(*rounds, strict=True):
        kind, warm = first.kind, [timed.result for timed in again]
        shares[kind] = statistics.spread([_share(r, abs(r.unaccounted_ms)) for r in warm]).median
        most[kind] = statistics.spread([_allowed(r) for r in warm]).median
        columns = [_columns(result) for result in warm]
        spreads[kind] = {"first_run_ms": _columns(first.result)}
        for name in columns[0]:
            values = [column[name] for column in columns]
            spreads[kind][name] = vars(statistics.spread(values)) | {"values": values}
        clear = clear or _clearly_open(warm)
    worst = max(shares, key=lambda kind: shares[kind] / most[kind])
    sentence = (
        f"{shares[worst]:.2%} of a run is not covered by its stages (median of the warm {worst} "
        f"runs, the worst of three kinds, n = {n})."
    )
    outcome: Outcome = "failed" if n >= ENOUGH else "unresolved"
    outcome = "passed" if shares[worst] <= most[worst] else outcome
    if wrong := _misquoted(rounds):
        outcome, sentence, clear = "failed", wrong, True
    evidence = {"shares": shares, "kinds": spreads, "n": n, BEYOND: clear}
    return CheckFinding(outcome, sentence, shares[worst], most[worst], "of a run", evidence)


def _columns(result: RunResult) -> dict[str, float]:
    stages = {span.name: span.ms for span in _stages(result)}
    return stages | {"total": result.total_ms, "unaccounted": result.unaccounted_ms}


def _clearly_open(results: Sequence[RunResult]) -> bool:
    """Whether stages have a gap or an overlap that waits for a core do not explain."""
    excess = []  # multiples of what is allowed
    for result in results:
        load, inside = result.machine_load, [span.waited_ms for span in _stages(result)]
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


def _misquoted(rounds: Rounds) -> str:
    """A fault if a cached stage reports another original time than was measured."""
    for round_ in rounds:
        if len(round_) == 1:  # hooked runs only, which cache nothing
            continue
        took, reported = _vision(round_, "computed").ms, _vision(round_, "cached").original_ms
        if reported is None or abs(reported - took) > 1e-6:
            return f"A cached stage 3 reports an original time of {reported} ms; it took {took} ms."
    return ""


def stage3(rounds: Rounds) -> CheckFinding:
    """Compares the probe's time with that of the encoder alone, paired by round."""
    pairs = [(_vision(round_, "computed"), _vision(round_, "hooked")) for round_ in rounds[1:]]
    alone, probed = ([span.ms for span in spans] for spans in zip(*pairs, strict=True))
    interval = statistics.median_interval(
        [b / a for a, b in zip(alone, probed, strict=True)], ratios=True
    )
    bound = max(STAGE3, STAGE3_MS / statistics.spread(alone).median)
    outcome = _within(interval, bound)
    open_note = f"; not resolved with n = {interval.n}, more warm runs may decide"
    low, high = f"{interval.low:.3f}", f"{interval.high:.3f}"
    several = interval.n >= statistics.MIN_CLUSTERS
    reach = f"95 % interval {low} to {high}" if several else f"between {low} and {high}"
    sentence = (
        f"The probe measures {interval.median:.3f} times the time that stage 3 takes alone "
        f"({reach}{open_note if outcome == 'unresolved' else ''})."
    )
    net = [ratio for pair in pairs if (ratio := _net_ratio(*pair)) is not None]
    clear = len(net) == len(pairs) >= FEW and _far(
        statistics.median_interval(net, ratios=True), bound
    )
    evidence = {"alone_ms": alone, "probe_ms": probed, BEYOND: clear, **vars(interval)}
    outcome = "failed" if clear else outcome
    return CheckFinding(outcome, sentence, interval.median - 1, bound, "of stage 3", evidence)


def _net_ratio(alone: Span, probed: Span) -> float | None:
    """The probe's time over that of the encoder alone, minus the thread's waits for a core."""
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
    span = next(timed.result for timed in round_ if timed.kind == kind).span("vision")
    assert span is not None  # every kind of run encodes or reads
    return span


def _tokens(result: RunResult) -> Iterator[str]:
    """Faults unless each token has one time, in ascending order and within the decode stage."""
    times, count = result.generation.token_ms, len(result.generation.token_ids)
    decode, prefill = result.span("decode"), result.span("decode.prefill")
    if len(times) != count:
        yield f"{count} tokens have {len(times)} times"
    if any(after <= before for before, after in pairwise(times)):
        yield "two tokens have the same time, or a token's time is before that of the previous one"
    if decode is None or not times:
        return
    start, end = decode.start_ms - EDGE_MS, decode.start_ms + decode.ms + EDGE_MS
    if not start <= min(times) <= max(times) <= end:
        yield "a token's time is not within the decode stage"
    if prefill is None or abs(prefill.start_ms + prefill.ms - times[0]) > EDGE_MS:
        yield "the prefill does not end at the first token"


@dataclass(frozen=True)
class Pairs:
    """Short answers (without, with the probe) in ms; `net_ms`: the same minus the thread's waits
    for a core, empty if those are unknown; `answers_ms`: whole answers without the probe.

    The probe works in stage 3 only, so a long answer pays what a short one pays, and in a short one
    it shows.
    """

    ms: tuple[tuple[float, float], ...] = ()
    net_ms: tuple[tuple[float, float], ...] = ()
    answers_ms: tuple[float, ...] = ()
    load: MachineLoad | None = None


@torch.inference_mode()
def pairs(subject: Subject, number: int, budget_s: float) -> Pairs:
    """Times plain generate() of the whole answer once, then of a few tokens without and with the
    probe, in alternating order.

    At most `number` pairs; fewer if the time budget is used up, but enough for an interval.
    """
    meter, wait = Meter(torch.get_num_threads()), ThreadWait()
    short = replace(subject.greedy, max_new_tokens=PAIR_TOKENS)
    answer_ms, _ = _generate_ms(subject, wait, subject.greedy, probed=False)
    timed: list[dict[bool, tuple[float, float]]] = []
    end, least = time.monotonic() + budget_s, statistics.MIN_CLUSTERS
    while len(timed) < number and (len(timed) < least or time.monotonic() < end):
        order = (False, True) if len(timed) % 2 == 0 else (True, False)
        timed.append({probed: _generate_ms(subject, wait, short, probed) for probed in order})
    known = wait.ms() is not None
    wait.close()
    ms, net = (tuple((pair[False][i], pair[True][i]) for pair in timed) for i in (0, 1))
    return Pairs(ms, net if known else (), (answer_ms,), meter.read())


def _generate_ms(
    subject: Subject, wait: ThreadWait, config: DecodeConfig, probed: bool
) -> tuple[float, float]:
    """(time, the same minus the thread's waits for a core, if they are known)."""
    adapter, options = subject.adapter, subject.options(config)
    modules, sync = adapter.vision_modules(), synchronizer(adapter.device)
    sync()
    waited, start = wait.ms(), time.perf_counter()
    with VisionProbe(modules, adapter.device) if probed else nullcontext():
        adapter.generate(subject.prepared, **options)
    sync()
    ms = (time.perf_counter() - start) * 1000
    return ms, max(ms - (since(waited, wait.ms()) or 0.0), 0.0)


def observer(timed: Pairs) -> CheckFinding:
    """The time that the probe adds to generate(), by the interval of the paired differences.

    The probe is too slow if this is more than OBSERVER_MS and more than OBSERVER of the median
    answer: the share of a short answer and the time on a slow processor are no faults.
    """
    added = statistics.median_interval([probed - bare for bare, probed in timed.ms])
    answer = statistics.spread(timed.answers_ms).median
    most = max(OBSERVER_MS, OBSERVER * answer)
    net = [probed - bare - max(most, SLOW_PROBE * bare) for bare, probed in timed.net_ms]
    clear = len(net) >= MANY and statistics.median_interval(net).low > 0
    few = added.n < statistics.MIN_CLUSTERS
    outcome: Outcome = "unresolved" if few or added.high > most else "passed"
    if clear or (added.low > most and not few):
        outcome = "failed"  # if clear without the waits, despite noise in the raw times
    reach = "range" if few else "95 % interval"
    middle, low, high = added.median / answer, added.low / answer, added.high / answer
    sentence = (
        f"The probe adds {1000 * added.median:,.0f} us ({reach} {1000 * added.low:,.0f} to "
        f"{1000 * added.high:,.0f} us, {added.n} pairs) to a generate() of {answer:,.0f} ms: "
        f"{middle:.2%} ({low:.2%} to {high:.2%})."
    )
    if outcome == "unresolved":
        sentence = f"Not resolved with {added.n} pairs. {sentence}"
    ratios = {"median": 1 + middle, "low": 1 + low, "high": 1 + high, "n": added.n}
    evidence = {"pairs_ms": list(map(list, timed.ms)), "answer_ms": answer, BEYOND: clear, **ratios}
    return CheckFinding(outcome, sentence, middle, most / answer, "of generate()", evidence)
