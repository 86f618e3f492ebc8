"""The keys of the feature cache: each ingredient is changed, one at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as Pictures

from engine import media
from engine.media import dataset, events
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import feature_cache
from engine.pipeline.feature_cache import FeatureCache
from engine.types import FRAME_RULES, Events, Extent, Features, Image, MediaOptions, Sample
from tests import tiny
from tests.conftest import slow_unless
from tests.models.test_equality import FAMILIES as OWN

pytestmark = pytest.mark.loads
QUESTION = "What is it?"
FAMILIES = (*OWN, "qwen2_5_vl")


@pytest.fixture
def adapter(
    family: str, tiny_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Adapter]:
    if family not in OWN:
        tiny.add_family(tmp_path / "families.toml", family)
        monkeypatch.setenv("STAGESCOPE_MODELS", str(tmp_path / "families.toml"))
    yield registry.load(registry.entry(f"tiny-{family}"))
    tiny.unload_all()


def key(
    adapter: Adapter, sample: Sample, question: str = QUESTION, how: MediaOptions | None = None
) -> str:
    shown = media.load(sample, adapter.kind, how or MediaOptions())
    return feature_cache.key(adapter.feature_spec(adapter.preprocess(shown, question)))


def others(adapter: Adapter) -> Iterator[tuple[str, Adapter]]:
    """The same model with another checkpoint, precision or image processor in its key."""
    info = adapter.info
    yield "checkpoint digest", adapter.remade(replace(info, digest=(info.digest or "") + "0"))
    yield "dtype", adapter.remade(replace(info, dtype="float64"))
    yield "quantization", adapter.remade(replace(info, quantization="4bit"))
    yield "device", adapter.remade(replace(info, device="meta"))
    code = adapter.remade(info)
    code.code += "0"
    yield "code of the models", code
    kind, values = type(adapter.image_processor), adapter.image_processor.to_dict()
    backend: Any = type(f"Other{kind.__name__}", (kind,), {})
    yield "processor backend", tiny.with_processor(adapter, backend(**values))
    mean = [value + 1e-3 for value in values.get("image_mean") or (0.1, 0.2, 0.3)]
    other = kind(**values | {"image_mean": mean})
    yield "processor setting", tiny.with_processor(adapter, other)


@pytest.mark.parametrize("family", slow_unless(["llava", "video_llava"], FAMILIES))
def test_another_model_or_processor_has_another_key_and_another_question_has_not(
    adapter: Adapter, sample: Sample
) -> None:
    own = key(adapter, sample)
    assert key(adapter, sample, "Anything else?") == own
    equal = [what for what, other in others(adapter) if key(other, sample) == own]
    assert not equal
    ruled = key(adapter, sample, how=MediaOptions(frames=FRAME_RULES[-1]))
    assert (ruled != own) == (adapter.kind == "video")


def copy(adapter: Adapter, folder: Path, images: Sequence[Image]) -> Sample:
    folder.mkdir(exist_ok=True)
    paths = tuple(folder / f"{number}.png" for number in range(len(images)))
    for path, image in zip(paths, images, strict=True):
        Pictures.fromarray(image).save(path, compress_level=1)
    drawn = adapter.kind == "events"
    return Sample("s", "copy", event_images=paths if drawn else (), frames=() if drawn else paths)


def found(adapter: Adapter, copies: Sequence[Sample], folder: Path) -> None:
    """Features are kept for the first copy: the second one finds them, the others do not."""
    cache = FeatureCache(folder, 64)
    one, renamed, *changed = (
        adapter.feature_spec(adapter.preprocess(media.load(each, adapter.kind), QUESTION))
        for each in copies
    )
    cache.write(one, Features({"rows": torch.zeros(1, 1)}), 0.0, False)
    assert cache.read(renamed) is not None
    assert [cache.read(spec) for spec in changed] == [None] * len(changed)
    cache.close()


@pytest.mark.parametrize("family", ["eventgpt"])
def test_raw_events_are_changed_one_by_one(
    adapter: Adapter, real_root: Path, tmp_path: Path
) -> None:
    sample = next(one for one in dataset.read(real_root).samples if one.events is not None)
    assert sample.events is not None
    extents: tuple[Extent, ...] = ("slice", "stream")
    assert len({key(adapter, sample, how=MediaOptions(extent=one)) for one in extents}) == 2
    stream = events.read(sample.events)
    versions = [stream, stream]
    for column, place in (("x", 0), ("y", -1), ("t", -1), ("p", 0)):
        values = getattr(stream, column).copy()
        values[place] = 1 - values[place] if column == "p" else values[place] + 1
        versions.append(replace(stream, **{column: values}))
    found(adapter, [saved(one, tmp_path / f"{n}.npy") for n, one in enumerate(versions)], tmp_path)


def saved(stream: Events, path: Path) -> Sample:
    columns = {name: getattr(stream, name) for name in "xytp"}
    types = [(name, column.dtype) for name, column in columns.items()]
    np.save(path, np.rec.fromarrays(list(columns.values()), dtype=types), allow_pickle=False)
    return Sample("s", "copy", events=path)
