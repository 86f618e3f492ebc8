"""Does each stage do its own work, in every run, and does the clock wait for the device?

Boundary: watches one run from outside: the stage that the pipeline announces, and hooks on what
reads files, makes pixels, and computes.  The device's synchronisation is replaced by a recorder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine import media, timing
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.pipeline.single_run import Nobody
from engine.types import Doing, Image, RunRequest, Sample
from engine.verify.answer_paths import Subject
from engine.verify.cache_checks import copy_of, write_pictures
from engine.verify.verdict import CheckFinding, judged

# what is done -> the stage that it belongs to
BELONGS: dict[str, str] = {
    "reading files": "load",
    "making pixels": "preprocess",
    "making token ids": "preprocess",
    "the vision tower": "vision",
    "the language model's head": "decode",
}
FAKE = torch.device("xpu", 0)  # an accelerator by its name alone: nothing runs on it


@dataclass
class WorkLog(Nobody):
    """What happened in a run, in order: ("stage", name), ("work", what) and ("sync", "")."""

    events: list[tuple[str, str]] = field(default_factory=list)
    shown: list[tuple[Image, ...]] = field(default_factory=list)

    def stage(self, name: Doing) -> None:
        self.events.append(("stage", name))

    def work(self, what: str) -> None:
        self.events.append(("work", what))

    def by_stage(self) -> Iterator[tuple[str, str]]:
        """(stage, what was done in it); "" before the first stage."""
        current = ""
        for kind, name in self.events:
            if kind == "stage":
                current = name
            elif kind == "work":
                yield current, name


@contextmanager
def watched(adapter: Adapter, log: WorkLog) -> Iterator[None]:
    """Notes in the log what is done meanwhile, and when the clock waits for the device."""
    with ExitStack() as stack:
        load = media.load

        def reading(*given: Any) -> Any:
            log.work("reading files")
            return load(*given)

        def pixels(images: Any, *given: Any) -> Any:
            log.work("making pixels")
            log.shown.append(tuple(images))
            return type(adapter).pixels(adapter, images, *given)

        def prompt_ids(*given: Any) -> Any:
            log.work("making token ids")
            return type(adapter).prompt_ids(adapter, *given)

        stack.enter_context(_instead(media, "load", reading))
        stack.enter_context(_instead(adapter, "pixels", pixels))
        stack.enter_context(_instead(adapter, "prompt_ids", prompt_ids))
        recorder = lambda _: lambda: log.events.append(("sync", ""))  # noqa: E731
        stack.enter_context(_instead(timing, "synchronizer", recorder))
        hooked = ((adapter.vision_modules()[0], "the vision tower"),
                  (adapter.decoder.head, "the language model's head"))  # fmt: skip
        for module, what in hooked:
            stack.callback(module.register_forward_pre_hook(_noting(log, what)).remove)
        yield


def _noting(log: WorkLog, what: str) -> Callable[..., None]:
    return lambda *_: log.work(what)


@contextmanager
def _instead(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replaces an attribute for the time of a `with`; an instance gets its class's one back."""
    own = name in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before) if own else delattr(owner, name)


def runs(subject: Subject, folder: Path) -> tuple[list[WorkLog], list[tuple[Image, ...]]]:
    """Two runs of one sample whose files change in between, and what the files held.

    Names, sizes and times of the files stay: only their content tells the two apart.
    """
    images = subject.media.images
    contents = [tuple(images), tuple(255 - image for image in images)]
    logs = []
    for pictures in contents:
        paths = write_pictures(folder, "work", pictures)
        for path in paths:
            os.utime(path, (1, 1))
        log = WorkLog()
        request = _request(subject, copy_of(subject.adapter.kind, "work", paths))
        with watched(subject.adapter, log):
            single_run.run(subject.adapter, request, subject.cache, log, None)
        logs.append(log)
    return logs, contents


def _request(subject: Subject, sample: Sample) -> RunRequest:
    brief = replace(subject.greedy, max_new_tokens=2)
    return replace(subject.run_request(brief, "refresh"), sample=sample)


def work(logs: Sequence[WorkLog], contents: Sequence[tuple[Image, ...]]) -> CheckFinding:
    """Each kind of work in its stage, in both runs; and the second run shows the changed files."""
    faults = [fault for log in logs for fault in _misplaced(log)]
    for log, held in zip(logs, contents, strict=True):
        if not log.shown or not _same(log.shown[-1], held):
            faults.append("A run was shown other pictures than its files held: they were kept.")
    seen = [{f"{stage or 'before'}: {what}": 1 for stage, what in log.by_stage()} for log in logs]
    good = "Files are read in load, pixels and ids made in preprocess, and so on, in every run."
    return judged(faults, good, "faults", {"work": [list(one) for one in seen], "faults": faults})


def _misplaced(log: WorkLog) -> Iterator[str]:
    done = list(log.by_stage())
    for what, stage in BELONGS.items():
        where = {place for place, one in done if one == what}
        if stage not in where:
            yield f"{what.capitalize()} was not done in {stage}."
        for other in sorted(where - {stage}):
            yield f"{what.capitalize()} was done in {other or 'no stage'}, and belongs to {stage}."


def _same(one: Sequence[Image], other: Sequence[Image]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def synchronised(log: WorkLog) -> CheckFinding:
    """The clock waits at both edges of a span, on a device that is not the CPU."""
    faults = [*_edges(log), *_drill()]
    syncs = sum(kind == "sync" for kind, _ in log.events)
    good = f"The clock waits for the device at the edges of every stage ({syncs} times in a run)."
    return judged(faults, good, "faults", {"events": log.events[:200], "faults": faults})


def _edges(log: WorkLog) -> Iterator[str]:
    """Between two stages' work there is a wait after the one and before the other."""
    events = log.events
    starts = [place for place, (kind, _) in enumerate(events) if kind == "stage"]
    for start, end in zip(starts, [*starts[1:], len(events)], strict=True):
        part = [kind for kind, _ in events[start:end]]
        if "work" not in part:
            continue
        first, last = part.index("work"), len(part) - part[::-1].index("work")
        name = events[start][1]
        if "sync" not in part[:first]:
            yield f"The clock does not wait for the device before {name}."
        if "sync" not in part[last:]:
            yield f"The clock does not wait for the device after {name}."


def _drill() -> Iterator[str]:
    """Timeline and probe on an accelerator whose synchronisation is recorded."""
    calls: list[str] = []

    def wait(*_: Any, **__: Any) -> None:
        calls.append("sync")

    module = torch.nn.Identity()
    with _instead(torch.accelerator, "synchronize", wait):
        timeline = timing.Timeline(FAKE)
        with timeline.span("drill"):
            calls.append("work")
        span = list(calls)
        calls.clear()
        with timing.VisionProbe([module], FAKE):
            module(torch.zeros(1))
        probe = len(calls)
    if "sync" not in span[: span.index("work")] or "sync" not in span[span.index("work") :]:
        yield "A span does not wait for an accelerator at both edges."
    if probe < 2:
        yield "The probe does not wait for an accelerator before and after a module."
