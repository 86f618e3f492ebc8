"""Checks that sampling settings act as in the model's own generate().

A trained model's best token is often so likely that no setting changes the answer.  Therefore a
hook on the language model's head flattens the logits of every way, so that temperature, top_p, seed
and minimum length change the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from engine.models.adapter import Adapter
from engine.storage.schemas import Outcome
from engine.types import DecodeConfig
from engine.verify import checks, equality, extents
from engine.verify.answer_paths import AnswerRecorder, RecordedAnswer, Subject
from engine.verify.verdict import CheckFinding

TOKENS = 16
RANGE = 3.0  # of the flattened logits, from their mean to their largest
SETTINGS: dict[str, dict[str, Any]] = {
    "sampled": {"temperature": 1.0, "seed": 11},
    "temperature": {"temperature": 0.4, "seed": 11},
    "top_p": {"temperature": 1.0, "top_p": 0.3, "seed": 11},
    "temperature and top_p": {"temperature": 2.5, "top_p": 0.8, "seed": 11},
    "seed": {"temperature": 1.0, "seed": 2**31 + 5},
}
ENDING: dict[str, dict[str, Any]] = {  # used with logits that favour the end token
    "end token": {},
    "minimum length": {"min_new_tokens": 5},
}
LogitsChange = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class TriedSetting:
    """One setting with plain's answer and those of the other ways."""

    name: str
    plain: RecordedAnswer
    others: tuple[RecordedAnswer, ...]


@contextmanager
def changed(adapter: Adapter, change: LogitsChange) -> Iterator[None]:
    """Changes the head's logits in the eager and in the compiled step."""

    def head(module: Any, arguments: Any, out: torch.Tensor) -> torch.Tensor:
        return change(out)

    def compiled(module: Any, arguments: Any, out: tuple[torch.Tensor, Any]) -> tuple[Any, Any]:
        scores = change(out[0])
        return scores, scores.argmax(-1)

    handles = [adapter.decoder.head.register_forward_hook(head)]
    if adapter.compiled is not None:
        handles.append(adapter.compiled.register_forward_hook(compiled))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def flat(plain: RecordedAnswer) -> LogitsChange:
    """Scales logits so that the largest is RANGE above their mean."""
    height = float((plain.logits.max(dim=-1).values - plain.logits.mean(dim=-1)).mean())
    scale = RANGE / max(height, 1e-6)
    return lambda logits: logits * scale


def ending(plain: RecordedAnswer, eos_ids: tuple[int, ...]) -> LogitsChange:
    """Makes the end token the best one."""
    lift = 2 * float(plain.logits.abs().max()) + 1

    def change(logits: torch.Tensor) -> torch.Tensor:
        logits = logits.clone()
        logits[..., eos_ids[0]] = lift
        return logits

    return change


def try_settings(subject: Subject, plain: RecordedAnswer) -> Iterator[TriedSetting]:
    """Answers with every setting in the plain, hooked and decoupled way."""
    adapter = subject.adapter
    eager = subject.backend == "eager"
    for change, settings in (
        (flat(plain), SETTINGS),
        (ending(plain, adapter.eos_ids), ENDING if eager else {}),  # a graph's own minimum length
    ):
        for name, values in settings.items():
            config = replace(subject.greedy, max_new_tokens=TOKENS, **values)
            with changed(adapter, change):
                answer = own(subject, config)
                ways = [way for way in ("hooked", "decoupled") if way in subject.ways]
                others = tuple(getattr(subject, way)(config) for way in ways)
                yield TriedSetting(name, answer, others)


@torch.inference_mode()
def own(subject: Subject, config: DecodeConfig) -> RecordedAnswer:
    """The model's own generate() with the request's settings, the checkpoint's rules and the same
    seed; the settings are built without engine.decoding.decode."""
    adapter = subject.adapter
    options = subject.options(config)
    devices = [] if adapter.device.type == "cpu" else [adapter.device]
    with AnswerRecorder(adapter) as watch, torch.random.fork_rng(devices):
        torch.manual_seed(config.seed)
        out = adapter.generate(subject.prepared, **options)
    return watch.answer("plain", subject.new_ids(out, watch.steps))


def settings(
    found: Sequence[TriedSetting],
    rounding: float,
    eos_ids: tuple[int, ...],
    text: Callable[[Sequence[int]], str],
) -> CheckFinding:
    """All ways must give equal tokens under every setting, and settings must change the tokens.

    Results must also report why they stopped, and the text that `text` gives for their ids.  Open
    if logits differ by rounding: one random number may then draw different tokens.
    """
    faults: list[str] = []
    open_: list[str] = []
    for one in found:
        for other in one.others:
            compared = equality.compare(one.plain, other, rounding)
            if compared.result == "EXACT":
                continue
            close = 0 < compared.logit_difference <= rounding and one.name in SETTINGS
            kept = open_ if close else faults
            kept.append(f"With another {one.name}, {other.way}: {compared.sentence}")
    faults += [
        f"With another {one.name}: {fault}"
        for one in found
        for other in one.others
        for fault in (*checks.misreported(other, text), *extents.ends_wrong(other, eos_ids))
    ]
    answers = {one.name: one.plain.ids for one in found}
    idle = [name for name in SETTINGS if name != "sampled" and answers[name] == answers["sampled"]]
    open_ += [
        f"Another {name} does not change the tokens, so this was not compared." for name in idle
    ]
    outcome: Outcome = "failed" if faults else "unresolved" if open_ else "passed"
    good = f"All ways give plain's tokens with {len(found)} settings, on flattened logits."
    sentence = (*faults, *open_, good)[0]
    evidence = {"tokens": {name: list(ids) for name, ids in answers.items()}, "faults": faults}
    return CheckFinding(outcome, sentence, len(faults), 0, "settings", evidence)
