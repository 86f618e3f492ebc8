"""The cost of the probe: generate() with and without it, in alternating pairs.

Boundary: times bare generate() calls and judges the paired ratios.  Milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from engine.analysis import statistics
from engine.machine.clocks import ThreadWait, since
from engine.machine.load import MachineLoad, together
from engine.machine.load_meter import Meter
from engine.storage.schemas import Outcome
from engine.timing import VisionProbe, synchronizer
from engine.verify.answer_paths import Subject
from engine.verify.busy_checks import BEYOND
from engine.verify.stage_times import ENOUGH
from engine.verify.verdict import CheckFinding

OBSERVER = 0.01  # of generate()
SLOW_PROBE = 0.25  # of it, without waits for a core: a fault under any load
MANY = 20  # pairs needed to decide about one per cent
PAIR_TOKENS = 2  # short answers: the probe works in vision and prefill, so its share is largest


@dataclass(frozen=True)
class Pairs:
    """(without, with the probe) in ms; `net_ms`: the same minus the thread's waits for a core,
    empty if those are unknown."""

    ms: tuple[tuple[float, float], ...] = ()
    net_ms: tuple[tuple[float, float], ...] = ()
    load: MachineLoad | None = None

    def __add__(self, other: Pairs) -> Pairs:
        known = bool(other.net_ms) and (bool(self.net_ms) or not self.ms)
        loads = [load for load in (self.load, other.load) if load is not None]
        net = self.net_ms + other.net_ms if known else ()
        return Pairs(self.ms + other.ms, net, together(loads))


@torch.inference_mode()
def pairs(subject: Subject, number: int, budget_s: float) -> Pairs:
    """Times plain generate() of a few tokens without and with the probe, in alternating order.

    At most `number` pairs; fewer if the time budget is used up, but at least five.
    """
    found: list[tuple[_Took, _Took]] = []
    meter, wait = Meter(torch.get_num_threads()), ThreadWait()
    end = time.monotonic() + budget_s
    while len(found) < number and (len(found) < ENOUGH or time.monotonic() < end):
        first = _generate_ms(subject, wait, probed=len(found) % 2 == 1)
        second = _generate_ms(subject, wait, probed=len(found) % 2 == 0)
        found.append((first, second) if len(found) % 2 == 0 else (second, first))
    wait.close()
    net = tuple((bare.net_ms, probed.net_ms) for bare, probed in found)
    return Pairs(
        tuple((bare.ms, probed.ms) for bare, probed in found),
        tuple((b, p) for b, p in net if b is not None and p is not None),
        meter.read(),
    )


@dataclass(frozen=True)
class _Took:
    """A time, and the same minus the thread's waits for a core (None: unknown)."""

    ms: float
    net_ms: float | None


def _generate_ms(subject: Subject, wait: ThreadWait, probed: bool) -> _Took:
    adapter = subject.adapter
    config = replace(subject.greedy, max_new_tokens=min(PAIR_TOKENS, subject.greedy.max_new_tokens))
    options, sync = subject.options(config), synchronizer(adapter.device)
    sync()
    waited, start = wait.ms(), time.perf_counter()
    if probed:
        with VisionProbe(adapter.vision_modules(), adapter.device):
            adapter.generate(subject.prepared, **options)
    else:
        adapter.generate(subject.prepared, **options)
    sync()
    ms = (time.perf_counter() - start) * 1000
    away = since(waited, wait.ms())
    return _Took(ms, None if away is None else max(ms - away, 0.0))


def observer(
    found: Sequence[tuple[float, float]], net: Sequence[tuple[float, float]] = ()
) -> CheckFinding:
    """The time that the probe adds to generate(), by the interval of the paired ratios.

    `net`: the same pairs minus the thread's waits for a core, if known.
    """
    interval = statistics.median_interval([probed / bare for bare, probed in found], ratios=True)
    added = f"{interval.median - 1:+.2%} (95 % interval {interval.low - 1:+.2%} to "
    added += f"{interval.high - 1:+.2%}, {interval.n} pairs)"
    evidence = {"pairs_ms": [list(pair) for pair in found], **vars(interval)}
    if net and all(bare > 0 for bare, _ in net):
        without_waits = statistics.median_interval(
            [probed / bare for bare, probed in net], ratios=True
        )
        evidence[BEYOND] = without_waits.low - 1 > SLOW_PROBE and interval.n >= MANY
    outcome: Outcome
    clear = bool(evidence.get(BEYOND))  # clear without the waits, despite noise in the raw times
    if clear or (interval.low - 1 > OBSERVER and interval.n >= MANY):
        outcome, sentence = "failed", f"The probe adds {added} to generate()."
    elif interval.n < MANY or interval.width > OBSERVER or interval.high - 1 > OBSERVER:
        outcome = "unresolved"
        sentence = f"Not resolved with {interval.n} pairs: the probe adds {added}."
    else:
        outcome, sentence = "passed", f"The probe adds {added} to generate()."
    return CheckFinding(outcome, sentence, interval.median - 1, OBSERVER, "of generate()", evidence)
