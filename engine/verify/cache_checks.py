"""Tests the feature cache: what its keys depend on, and whether it detects a changed byte."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Pictures

from engine import media
from engine.media import events
from engine.models.adapter import Adapter
from engine.pipeline import feature_cache
from engine.types import (
    EXTENT_WORDS,
    FRAME_RULES,
    Events,
    Extent,
    Features,
    Image,
    Media,
    MediaKind,
    Sample,
)
from engine.verify import pictures
from engine.verify.answer_paths import ANOTHER_QUESTION, RecordedAnswer, Subject
from engine.verify.verdict import CheckFinding, judged

KeyChange = tuple[str, bool, bool]  # what was changed, whether the key must change, whether it did


def keys(subject: Subject, folder: Path) -> CheckFinding:
    """Changes every ingredient, one at a time: the key must change exactly when it must."""
    changes = (_feature_changes(subject), _file_changes(subject, folder))
    shown = [
        {"what": what, "must_change": must, "changed": changed, "right": must == changed}
        for what, must, changed in chain(*changes)
    ]
    faults = [
        f"{change['what']}: the key {'changed' if change['changed'] else 'did not change'}, but "
        "the opposite is required."
        for change in shown
        if not change["right"]
    ]
    good = f"{len(shown)} changes, one at a time: each key changed if and only if it must."
    return judged(faults, good, "wrong keys", {"changes": shown})


def _feature_changes(subject: Subject) -> Iterator[KeyChange]:
    adapter, prompt = subject.adapter, subject.request.prompt

    def key(adapter: Adapter, shown: Media, prompt: str) -> str:
        return feature_cache.key(adapter.feature_spec(adapter.preprocess(shown, prompt)))

    own = key(adapter, subject.media, prompt)
    yield "another question", False, own != key(adapter, subject.media, ANOTHER_QUESTION)
    for what, other in _other_adapters(adapter):
        yield what, True, own != key(other, subject.media, prompt)
    rule, how = FRAME_RULES[-1], subject.request.media
    ruled = media.load(subject.sample, adapter.kind, replace(how, frames=rule))
    chosen = adapter.kind == "video"
    yield f"frame rule {rule}", chosen, own != key(adapter, ruled, prompt)
    extent: Extent = "stream" if subject.request.extent == "slice" else "slice"
    shown = media.load(subject.sample, adapter.kind, replace(how, extent=extent))
    drawn = subject.media.extent is not None  # prepared event pictures do not change
    resized = own != key(adapter, shown, prompt)
    yield f"event pictures {EXTENT_WORDS[extent]}", drawn, resized


def _file_changes(subject: Subject, folder: Path) -> Iterator[KeyChange]:
    """Writes features for a copy of the media, and looks for those of other copies."""
    adapter = subject.adapter
    for form, copies in _copies(subject, folder).items():
        copy, renamed, *changed = (
            adapter.feature_spec(
                adapter.preprocess(media.load(sample, adapter.kind), subject.request.prompt)
            )
            for sample in copies.values()
        )
        subject.cache.write(copy, Features({"rows": torch.zeros(1, 1)}), 0.0, False)
        missed = subject.cache.read(renamed) is None
        yield f"equal {form} under another file name", False, missed
        for what, spec in zip(list(copies)[2:], changed, strict=True):
            yield what, True, subject.cache.read(spec) is None


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
    kind, images = subject.adapter.kind, subject.media.images
    first, last = ([image.copy() for image in images] for _ in range(2))
    first[0][0, 0] = 255 - first[0][0, 0]
    last[-1][-1, -1] = 255 - last[-1][-1, -1]
    wide = [pictures.noise()[0]] * len(images)
    tall = [image.reshape(image.shape[1], image.shape[0], 3) for image in wide]
    changed = {"first pixel of the first picture": first, "last pixel of the last picture": last}
    forms: dict[str, dict[str, Sequence[Image]]] = {
        "pictures": {"copy": images, "renamed": images, **changed},
        "wide pictures": {
            **dict.fromkeys(("copy", "renamed"), wide),
            "tall pictures with the same values": tall,
        },
    }
    copies = {
        form: {
            what: copy_of(kind, f"{index}", write_pictures(folder / form, f"{index}", shown))
            for index, (what, shown) in enumerate(versions.items())
        }
        for form, versions in forms.items()
    }
    if kind == "events" and subject.sample.events is not None:
        copies["events"] = _event_copies(events.read(subject.sample.events), folder)
    return copies


def copy_of(kind: MediaKind, name: str, paths: tuple[Path, ...]) -> Sample:
    events, frames = (paths, ()) if kind == "events" else ((), paths)
    return Sample(name, "copy", event_images=events, frames=frames)


def write_pictures(folder: Path, name: str, images: Any) -> tuple[Path, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = tuple(folder / f"{name}_{index}.png" for index in range(len(images)))
    for path, image in zip(paths, images, strict=True):
        Pictures.fromarray(image).save(path, compress_level=1)
    return paths


def _event_copies(stream: Events, folder: Path) -> dict[str, Sample]:
    """Copies with one column of the first or last event changed, as 1-d structured arrays."""
    versions = {"copy": stream, "renamed": stream}
    for column, place in (("x", 0), ("y", -1), ("t", -1), ("p", 0)):
        values = getattr(stream, column).copy()
        values[place] = 1 - values[place] if column == "p" else values[place] + 1
        which = "first" if place == 0 else "last"
        versions[f"{column} of the {which} event"] = replace(stream, **{column: values})
    found = {}
    for index, (what, one) in enumerate(versions.items()):
        columns = {key: getattr(one, key) for key in "xytp"}
        types = [(key, column.dtype) for key, column in columns.items()]
        table = np.rec.fromarrays(list(columns.values()), dtype=types)
        path = folder / f"events_{index}.npy"
        np.save(path, table, allow_pickle=False)
        found[what] = Sample(str(index), "copy", events=path)
    return found


def damage(subject: Subject, plain: RecordedAnswer) -> CheckFinding:
    """Writes features, changes a byte of a tensor in the file, and runs twice."""
    config, folder = subject.greedy, subject.cache.folder
    shutil.rmtree(folder, ignore_errors=True)
    subject.cache = feature_cache.FeatureCache(folder, subject.cache.limit_mb)
    brief = replace(config, max_new_tokens=1)  # does not affect the cached features
    subject.run(subject.run_request(brief, "refresh"))
    subject.cache.close()
    path = next(folder.rglob("*.val"))
    data = bytearray(path.read_bytes())
    # The tensors stand at the end.  The last byte but one of four holds a bit of the mantissa in
    # all dtypes: the number stays finite, so the answer tells whether it was used.
    data[-2 - len(data) // 64 * 4] ^= 0x40
    path.write_bytes(data)
    struck = subject.run(subject.run_request(config, "use"))
    after = subject.run(subject.run_request(brief, "use"))
    note = next((note for note in struck.notes if "damaged" in note), "")
    steps = {
        "noticed": bool(note),
        "computed again": not struck.cached,
        "same answer": struck.generation.token_ids == plain.ids,
        "read again afterwards": after.cached,
    }
    faults = [f"After a byte was changed on disk: not {step}." for step in steps if not steps[step]]
    good = "A changed byte is detected and reported, and the features are computed again."
    return judged(faults, good, "steps missed", {"steps": steps, "note": note})
