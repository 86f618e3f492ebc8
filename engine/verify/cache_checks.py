"""Tests the feature cache: what its keys depend on, and whether it detects a changed byte.

The keys of prefixes in memory contain the features' keys and are tested with them.

Boundary: works on copies of a sample's pictures and on a separate cache folder; the user's files
and cache are only read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Pictures

from engine import media
from engine.media import events
from engine.models.adapter import Adapter
from engine.pipeline import feature_cache, prefix_cache
from engine.types import (
    EXTENT_WORDS,
    FRAME_RULES,
    Events,
    Extent,
    Features,
    FeatureSpec,
    Media,
    MediaKind,
    Pixels,
    Sample,
)
from engine.verify.answer_paths import ANOTHER_QUESTION, Subject


@dataclass(frozen=True)
class KeyChange:
    """One changed ingredient, and whether the key changed."""

    what: str
    must_change: bool
    changed: bool

    @property
    def right(self) -> bool:
        return self.must_change == self.changed


def changes(subject: Subject, folder: Path) -> Iterator[KeyChange]:
    """Changes every ingredient, one at a time."""
    adapter, prompt, used = subject.adapter, subject.request.prompt, subject.request.pixels
    own = _key(adapter, subject.media, prompt, used)
    other_question = _key(adapter, subject.media, ANOTHER_QUESTION, used)
    yield KeyChange("another question", False, own != other_question)
    for what, other in _other_adapters(adapter):
        yield KeyChange(what, True, own != _key(other, subject.media, prompt, used))
    setting: Pixels = "fast" if used == "exact" else "exact"
    yield KeyChange(f"pixels {setting}", True, own != _key(adapter, subject.media, prompt, setting))
    yield from _prefix_changes(subject, setting)
    rule = FRAME_RULES[-1]
    how = subject.request.media
    ruled = media.load(subject.sample, adapter.kind, replace(how, frames=rule))
    yield KeyChange(
        f"frame rule {rule}", adapter.kind == "video", own != _key(adapter, ruled, prompt, used)
    )
    extent: Extent = "stream" if subject.request.extent == "slice" else "slice"
    shown = media.load(subject.sample, adapter.kind, replace(how, extent=extent))
    drawn = subject.media.extent is not None  # prepared event pictures do not change
    resized = own != _key(adapter, shown, prompt, used)
    yield KeyChange(f"event pictures {EXTENT_WORDS[extent]}", drawn, resized)
    for name, copies in _copies(subject, folder).items():
        copy, renamed, *changed = (_spec(adapter, sample, prompt) for sample in copies.values())
        subject.cache.write(copy, Features({"rows": torch.zeros(1, 1)}), 0.0, False)
        missed = subject.cache.read(renamed) is None
        yield KeyChange(f"equal {name} under another file name", False, missed)
        for what, spec in zip(list(copies)[2:], changed, strict=True):
            yield KeyChange(what, True, subject.cache.read(spec) is None)


def _prefix_changes(subject: Subject, setting: Pixels) -> Iterator[KeyChange]:
    """The same for prefix keys; `setting` is the other setting of pixels."""
    adapter, prompt, used = subject.adapter, subject.request.prompt, subject.request.pixels
    own = prefix_cache.key(adapter, subject.prepared)
    other = adapter.words(subject.media, ANOTHER_QUESTION, used)
    yield KeyChange("prefix: another question", False, own != prefix_cache.key(adapter, other))
    resized = adapter.words(subject.media, prompt, setting)
    yield KeyChange(f"prefix: pixels {setting}", True, own != prefix_cache.key(adapter, resized))
    shown = replace(subject.prepared, digest=subject.prepared.digest + "0")
    yield KeyChange("prefix: other pictures", True, own != prefix_cache.key(adapter, shown))
    wordy = adapter.remade(adapter.info)
    wordy.prompt = f"Look! {adapter.prompt}"  # type: ignore[misc]
    words = prefix_cache.key(wordy, wordy.words(subject.media, prompt, used))
    yield KeyChange("prefix: words before the pictures", True, own != words)
    for what, one in _other_adapters(adapter):
        yield KeyChange(f"prefix: {what}", True, own != prefix_cache.key(one, subject.prepared))


def _key(adapter: Adapter, shown: Media, prompt: str, setting: Pixels) -> str:
    return feature_cache.key(adapter.feature_spec(adapter.preprocess(shown, prompt, setting)))


def _spec(adapter: Adapter, sample: Sample, prompt: str) -> FeatureSpec:
    shown = media.load(sample, adapter.kind)
    return adapter.feature_spec(adapter.preprocess(shown, prompt))


def _other_adapters(adapter: Adapter) -> Iterator[tuple[str, Adapter]]:
    """The same model with another checkpoint, precision or image processor in its key."""
    info = adapter.info
    dtype = "float64" if info.dtype != "float64" else "float32"
    yield "checkpoint digest", adapter.remade(replace(info, digest=(info.digest or "") + "0"))
    yield "dtype", adapter.remade(replace(info, dtype=dtype))
    other = "4bit" if info.quantization != "4bit" else "8bit"
    yield "quantization", adapter.remade(replace(info, quantization=other))
    yield "device", adapter.remade(replace(info, device="meta"))
    code = adapter.remade(info)
    code.code += "0"
    yield "code of the models", code
    kind, values = type(adapter.image_processor), adapter.image_processor.to_dict()
    backend: Any = type(f"Other{kind.__name__}", (kind,), {})
    yield "processor backend", adapter.remade(info, backend(**values))
    found = values.get("image_mean")
    mean = [value + 1e-3 for value in found] if isinstance(found, list | tuple) else [0.1, 0.2, 0.3]
    yield "processor setting", adapter.remade(info, kind(**values | {"image_mean": mean}))


def _copies(subject: Subject, folder: Path) -> dict[str, dict[str, Sample]]:
    """Per form of the media: a copy, a renamed copy, and copies with one change each."""
    found = {"pictures": _picture_copies(subject, folder / "pictures")}
    if subject.adapter.kind == "events" and subject.sample.events is not None:
        found["events"] = _event_copies(subject.sample, folder / "events")
    return found


def _picture_copies(subject: Subject, folder: Path) -> dict[str, Sample]:
    images = subject.media.images
    first, last = ([image.copy() for image in images] for _ in range(2))
    first[0][0, 0] = 255 - first[0][0, 0]
    last[-1][-1, -1] = 255 - last[-1][-1, -1]
    versions = {
        "copy": images,
        "renamed": images,
        "first pixel of the first picture": first,
        "last pixel of the last picture": last,
    }
    return {
        name: copy_of(
            subject.adapter.kind, f"{index}", write_pictures(folder, f"{index}", pictures)
        )
        for index, (name, pictures) in enumerate(versions.items())
    }


def copy_of(kind: MediaKind, name: str, paths: tuple[Path, ...]) -> Sample:
    if kind == "events":
        return Sample(name, "copy", event_images=paths)
    return Sample(name, "copy", frames=paths)


def write_pictures(folder: Path, name: str, images: Any) -> tuple[Path, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = tuple(folder / f"{name}_{index}.png" for index in range(len(images)))
    for path, image in zip(paths, images, strict=True):
        Pictures.fromarray(image).save(path, compress_level=1)
    return paths


def _event_copies(sample: Sample, folder: Path) -> dict[str, Sample]:
    """Copies with one column of the first or last event changed."""
    assert sample.events is not None  # checked by the caller
    stream = events.read(sample.events)
    versions = {"copy": stream, "renamed": stream}
    for column, place in (("x", 0), ("y", -1), ("t", -1), ("p", 0)):
        values = getattr(stream, column).copy()
        values[place] = 1 - values[place] if column == "p" else values[place] + 1
        which = "first" if place == 0 else "last"
        versions[f"{column} of the {which} event"] = replace(stream, **{column: values})
    return {
        name: Sample(str(index), "copy", events=_write_events(folder, str(index), one))
        for index, (name, one) in enumerate(versions.items())
    }


def _write_events(folder: Path, name: str, stream: Events) -> Path:
    """Writes a 1-d structured array, a .npy without a pickle."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = {key: getattr(stream, key) for key in "xytp"}
    table = np.empty(len(stream), dtype=[(key, value.dtype) for key, value in columns.items()])
    for key, value in columns.items():
        table[key] = value
    path = folder / f"{name}.npy"
    np.save(path, table, allow_pickle=False)
    return path


