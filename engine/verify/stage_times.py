"""Checks the times: the clock, the sum of the stages, stage 3 measured twice, and the cost of the
probe.

Milliseconds.  Results of repeated warm runs are judged.  Compared runs alternate, so that a slower
machine affects both, and what only load adds is left out by the least of several runs: a fault is a
wrong order or a wrong sum, or a gross difference.  Everything else is a figure, or stays open.  A
run's zero point is read on both clocks at the same moment, so a pause between two readings does not
shift the times.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from engine.analysis import statistics
from engine.machine.load import MachineLoad, Meter
from engine.storage.result_rows import Outcome
from engine.timing import VisionProbe, synchronizer
from engine.types import STAGES, DecodeConfig, RunResult, Span
from engine.verify.answer_paths import RecordedAnswer, Subject
from engine.verify.verdict import CheckFinding, judged

DRIFT = 0.001  # of a run: the system may adjust clocks
ROUNDING_MS = 0.05
NEAR_MS, EDGE_MS = 1e-6, 0.001  # equal figures; edges of spans
# A share of what is measured, and ms that readings and calls take on a fast processor or in a small
# model: only what exceeds both is a fault.
UNACCOUNTED, UNACCOUNTED_MS = 0.02, 1.0  # of a run
STAGE3, STAGE3_MS = 0.15, 0.5  # of stage 3 measured alone
OBSERVER, OBSERVER_MS = 0.01, 0.5  # of a whole answer's generate(), added by the probe
ENOUGH = 5  # pairs: all five exceed a bound by chance in 1 of 32 cases
BRIEF, PAIR_TOKENS = 16, 2  # of repeated runs; of pairs: other checks compare the full length

Rounds = Sequence[Mapping[str, RunResult]]  # by kind of run


def repeat(subject: Subject, runs: int) -> Iterator[dict[str, RunResult]]:
    """runs + 1 rounds of the three kinds of run; the first round is the warm-up."""
    config = replace(subject.greedy, max_new_tokens=min(BRIEF, subject.greedy.max_new_tokens))
    kinds = {"hooked": ("off", "hooked")}
    if "decoupled" in subject.ways:
        kinds = {"computed": ("refresh", "decoupled"), "cached": ("use", "decoupled")} | kinds
    requests = {kind: subject.run_request(config, *how) for kind, how in kinds.items()}
    for _ in range(runs + 1):
        yield {kind: subject.run(request) for kind, request in requests.items()}


def uncertainty_ms(result: RunResult) -> float:
    widths = sum(moment.width_s for moment in result.clocks or ())
    resolution = time.get_clock_info("monotonic").resolution
    return 1000 * (widths + resolution) + ROUNDING_MS + DRIFT * result.total_ms


def token_faults(answer: RecordedAnswer) -> Iterator[str]:
    """Faults if tokens are not reported after the head computed them and before the next ones.
    Each token is compared with its own computation.  A late token may be due to a pause: it is a
    fault if most are reported after the next one was computed."""
    result = answer.result
    if result is None or not answer.ids or len(answer.head_ms) != len(answer.ids):
        return
    way, reported, seen = answer.way, np.array(result.generation.token_ms), np.array(answer.head_ms)
    if len(reported) != len(seen):
        yield f"{way}: {len(reported)} token times are reported for {len(seen)} tokens"
        return
    lag, gaps, slack = reported - seen, np.diff(seen), uncertainty_ms(result)
    if (lag < -slack).any():
        yield f"{way}: a token is reported before it was computed"
    # On mps the head's hook does not wait for the device.
    known = len(gaps) and "mps" not in result.environment.get("device", "")
    if known and float(np.mean(lag[:-1] > gaps + slack)) > 0.5:
        middle = float(np.median(lag))
        yield f"{way}: tokens are reported {middle:.1f} ms (median) after they were computed"


def clock(rounds: Rounds, more: Sequence[str] = ()) -> CheckFinding:
    runs, faults = [result for round_ in rounds for result in round_.values()], list(more)
    for result in runs:
        faults += (*clocks_differ(result), *_disordered(result))
    monotonic = time.get_clock_info("perf_counter").monotonic
    if not monotonic:
        faults.append("this system's performance counter can be set back")
    evidence = {"runs": len(runs), "faults": faults[:10], "monotonic": monotonic}
    worst = [f"{len(faults)} faults in {len(runs)} runs; the first: {text}." for text in faults]
    good = f"In {len(runs)} runs time only goes forward, and a second clock agrees."
    return judged(worst, good, "faults", evidence)


def clocks_differ(result: RunResult) -> Iterator[str]:
    """A fault if the run's length on the second clock differs from its total time."""
    if result.clocks is None:
        return
    began, ended = result.clocks
    second = (ended.second_s - began.second_s) * 1000
    if abs(second - result.total_ms) > uncertainty_ms(result):
        lengths = f"a run of {result.total_ms:.1f} ms took {second:.1f} ms"
        yield f"{lengths} by another clock, read at the same moments"


