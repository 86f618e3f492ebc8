"""A checkpoint's own processor, built with or without torchvision."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor

from engine.errors import ModelUnavailable
from engine.models import auto_processor
from engine.types import Image, ModelInfo
from tests.models import family_checkpoints
from tests.models.published_folders import change

pytestmark = pytest.mark.loads
Folder = Callable[[str], Path]
# Their processors take no videos, so that transformers can build them without torchvision.
PLAIN = (
    *("llava", "llava_next", "idefics2", "idefics3", "gemma3", "paligemma", "aya_vision"),
    *("lighton_ocr", "mllama", "blip-2", "instructblip", "git"),
)


def info(family: str) -> ModelInfo:
    return ModelInfo(family, "transformers", "", None, "float32", demo=False)


def pictures(count: int, seed: int = 0) -> list[Image]:
    noise = np.random.default_rng(seed)
    return [noise.integers(0, 256, (60, 80, 3), dtype=np.uint8) for _ in range(count)]


def prompt(processor: Any, count: int) -> str:
    content = [{"type": "image"}] * count + [{"type": "text", "text": "What is on the road?"}]
    text = processor.tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
    )
    assert isinstance(text, str)
    return text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PaliGemma's, as transformers runs it
@pytest.mark.parametrize("family", PLAIN)
def test_inputs_are_those_of_transformers_own_processor(family: str, family_folder: Folder) -> None:
    folder = family_folder(family)
    processor = auto_processor.load(info(family), folder)
    own = AutoProcessor.from_pretrained(folder, backend="pil")
    for count in (1,) if family_checkpoints.most_images(family) == 1 else (1, 2):
        images = [PIL.Image.fromarray(one) for one in pictures(count)]
        content = [{"type": "image", "image": one} for one in images]
        content.append({"type": "text", "text": "What is on the road?"})
        wanted: Any = own.apply_chat_template(
            [{"role": "user", "content": content}],
            chat_template=processor.tokenizer.chat_template,
            tokenize=True,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
        )
        wanted.pop("labels", None)  # PaliGemma's, for training
        found = auto_processor.inputs(processor, prompt(processor, count), pictures(count))
        torch.testing.assert_close(found, dict(wanted), rtol=0, atol=0)


@pytest.fixture
def folder(family_folder: Folder, tmp_path: Path) -> Path:
    return Path(shutil.copytree(family_folder("qwen2_5_vl"), tmp_path / "qwen"))


def refusal(folder: Path) -> str:
    with pytest.raises(ModelUnavailable) as error:
        auto_processor.load(info("qwen"), folder)
    text = str(error.value)
    assert text.startswith("qwen") and text.endswith(".") and "\n" not in text
    return text


def test_the_class_is_found_by_the_model_type(folder: Path) -> None:
    change(folder, "preprocessor_config.json", processor_class=...)
    assert type(auto_processor.load(info("qwen"), folder)).__name__ == "Qwen2_5_VLProcessor"
    change(folder, "config.json", model_type="kosmos-2")
    assert "has no processor None" in refusal(folder)


def test_code_of_a_checkpoint_is_never_run(folder: Path) -> None:
    ran = folder / "ran"
    (folder / "mine.py").write_text(f"open({str(ran)!r}, 'w')\nclass Mine: pass\n")
    remote = {"AutoProcessor": "mine.Mine", "AutoImageProcessor": "mine.Mine"}
    change(folder, "preprocessor_config.json", processor_class=..., auto_map=remote)
    assert "a checkpoint's code is never run" in refusal(folder)
    change(folder, "preprocessor_config.json", image_processor_type="Mine", auto_map=remote)
    change(folder, "tokenizer_config.json", processor_class="Qwen2_5_VLProcessor")
    refusal(folder)
    assert not ran.exists()


def test_only_areas_may_be_larger_than_a_side(folder: Path) -> None:
    file = "preprocessor_config.json"
    area = {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 16384}
    change(folder, file, min_pixels=..., max_pixels=..., size=area)
    assert auto_processor.load(info("qwen"), folder).image_processor.size == area
    change(folder, file, image_processor_type="CLIPImageProcessor")
    assert "size is" in refusal(folder)


@pytest.mark.skipif(not auto_processor.can_video(), reason="torchvision cannot be imported")
@pytest.mark.parametrize("family", family_checkpoints.VIDEO)
def test_a_clip_has_all_its_frames(family: str, family_folder: Folder) -> None:
    folder = family_folder(family)
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    processor = auto_processor.load(info(family), folder)
    content = [{"type": "video"}, {"type": "text", "text": "What is on the road?"}]
    text = processor.tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
    )
    frames = pictures(8)
    one, other = (
        auto_processor.inputs(processor, text, shown, rate=4.0)
        for shown in (frames, [*frames[:7], frames[0]])
    )
    first, second = (model(**found).logits[0, -1] for found in (one, other))
    assert (first - second).abs().max() > 0.001  # the last frame counts


@pytest.mark.skipif(auto_processor.can_video(), reason="torchvision can be imported")
@pytest.mark.parametrize("family", family_checkpoints.NEED_TORCHVISION)
def test_what_needs_torchvision_says_so(family: str, family_folder: Folder) -> None:
    with pytest.raises(ModelUnavailable, match=r"[Tt]orchvision"):
        auto_processor.load(info(family), family_folder(family))


@pytest.mark.parametrize(
    ("file", "values", "said"),
    [
        ("preprocessor_config.json", None, "no processor_config.json and no preprocessor_config"),
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("preprocessor_config.json", {"processor_class": "MyProcessor"}, "no processor MyProcess"),
        ("preprocessor_config.json", {"processor_class": "Gemma3Processor"}, "Gemma3Processor"),
        ("preprocessor_config.json", {"max_pixels": 2**40}, "max_pixels is 1099511627776"),
    ],
)
def test_a_processor_that_cannot_be_built_is_refused(
    file: str, values: dict[str, Any] | None, said: str, folder: Path
) -> None:
    if values is None:
        (folder / file).unlink()
    else:
        change(folder, file, **values)
    assert said in refusal(folder)