@dataclass(frozen=True)
class CacheDamage:
    """The results after one byte of a cached value was changed on disk."""

    noticed: bool
    computed_again: bool
    ids: tuple[int, ...]
    read_again: bool
    note: str


def damage(subject: Subject) -> CacheDamage:
    """Writes features, changes a byte of a tensor in the file, and runs twice."""
    config = subject.greedy
    folder = subject.cache.folder
    subject.cache.close()
    shutil.rmtree(folder, ignore_errors=True)
    subject.cache = feature_cache.FeatureCache(folder, subject.cache.limit_mb)
    brief = replace(config, max_new_tokens=1)  # does not affect the cached features
    subject.run(subject.run_request(brief, "refresh"))
    _flip(next(folder.rglob("*.val")))
    struck = subject.run(subject.run_request(config, "use"))
    after = subject.run(subject.run_request(brief, "use"))
    note = next((note for note in struck.notes if "damaged" in note), "")
    return CacheDamage(
        bool(note), not struck.cached, struck.generation.token_ids, after.cached, note
    )


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    # The tensors stand at the end.  The last byte but one of four holds a bit of the mantissa in
    # all dtypes: the number stays finite, so the answer tells whether it was used.
    data[-2 - len(data) // 64 * 4] ^= 0x40
    path.write_bytes(data)