def _disordered(result: RunResult) -> Iterator[str]:
    """Faults unless spans follow each other within the run, and each token has one time, in
    ascending order and within the decode stage."""
    for span in result.spans:
        if span.ms < 0:
            yield f"{span.name} lasts {span.ms:.3f} ms"
        if not -EDGE_MS <= span.start_ms <= span.start_ms + span.ms <= result.total_ms + EDGE_MS:
            yield f"{span.name} is not within the run"
    for before, after in pairwise(_stages(result)):
        if after.start_ms < before.start_ms + before.ms - EDGE_MS:
            yield f"{after.name} starts before {before.name} ends"
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


def _stages(result: RunResult) -> list[Span]:
    return [span for span in result.spans if span.name in STAGES]


def accounted(rounds: Rounds) -> CheckFinding:
    """Checks the share of a run outside its stages, for the worst kind of run.  The least share of
    the warm runs is judged: a busy machine pauses some runs between two stages, a fault all."""
    shares, most, spreads = dict[str, float](), dict[str, float](), dict[str, Any]()
    n = len(rounds) - 1
    for kind in rounds[0]:
        first, *warm = [round_[kind] for round_ in rounds]
        columns = [_columns(result) for result in warm]
        spreads[kind] = {"first_run_ms": _columns(first)}
        for name in columns[0]:
            values = [column[name] for column in columns]
            spreads[kind][name] = vars(statistics.spread(values)) | {"values": values}
        outside = [_share(result, abs(result.unaccounted_ms)) for result in warm]
        bounds = [max(UNACCOUNTED, _share(result, UNACCOUNTED_MS)) for result in warm]
        each = zip(outside, bounds, strict=True)
        shares[kind], most[kind] = min(each, key=lambda pair: pair[0] / pair[1])
    worst = max(shares, key=lambda kind: shares[kind] / most[kind])
    sentence = (
        f"{shares[worst]:.2%} of a run is not covered by its stages (the least of the warm {worst} "
        f"runs, the worst of three kinds, n = {n})."
    )
    outcome: Outcome = "failed" if n >= ENOUGH else "unresolved"
    outcome = "passed" if shares[worst] <= most[worst] else outcome
    evidence = {"shares": shares, "kinds": spreads, "n": n}
    return CheckFinding(outcome, sentence, shares[worst], most[worst], "of a run", evidence)


def _columns(result: RunResult) -> dict[str, float]:
    stages = {span.name: span.ms for span in _stages(result)}
    return stages | {"total": result.total_ms, "unaccounted": result.unaccounted_ms}


def _share(result: RunResult, ms: float) -> float:
    """A share of the run; 1 if a faulty clock gives the run no time."""
    return ms / result.total_ms if result.total_ms > 0 else 1.0


