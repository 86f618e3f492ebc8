"""The cost of the probe: short generate() calls with and without it, and one whole answer.

Milliseconds.  The probe works in stage 3 only, so a long answer pays what a short one pays, and in
a short one it shows.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch

from engine.analysis import statistics
from engine.machine.clocks import ThreadWait, since
from engine.machine.load import MachineLoad, Meter, together
from engine.storage.schemas import Outcome
from engine.timing import VisionProbe, synchronizer
from engine.types import DecodeConfig
from engine.verify.answer_paths import Subject
from engine.verify.verdict import BEYOND, CheckFinding

OBSERVER, OBSERVER_MS = 0.01, 0.5  # of a whole answer's generate(); too slow if above both
SLOW_PROBE = 0.25  # of a short answer, without waits for a core: a fault under any load
MANY = 20  # pairs needed for that
PAIR_TOKENS = 2


@dataclass(frozen=True)
class Pairs:
    """Short answers (without, with the probe) in ms; `net_ms`: the same minus the thread's waits
    for a core, empty if those are unknown; `answers_ms`: whole answers without the probe."""

    ms: tuple[tuple[float, float], ...] = ()
    net_ms: tuple[tuple[float, float], ...] = ()
    answers_ms: tuple[float, ...] = ()
    load: MachineLoad | None = None

    def __add__(self, other: Pairs) -> Pairs:
        loads = [load for load in (self.load, other.load) if load is not None]
        net, answers = self.net_ms + other.net_ms, self.answers_ms + other.answers_ms
        return Pairs(self.ms + other.ms, net, answers, together(loads))


@torch.inference_mode()
def pairs(subject: Subject, number: int, budget_s: float) -> Pairs:
    """Times plain generate() of the whole answer once, then of a few tokens without and with the
    probe, in alternating order.

    At most `number` pairs; fewer if the time budget is used up, but enough for an interval.
    """
    meter, wait = Meter(torch.get_num_threads()), ThreadWait()
    whole, short = subject.greedy, replace(subject.greedy, max_new_tokens=PAIR_TOKENS)
    answer_ms, _ = _generate_ms(subject, wait, whole, probed=False)
    ms: list[tuple[float, float]] = []
    net: list[tuple[float, float]] = []
    end = time.monotonic() + budget_s
    least = statistics.MIN_CLUSTERS
    while len(ms) < number and (len(ms) < least or time.monotonic() < end):
        order = (False, True) if len(ms) % 2 == 0 else (True, False)
        times = {probed: _generate_ms(subject, wait, short, probed) for probed in order}
        ms.append((times[False][0], times[True][0]))
        net.append((times[False][1], times[True][1]))
    known = wait.ms() is not None
    wait.close()
    return Pairs(tuple(ms), tuple(net) if known else (), (answer_ms,), meter.read())


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


def observer(found: Pairs) -> CheckFinding:
    """The time that the probe adds to generate(), by the interval of the paired differences.

    The probe is too slow if this is more than OBSERVER_MS and more than OBSERVER of the median
    answer: the share of a short answer and the time on a slow processor are no faults.
    """
    added = statistics.median_interval([probed - bare for bare, probed in found.ms])
    answer = statistics.spread(found.answers_ms).median
    most = max(OBSERVER_MS, OBSERVER * answer)
    net = [probed - bare - max(most, SLOW_PROBE * bare) for bare, probed in found.net_ms]
    clear = len(net) >= MANY and statistics.median_interval(net).low > 0
    few = added.n < statistics.MIN_CLUSTERS
    outcome: Outcome = "unresolved" if few or added.high > most else "passed"
    if clear or (added.low > most and not few):
        outcome = "failed"  # if clear without the waits, despite noise in the raw times
    middle, low, high = added.median / answer, added.low / answer, added.high / answer
    sentence = (
        f"The probe adds {1000 * added.median:,.0f} us (95 % interval {1000 * added.low:,.0f} to "
        f"{1000 * added.high:,.0f} us, {added.n} pairs) to a generate() of {answer:,.0f} ms: "
        f"{middle:.2%} ({low:.2%} to {high:.2%})."
    )
    if outcome == "unresolved":
        sentence = f"Not resolved with {added.n} pairs. {sentence}"
    ratios = {"median": 1 + middle, "low": 1 + low, "high": 1 + high, "n": added.n}
    evidence = {"pairs_ms": list(map(list, found.ms)), "answer_ms": answer, BEYOND: clear, **ratios}
    return CheckFinding(outcome, sentence, middle, most / answer, "of generate()", evidence)
