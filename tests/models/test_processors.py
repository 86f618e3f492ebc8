"""The image processor that a checkpoint names decides the pixels, with all its options."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoImageProcessor, CLIPImageProcessorPil
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

from engine.models import auto_processor, pixels
from engine.models.adapter import Adapter
from engine.types import Sample
from engine.verify import runner
from engine.verify.verdict import Verdict, VerifyRequest
from tests import published_checkpoints
from tests.models.conftest import CROPPED, SIDE, loaded
from tests.models.test_pixels import pictures
from tests.tiny import unload_all
from tests.verify.conftest import Notes, steps_for

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("cache_dir")]
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
    monkeypatch.setattr(runner, "STEPS", steps_for(frozenset({"pixels"})))
    file = tiny_models / "llava" / "preprocessor_config.json"
    kept = file.read_bytes()

    def pixel_verdict(settings: dict[str, Any]) -> Verdict:
        unload_all()
        file.write_text(json.dumps(settings))
        request = VerifyRequest(("tiny-llava",), (sample,), max_new_tokens=8, runs=1)
        (examined,) = runner.verify(request, Notes())
        return next(verdict for verdict in examined.verdicts if verdict.check == "pixels")

    yield pixel_verdict
    file.write_bytes(kept)
    unload_all()


def always_clip(info: Any, folder: Path, unnamed: Any = None) -> Any:
    return CLIPImageProcessorPil.from_pretrained(folder, local_files_only=True, do_pad=False)


@pytest.mark.parametrize(
    ("place", "name", "planted"),
    [
        (auto_processor, "load_image", always_clip),  # and it is compared with itself
        pytest.param(  # admitted and not followed
            pixels, "_INERT", pixels._INERT | {"do_pad"}, marks=pytest.mark.slow
        ),
    ],
)
def test_verify_passes_with_the_named_processor_and_fails_with_another(
    place: Any,
    name: str,
    planted: Any,
    verified: Callable[..., Verdict],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert verified(FORMS["padded"]).outcome == "passed"
    monkeypatch.setattr(place, name, planted)
    found = verified(FORMS["padded"])
    assert found.outcome == "failed" and "differ" in found.sentence


def test_the_published_folders_keep_their_exact_path(tmp_path: Path) -> None:
    for family in ("llava", "video_llava"):
        folder = tmp_path / family
        published_checkpoints.build(folder, family, published_checkpoints.released, "safetensors")
        adapter: Adapter = loaded(folder, family)
        assert adapter._plain is not None
