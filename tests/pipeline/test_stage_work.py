"""Each stage does its own work in every run, and the clock waits for the device at its ends.

A run's own watcher records the reading of files, torch's synchronisation the waits for the device,
methods and hooks of the model the rest.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine import media, timing
from engine.models.adapter import Adapter
from engine.pipeline import Watcher, single_run
from engine.pipeline.feature_cache import FeatureCache
from engine.types import (
    DecodeConfig,
    Doing,
    Image,
    Media,
    MediaKind,
    MediaOptions,
    RunOptions,
    RunRequest,
    Sample,
)
from tests.conftest import slow_unless
from tests.pipeline import test_cache_keys
from tests.pipeline.test_cache_keys import FAMILIES, OWN, copy

adapter = test_cache_keys.adapter
FAKE = torch.device("xpu", 0)  # only a name: nothing runs on it
# kind of work -> its stage
BELONGS = {
    "reading files": "load",
    "making pixels": "preprocess",
    "making token ids": "preprocess",
    "the vision tower": "vision",
    "the language model's head": "decode",
}


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


@contextmanager
def watched(adapter: Adapter, own: bool, log: WorkLog) -> Iterator[None]:
    """Logs the work of this model's methods and modules inside the `with`."""
    pixels, ids = "making pixels", "making token ids"
    makers = {"pixels": (pixels,), "prompt_ids": (ids,)}
    with ExitStack() as stack:
        for maker, kinds in (makers if own else {"processor_inputs": (pixels, ids)}).items():

            def made(first: Any, *given: Any, maker: Any = maker, kinds: Any = kinds) -> Any:
                for what in kinds:
                    log.work(what)
                if pixels in kinds:
                    log.shown.append(tuple(first))
                return getattr(type(adapter), maker)(adapter, first, *given)

            setattr(adapter, maker, made)
            stack.callback(delattr, adapter, maker)
        tower, head = adapter.vision_modules()[0], adapter.decoder.head
        for what, module in (("the vision tower", tower), ("the language model's head", head)):
            handle = module.register_forward_pre_hook(lambda *_, what=what: log.work(what))
            stack.callback(handle.remove)
        yield


@pytest.mark.loads
@pytest.mark.parametrize("family", slow_unless(["llava", "qwen2_5_vl"], FAMILIES))
def test_each_kind_of_work_is_done_in_its_stage_in_every_run(
    family: str,
    adapter: Adapter,
    sample: Sample,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two runs of one sample whose files change in between; names, sizes and times stay."""
    images = media.load(sample, adapter.kind).images
    cache = FeatureCache(tmp_path / "features", 64)
    synchronizer = timing.synchronizer
    monkeypatch.setattr(timing, "synchronizer", lambda _: synchronizer(FAKE))
    for pictures in (images, tuple(255 - image for image in images)):
        again = copy(adapter, tmp_path / "copy", pictures)
        for path in (*again.frames, *again.event_images):
            os.utime(path, (1, 1))
        how = RunOptions(decode=DecodeConfig(max_new_tokens=2), cache="refresh")
        log = WorkLog()
        monkeypatch.setattr(torch.accelerator, "synchronize", log.wait)
        with watched(adapter, family in OWN, log):
            single_run.run(adapter, RunRequest(again, adapter.info.name, "Why?", how), cache, log)
        stage, places = "", set[tuple[str, str]]()
        for kind, name in log.events:
            stage = name if kind == "stage" else stage
            places |= {(name, stage)} if kind == "work" else set()
        places.discard(("making token ids", "compile"))  # the compiled step needs their number
        assert places == set(BELONGS.items())
        assert all(map(np.array_equal, log.shown[-1], pictures))
        unsynchronised(log)
    cache.close()


def unsynchronised(log: WorkLog) -> None:
    """There are waits after one stage's work and before the next one's."""
    starts = [place for place, (kind, _) in enumerate(log.events) if kind == "stage"]
    for start, end in zip(starts, [*starts[1:], len(log.events)], strict=True):
        part = [kind for kind, _ in log.events[start:end]]
        if "work" not in part or log.events[start] == ("stage", "compile"):  # it has no clock
            continue
        first, last = part.index("work"), len(part) - part[::-1].index("work")
        assert "sync" in part[:first] and "sync" in part[last:], log.events[start]


def test_span_and_probe_wait_for_an_accelerator_at_both_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    class Module(torch.nn.Identity):
        def forward(self, value: torch.Tensor) -> torch.Tensor:
            calls.append("work")
            return value

    monkeypatch.setattr(torch.accelerator, "synchronize", lambda _: calls.append("sync"))
    with timing.Timeline(FAKE).span("drill"):
        calls.append("work")
    assert calls[0] == calls[-1] == "sync" and "work" in calls
    calls.clear()
    module = Module()
    with timing.VisionProbe([module], FAKE):
        module(torch.zeros(1))
    assert calls == ["sync", "work", "sync"]
