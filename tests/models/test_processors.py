"""The image processor that a checkpoint names decides the pixels, with all its options."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoImageProcessor
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

from engine.models import auto_processor, pixels, registry
from engine.models.adapter import Adapter
from engine.types import Sample
from engine.verify import runner
from engine.verify.verdict import Verdict, VerifyRequest
from tests import published_checkpoints, tiny
from tests.models.conftest import loaded
from tests.models.test_pixels import SETTINGS, pictures
from tests.verify.conftest import Notes

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("cache_dir")]
SIDE = {"height": tiny.SIZE, "width": tiny.SIZE}
CROPPED = {"size": {"shortest_edge": 32}, "crop_size": SIDE, "do_center_crop": True}
FORMS: dict[str, dict[str, Any]] = {
    "padded": CROPPED | {"image_processor_type": "LlavaImageProcessor", "do_pad": True},
    "LLaVA's, not padded": CROPPED | {"image_processor_type": "LlavaImageProcessor"},
    "CLIP's": CROPPED | {"image_processor_type": "CLIPImageProcessor"},
    "fast CLIP's": CROPPED | {"image_processor_type": "CLIPImageProcessorFast"},
    "an old file's": CROPPED | {"feature_extractor_type": "CLIPFeatureExtractor"},
    "unnamed": CROPPED,
    "SigLIP's": {"size": SIDE, "image_processor_type": "SiglipImageProcessor"},
    "ViT's": {"size": SIDE, "image_processor_type": "ViTImageProcessor", "image_mean": [0.5] * 3},
    "not cropped": {
        "size": SIDE,
        "do_center_crop": False,
        "image_processor_type": "CLIPImageProcessor",
    },
    "bilinear": CROPPED | {"resample": 2, "image_processor_type": "CLIPImageProcessor"},
    "a number for a size": {
        "size": 40,
        "crop_size": 32,
        "do_center_crop": True,
        "image_processor_type": "CLIPImageProcessor",
    },
    "not normalised": CROPPED
    | {"do_normalize": False, "image_processor_type": "CLIPImageProcessor"},
    "padded by size": CROPPED
    | {"do_pad": True, "pad_size": SIDE, "image_processor_type": "CLIPImageProcessor"},
}
SIZES = [(96, 128), (128, 96), (64, 64), (33, 200)]


@pytest.fixture
def checkpoint(tiny_folder: Path, tmp_path: Path) -> Callable[..., Path]:
    def made(settings: dict[str, Any], family: str = "llava") -> Path:
        folder = Path(shutil.copytree(tiny_folder / family, tmp_path / family))
        (folder / "preprocessor_config.json").write_text(json.dumps(settings))
        return folder

    return made


def named(folder: Path) -> Any:
    return AutoImageProcessor.from_pretrained(folder, backend="pil", local_files_only=True)


@pytest.mark.parametrize("form", FORMS)
def test_pixels_are_the_named_processors(form: str, checkpoint: Callable[..., Path]) -> None:
    folder = checkpoint(FORMS[form])
    adapter = loaded(folder, "llava")
    assert type(adapter.image_processor) is type(named(folder))
    for size in SIZES:
        images = pictures(1, *size)
        wanted = auto_processor.values(named(folder), images)
        assert torch.equal(adapter.pixels(images), wanted), size


def test_padding_is_not_cropping(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """Control: the forms above differ where a picture is not square."""
    padded = loaded(checkpoint(FORMS["padded"]), "llava")
    shutil.rmtree(tmp_path / "llava")
    cropped = loaded(checkpoint(FORMS["CLIP's"]), "llava")
    images = pictures(1, 96, 128)
    assert not torch.equal(padded.pixels(images), cropped.pixels(images))
    assert padded._plain is None and cropped._plain is not None


@pytest.mark.parametrize("name", SETTINGS)
def test_llavas_own_class_without_padding_is_computed_exactly(name: str) -> None:
    processor = LlavaImageProcessorPil(**SETTINGS[name])
    plain = pixels.known_settings(processor)
    assert plain is not None
    for size in [(96, 128), (300, 301)]:
        images = pictures(1, *size)
        found = plain.pixels(images)
        assert found is not None and torch.equal(found, auto_processor.values(processor, images))


def test_a_setting_that_is_not_followed_is_left_to_the_processor() -> None:
    assert pixels.known_settings(LlavaImageProcessorPil(do_pad=True)) is None
    known = LlavaImageProcessorPil()
    known.new_option = 5
    assert pixels.known_settings(known) is None


def test_settings_in_processor_config_come_first(checkpoint: Callable[..., Path]) -> None:
    folder = checkpoint(FORMS["CLIP's"])
    nested = {"processor_class": "LlavaProcessor", "image_processor": FORMS["padded"]}
    (folder / "processor_config.json").write_text(json.dumps(nested))
    assert type(loaded(folder, "llava").image_processor) is LlavaImageProcessorPil


def test_eventgpt_follows_a_named_processor_too(checkpoint: Callable[..., Path]) -> None:
    folder = checkpoint(FORMS["padded"], "eventgpt")
    adapter = loaded(folder, "eventgpt")
    images = pictures(2, 96, 128)
    wanted = auto_processor.values(LlavaImageProcessorPil.from_pretrained(folder), images)
    assert torch.equal(adapter.pixels(images), wanted)


@pytest.fixture
def verified(
    tiny_models: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Verdict]]:
    """The verdict on the pixels of a tiny model with these settings of its image processor."""
    monkeypatch.setattr(runner, "PAIRS", 3)
    places = {name: tiny_models / name for name in ("llava", "eventgpt", "video_llava")}
    kept = {n: (p / "preprocessor_config.json").read_bytes() for n, p in places.items()}

    def pixel_verdict(settings: dict[str, Any], family: str = "llava") -> Verdict:
        for entry in registry.resident():
            registry.unload(entry)
        (places[family] / "preprocessor_config.json").write_text(json.dumps(settings))
        request = VerifyRequest((f"tiny-{family}",), (sample,), max_new_tokens=8, runs=1)
        (examined,) = runner.verify(request, Notes())
        return next(verdict for verdict in examined.verdicts if verdict.check == "pixels")

    yield pixel_verdict
    for name, place in places.items():
        (place / "preprocessor_config.json").write_bytes(kept[name])
    for entry in registry.resident():
        registry.unload(entry)


@pytest.mark.parametrize("form", ["padded", "CLIP's", "SigLIP's"])
def test_verify_compares_with_the_named_processor(
    form: str, verified: Callable[..., Verdict]
) -> None:
    assert verified(FORMS[form]).outcome == "passed"


def test_verify_fails_where_another_processor_ran(
    verified: Callable[..., Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the adapter takes CLIP's class whatever is named, and compares with itself."""
    from transformers import CLIPImageProcessorPil

    def always_clip(info: Any, folder: Path, unnamed: Any = None) -> Any:
        return CLIPImageProcessorPil.from_pretrained(folder, local_files_only=True, do_pad=False)

    monkeypatch.setattr(auto_processor, "load_image", always_clip)
    found = verified(FORMS["padded"])
    assert found.outcome == "failed" and "differ" in found.sentence


def test_verify_fails_where_an_option_is_dropped(
    verified: Callable[..., Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the exact path admits do_pad and does not follow it."""
    monkeypatch.setattr(pixels, "_INERT", pixels._INERT | {"do_pad"})
    assert verified(FORMS["padded"]).outcome == "failed"


def test_the_published_folders_keep_their_exact_path(tmp_path: Path) -> None:
    for family in ("llava", "video_llava"):
        folder = tmp_path / family
        published_checkpoints.build(folder, family, published_checkpoints.released, "safetensors")
        adapter: Adapter = loaded(folder, family)
        assert adapter._plain is not None