def stage3(rounds: Rounds) -> CheckFinding:
    """Compares the probe's time with that of the encoder alone, paired by round.  It fails only if
    it is clearly less than half or more than twice as long."""
    alone, probed = (
        [span.ms for round_ in rounds[1:] if (span := round_[kind].span("vision"))]
        for kind in ("computed", "hooked")
    )
    ratios = [b / a for a, b in zip(alone, probed, strict=True)]
    interval = statistics.median_interval(ratios, ratios=True)
    bound = max(STAGE3, STAGE3_MS / statistics.spread(alone).median)
    low, high = interval.low - 1, interval.high - 1
    outcome: Outcome = "unresolved"
    if interval.n >= ENOUGH and -bound <= low <= high <= bound:
        outcome = "passed"
    elif interval.n >= ENOUGH and (high < -max(0.5, bound) or low > max(1.0, bound)):
        outcome = "failed"
    open_note = f"; not resolved with n = {interval.n}, more warm runs may decide"
    several = "95 % interval" if interval.n >= statistics.MIN_CLUSTERS else "range"
    reach = f"{several} {interval.low:.3f} to {interval.high:.3f}"
    sentence = (
        f"The probe measures {interval.median:.3f} times the time that stage 3 takes alone "
        f"({reach}{open_note if outcome == 'unresolved' else ''})."
    )
    evidence = {"alone_ms": alone, "probe_ms": probed, **vars(interval)}
    return CheckFinding(outcome, sentence, interval.median - 1, bound, "of stage 3", evidence)


class Pairs(NamedTuple):
    """Short answers (without, with the probe) in ms; `answer_ms`: the whole one without the probe.
    The probe works in stage 3 only, so a long answer pays what a short one does, where it shows."""

    ms: Sequence[tuple[float, float]] = ()
    answer_ms: float = 0.0
    load: MachineLoad | None = None


@torch.inference_mode()
def pairs(subject: Subject, number: int, budget_s: float) -> Pairs:
    """Times plain generate() of the whole answer once, then of a few tokens without and with the
    probe, in alternating order.  At most `number` pairs; fewer if the time budget is used up, but
    enough for an interval."""
    meter = Meter(torch.get_num_threads())
    short = replace(subject.greedy, max_new_tokens=PAIR_TOKENS)
    answer_ms = _generate_ms(subject, subject.greedy, probed=False)
    timed: list[tuple[float, float]] = []
    end, least = time.monotonic() + budget_s, statistics.MIN_CLUSTERS
    while len(timed) < number and (len(timed) < least or time.monotonic() < end):
        order = (False, True) if len(timed) % 2 == 0 else (True, False)
        pair = {probed: _generate_ms(subject, short, probed) for probed in order}
        timed.append((pair[False], pair[True]))
    return Pairs(timed, answer_ms, meter.read())


def _generate_ms(subject: Subject, config: DecodeConfig, probed: bool) -> float:
    adapter, options = subject.adapter, subject.options(config)
    modules, sync = adapter.vision_modules(), synchronizer(adapter.device)
    sync()
    start = time.perf_counter()
    with VisionProbe(modules, adapter.device) if probed else nullcontext():
        adapter.generate(subject.prepared, **options)
    sync()
    return (time.perf_counter() - start) * 1000


def observer(timed: Pairs) -> CheckFinding:
    """The time that the probe adds to generate(), by the interval of the paired differences.  The
    probe is too slow if this is more than OBSERVER_MS and more than OBSERVER of the whole answer:
    the share of a short answer and the time on a slow processor are no faults."""
    added = statistics.median_interval([probed - bare for bare, probed in timed.ms])
    answer = timed.answer_ms
    most = max(OBSERVER_MS, OBSERVER * answer)
    few = added.n < statistics.MIN_CLUSTERS
    outcome: Outcome = "unresolved" if few or added.high > most else "passed"
    if added.low > most and not few:
        outcome = "failed"
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
    evidence = {"pairs_ms": list(map(list, timed.ms)), "answer_ms": answer, **ratios}
    return CheckFinding(outcome, sentence, middle, most / answer, "of generate()", evidence)
