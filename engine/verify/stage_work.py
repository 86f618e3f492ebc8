"""Checks that each stage does its own work in every run, and that the clock waits for the device.

A run's own observer records the reading of files and the waits for the device; methods and hooks of
the model under test record the rest.
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

from engine import timing
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.pipeline.watcher import Watcher
from engine.types import Doing, Image, Media, MediaKind, MediaOptions, Sample
from engine.verify.answer_paths import Subject
from engine.verify.cache_checks import copy_of, write_pictures
from engine.verify.verdict import CheckFinding, judged

# kind of work -> its stage
BELONGS: dict[str, str] = {
    "reading files": "load",
    "making pixels": "preprocess",
    "making token ids": "preprocess",
    "the vision tower": "vision",
    "the language model's head": "decode",
}
# Before the clock starts: the compiled step needs the prompt's length.
AHEAD = ("compile", "making token ids")
Contents = list[tuple[Image, ...]]  # the pictures in a sample's files, for each run
FAKE = torch.device("xpu", 0)  # only a name: nothing runs on it


@dataclass
class WorkLog(Watcher):
    """The events of a run in order: ("stage", name), ("work", kind) and ("sync", "")."""

    events: list[tuple[str, str]] = field(default_factory=list)
    shown: list[tuple[Image, ...]] = field(default_factory=list)

    def stage(self, name: Doing) -> None:
        self.events.append(("stage", name))

    def load(self, sample: Sample, kind: MediaKind, how: MediaOptions) -> Media:
        self.work("reading files")
        return super().load(sample, kind, how)

    def wait(self, _: torch.device) -> None:
        self.events.append(("sync", ""))

    def work(self, what: str) -> None:
        self.events.append(("work", what))

    def by_stage(self) -> Iterator[tuple[str, str]]:
        """(stage, kind of work in it); "" before the first stage."""
        current = ""
        for kind, name in self.events:
            if kind == "stage":
                current = name
            elif kind == "work":
                yield current, name


@contextmanager
def watched(adapter: Adapter, log: WorkLog) -> Iterator[None]:
    """Logs the work of this model's methods and modules inside the `with`."""
    with ExitStack() as stack:
        for maker, kinds in adapter.makers.items():
            setattr(adapter, maker, _making(adapter, log, maker, kinds))
            stack.callback(delattr, adapter, maker)
        hooked = {
            "the vision tower": adapter.vision_modules()[0],
            "the language model's head": adapter.decoder.head,
        }
        for what, module in hooked.items():
            handle = module.register_forward_pre_hook(lambda *_, what=what: log.work(what))
            stack.callback(handle.remove)
        yield


def _making(adapter: Adapter, log: WorkLog, maker: str, kinds: Sequence[str]) -> Callable[..., Any]:
    """A method of stage 2 that logs its kinds of work, and the pictures that it gets first."""

    def made(first: Any, *given: Any) -> Any:
        for what in kinds:
            log.work(what)
        if "making pixels" in kinds:
            log.shown.append(tuple(first))
        return getattr(type(adapter), maker)(adapter, first, *given)

    return made


def runs(subject: Subject, folder: Path) -> tuple[list[WorkLog], Contents]:
    """Two runs of one sample whose files change in between, and the files' contents.

    Names, sizes and times of the files stay the same; only the content changes.
    """
    images = subject.media.images
    contents = [tuple(images), tuple(255 - image for image in images)]
    brief = replace(subject.greedy, max_new_tokens=2)
    logs = []
    for pictures in contents:
        paths = write_pictures(folder, "work", pictures)
        for path in paths:
            os.utime(path, (1, 1))
        log = WorkLog()
        sample = copy_of(subject.adapter.kind, "work", paths)
        request = replace(subject.run_request(brief, "refresh"), sample=sample)
        with watched(subject.adapter, log):
            single_run.run(subject.adapter, request, subject.cache, log)
        logs.append(log)
    return logs, contents


def work(logs: Sequence[WorkLog], contents: Sequence[tuple[Image, ...]]) -> CheckFinding:
    """Each kind of work must be in its stage, and the second run must show the changed files."""
    faults = [fault for log in logs for fault in _misplaced(log)]
    for log, held in zip(logs, contents, strict=True):
        shown = log.shown[-1] if log.shown else ()
        if len(shown) != len(held) or not all(map(np.array_equal, shown, held)):
            faults.append("A run was shown old pictures, not those in its files.")
    seen = [{f"{stage or 'before'}: {what}": 1 for stage, what in log.by_stage()} for log in logs]
    good = "In every run each kind of work is done in its own stage, such as file reading in load."
    return judged(faults, good, "faults", {"work": [list(one) for one in seen], "faults": faults})


def _misplaced(log: WorkLog) -> Iterator[str]:
    done = list(log.by_stage())
    for what, stage in BELONGS.items():
        where = {place for place, one in done if one == what and (place, one) != AHEAD}
        if stage not in where:
            yield f"{what.capitalize()} was not done in {stage}."
        for other in sorted(where - {stage}):
            yield f"{what.capitalize()} was done in {other or 'no stage'}, but belongs to {stage}."


def synchronised(log: WorkLog) -> CheckFinding:
    """The clock must wait for a device other than the CPU at both ends of a span."""
    faults = [*_edges(log), *_drill()]
    syncs = sum(kind == "sync" for kind, _ in log.events)
    good = f"The clock waits for the device at both ends of every stage ({syncs} times per run)."
    return judged(faults, good, "faults", {"events": log.events[:200], "faults": faults})


def _edges(log: WorkLog) -> Iterator[str]:
    """Faults unless there are waits after one stage's work and before the next one's."""
    events = log.events
    starts = [place for place, (kind, _) in enumerate(events) if kind == "stage"]
    for start, end in zip(starts, [*starts[1:], len(events)], strict=True):
        part = [kind for kind, _ in events[start:end]]
        if "work" not in part or events[start] == ("stage", "compile"):  # it has no clock
            continue
        first, last = part.index("work"), len(part) - part[::-1].index("work")
        name = events[start][1]
        if "sync" not in part[:first]:
            yield f"The clock does not wait for the device before {name}."
        if "sync" not in part[last:]:
            yield f"The clock does not wait for the device after {name}."


def _drill() -> Iterator[str]:
    """Tests Timeline and probe on a fake accelerator whose synchronisation is recorded."""
    calls: list[str] = []

    def wait(_: torch.device) -> None:
        calls.append("sync")

    module = torch.nn.Identity()
    timeline = timing.Timeline(FAKE, wait)
    with timeline.span("drill"):
        calls.append("work")
    span = list(calls)
    calls.clear()
    with timing.VisionProbe([module], FAKE, wait):
        module(torch.zeros(1))
    probe = len(calls)
    if "sync" not in span[: span.index("work")] or "sync" not in span[span.index("work") :]:
        yield "A span does not wait for an accelerator at both ends."
    if probe < 2:
        yield "The probe does not wait for an accelerator before and after a module."
