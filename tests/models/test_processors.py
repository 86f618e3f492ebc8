"""The image processor that a checkpoint names decides the pixels, with all its options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as Pillow
from transformers import AutoImageProcessor, CLIPImageProcessorPil

from engine.models import auto_processor
from engine.types import Image, Sample
from engine.verify import runner
from engine.verify.verdict import Verdict, VerifyRequest
from tests.models.conftest import CROPPED, SIDE, loaded
from tests.models.published_folders import write
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
    "a number for a size": {
        "size": 40,
        "crop_size": 32,
        "do_center_crop": True,
        "image_processor_type": "CLIPImageProcessor",
    },
}
SIZES = [(96, 128), (128, 96), (64, 64), (33, 200)]


def pictures(count: int, height: int, width: int) -> list[Image]:
    """Soft noise with hard edges: what filters overshoot at."""
    rng = np.random.default_rng(height * width)
    found = []
    for _ in range(count):
        small = rng.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
        soft = np.array(Pillow.fromarray(small).resize((width, height), Pillow.Resampling.BICUBIC))
        soft[: height // 3, : width // 2] = rng.integers(0, 2, 3, dtype=np.uint8) * 255
        found.append(soft)
    return found


@pytest.fixture
def checkpoint(tiny_copy: Callable[..., Path]) -> Callable[..., Path]:
    def made(settings: dict[str, Any], family: str = "llava") -> Path:
        folder = tiny_copy(family)
        write(folder, "preprocessor_config.json", settings)
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


def pixel_verdict(sample: Sample) -> Verdict:
    unload_all()
    request = VerifyRequest(("one",), (sample,), max_new_tokens=8, runs=1)
    (examined,) = runner.verify(request, Notes())
    return next(verdict for verdict in examined.verdicts if verdict.check == "pixels")


def always_clip(info: Any, folder: Path, unnamed: Any = None) -> Any:
    return CLIPImageProcessorPil.from_pretrained(folder, local_files_only=True, do_pad=False)


def test_verify_passes_with_the_named_processor_and_fails_with_another(
    checkpoint: Callable[..., Path],
    sample: Sample,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = f'name = "one"\nfamily = "llava"\ncheckpoint = "{checkpoint(FORMS["padded"])}"\n'
    (tmp_path / "models.toml").write_text(f"[[model]]\n{row}")
    monkeypatch.setenv("STAGESCOPE_MODELS", str(tmp_path / "models.toml"))
    monkeypatch.setattr(runner, "STEPS", steps_for(frozenset({"pixels"})))
    assert pixel_verdict(sample).outcome == "passed"
    monkeypatch.setattr(auto_processor, "load_image", always_clip)  # compared with itself
    found = pixel_verdict(sample)
    unload_all()
    assert found.outcome == "failed" and "differ" in found.sentence
