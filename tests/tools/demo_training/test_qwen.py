"""The Qwen2.5-VL demo network is transformers' own class, and is taught as that class runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText, AutoTokenizer
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from engine.demo.scenes import draw_truth
from tools.demo_training.corpus import WIDE, _resize
from tools.demo_training.lessons import draw_lesson, encode, lesson_loss, positions
from tools.demo_training.qwen_network import (
    FRAMES,
    PICTURE,
    PROMPT,
    build_qwen_tokenizer,
    new_qwen,
    places_of,
    rows_of,
    save_qwen,
)
from tools.demo_training.qwen_tower import SIGHTS, TOKENS, Teacher, grid_of, patchify
from tools.demo_training.qwen_tower import encode as see
from tools.demo_training.towers import Pictures, normalise

QUESTION = "What are the key elements in this scene?"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_qwen_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    torch.manual_seed(1)
    return new_qwen(tokenizer).eval()


@pytest.fixture(scope="module")
def folder(model: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("qwen")
    torch.manual_seed(1)
    save_qwen(new_qwen(tokenizer), tokenizer, place)
    return place


def random_pixels(count: int) -> Any:
    shape = count, 3, WIDE.height, WIDE.width
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def picture(height: int, width: int) -> Any:
    return np.random.default_rng(8).integers(0, 255, (height, width, 3), dtype=np.uint8)


@pytest.mark.loads
def test_pixels_are_the_processors(folder: Path) -> None:
    image = picture(120, 160)
    theirs = Qwen2VLImageProcessorPil.from_pretrained(folder)(image, return_tensors="pt")
    ours = patchify(normalise(_resize(image[None], WIDE)))[0]
    torch.testing.assert_close(ours, theirs["pixel_values"], atol=1e-5, rtol=0)
    assert torch.equal(theirs["image_grid_thw"], grid_of(1))


@pytest.mark.loads
@pytest.mark.parametrize("size", [(60, 80), (120, 160), (119, 160), (480, 640), (260, 346)])
def test_any_picture_of_four_to_three_has_the_grid_of_the_training(
    size: tuple[int, int], folder: Path
) -> None:
    processor = Qwen2VLImageProcessorPil.from_pretrained(folder)
    grid = processor(picture(*size), return_tensors="pt")["image_grid_thw"]
    assert torch.equal(grid, grid_of(1))


@torch.inference_mode()
def test_taught_tokens_are_those_at_run_time(model: Any) -> None:
    """Three pictures at once, with windows and rotary places, as the class computes them."""
    patches, tower = patchify(random_pixels(3)), model.model.visual
    theirs = tower(patches.flatten(0, 1), grid_thw=grid_of(3))
    states, tokens = see(tower, patches)
    torch.testing.assert_close(states.flatten(0, 1), theirs.last_hidden_state)
    torch.testing.assert_close(tokens.flatten(0, 1), theirs.pooler_output, atol=1e-5, rtol=1e-4)
    assert tokens.shape == (3, TOKENS, 192)
    swapped = see(tower, patches.flip(0))[1]
    assert not torch.allclose(swapped.flatten(0, 1), theirs.pooler_output, atol=1e-3)


@pytest.mark.parametrize("images", [1, 5])
def test_places_are_those_of_the_class(images: int, model: Any, tokenizer: Any) -> None:
    ids = _prompt(tokenizer, images)[: -len(encode(tokenizer, _after()))]
    before = len(encode(tokenizer, PROMPT[0]))
    kinds = (ids == model.config.image_token_id).int()[None]
    theirs, _ = model.model.get_rope_index(ids[None], kinds, image_grid_thw=grid_of(images))
    assert torch.equal(places_of(before, images), theirs[:, 0])
    assert not torch.equal(theirs[0, 0], torch.arange(len(ids)))  # they do not simply count up


@pytest.mark.parametrize("images", [1, 5])
@torch.inference_mode()
def test_taught_answers_are_scored_as_at_run_time(images: int, model: Any, tokenizer: Any) -> None:
    """The loss of a lesson is that of the whole model on pixels and token ids."""
    rng, pixels = np.random.default_rng(4), random_pixels(images)
    lesson = draw_lesson(tokenizer, [dict(draw_truth(rng))], ["image"], rng, 1, FRAMES)
    tokens = see(model.model.visual, patchify(pixels))[1][None]
    rows, places = rows_of(model, tokenizer, tokens), places_of(len(lesson.before), images)
    language = model.model.language_model
    speech = language, language.embed_tokens, model.lm_head
    ours, _ = lesson_loss(*speech, rows, lesson, places=places)
    plain, _ = lesson_loss(*speech, rows, lesson)
    theirs = _loss_of_the_class(model, tokenizer, pixels, lesson)
    assert float(ours) == pytest.approx(theirs, abs=1e-5)
    assert float(plain) != pytest.approx(theirs, abs=1e-5)  # places that count up are noticed


def _loss_of_the_class(model: Any, tokenizer: Any, pixels: Any, lesson: Any) -> float:
    prefix = _prompt(tokenizer, len(pixels))[: -len(encode(tokenizer, _after()))]
    ids = torch.cat([prefix, lesson.after[0]])[None]
    logits = model(
        input_ids=ids,
        mm_token_type_ids=(ids == model.config.image_token_id).int(),
        pixel_values=patchify(pixels).flatten(0, 1),
        image_grid_thw=grid_of(len(pixels)),
    ).logits[0, len(prefix) : -1]
    weights = lesson.weight[0, 1:]
    losses = torch.nn.functional.cross_entropy(logits, lesson.after[0, 1:], reduction="none")
    return float((losses * weights).sum() / weights.sum())


def _after() -> str:
    return PROMPT[1].format(q=QUESTION)


def _prompt(tokenizer: Any, images: int) -> Any:
    start, end = PROMPT[0], _after()
    between = "<|vision_end|><|vision_start|>"
    text = start + between.join([PICTURE * TOKENS] * images) + end
    return torch.tensor(encode(tokenizer, text))


@pytest.mark.parametrize("images", [1, 5])
def test_prompt_pieces_are_the_chat_template(images: int, folder: Path, tokenizer: Any) -> None:
    written = _rendered(folder, images).replace(PICTURE, PICTURE * TOKENS)
    assert tokenizer(written).input_ids == _prompt(tokenizer, images).tolist()


def test_a_saved_folder_is_whole(folder: Path, model: Any, tokenizer: Any) -> None:
    again, report = AutoModelForImageTextToText.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert type(again).__name__ == "Qwen2_5_VLForConditionalGeneration"
    assert not report["missing_keys"] and not report["unexpected_keys"]
    kept = dict(model.half().float().state_dict())
    for name, value in again.state_dict().items():
        assert torch.equal(value, kept[name]), name
    assert again.generation_config.eos_token_id == [tokenizer.eos_token_id, tokenizer.pad_token_id]
    reader = json.loads((folder / "preprocessor_config.json").read_text(encoding="utf-8"))
    assert reader["image_processor_type"] == "Qwen2VLImageProcessor"
    assert reader["processor_class"] == "Qwen2_5_VLProcessor"


def test_tokenizer_gives_text_back(folder: Path, tokenizer: Any) -> None:
    loaded = AutoTokenizer.from_pretrained(folder)
    assert type(loaded).__name__ == "Qwen2Tokenizer"
    for text in ("The road curves to the left.", "Grüße, 東京!", "user\n\n 12"):
        assert loaded(text).input_ids == tokenizer(text).input_ids
        assert loaded.decode(loaded(text).input_ids) == text
    assert loaded.decode([loaded.eos_token_id], skip_special_tokens=True) == ""


def test_positions_of_answers_follow_the_prefix(tokenizer: Any) -> None:
    rng = np.random.default_rng(6)
    truths: list[Any] = [draw_truth(rng)] * 2
    lesson = draw_lesson(tokenizer, truths, ["event"] * 2, rng, 2, FRAMES)
    prefix = places_of(len(lesson.before), 5)
    place = positions(lesson, prefix.shape[1] - len(lesson.before), prefix)
    assert place.shape == (3, 2, prefix.shape[1] + lesson.after.shape[1])
    assert torch.equal(place[:, 1, : prefix.shape[1]], prefix)
    second = prefix.shape[1] + int((lesson.pair[0] == 1).sum())
    assert (place[:, 0, second] == prefix.max() + 1).all()


@pytest.mark.parametrize("sight", SIGHTS)
def test_patch_labels_stay_with_their_patches(sight: Any, model: Any) -> None:
    """Labels drawn from the states themselves are learned as such only in the states' order."""
    from tools.demo_training.qwen_tower import _by_cells, _in_windows, _order

    tower = model.model.visual
    rows, columns = WIDE.rows, WIDE.columns
    number = torch.arange(rows * columns).float()[None, :, None]  # a label per patch
    image = number.reshape(1, 1, rows, columns).repeat_interleave(WIDE.patch, 2)
    pixels = image.repeat_interleave(WIDE.patch, 3).expand(1, 3, -1, -1)
    shown = _in_windows(patchify(pixels)[:, :, :1], _order(tower))
    assert torch.equal(_in_windows(_by_cells(number), _order(tower)), shown)
    assert not torch.equal(number, shown)
    truth = torch.zeros(1, 7, dtype=torch.long)
    batch = Pictures(pixels / 100, torch.zeros(1, rows * columns, 10), torch.ones(1), truth)
    assert torch.isfinite(Teacher(sight).loss(tower, batch))


def _rendered(folder: Path, images: int) -> str:
    """The chat template's text for this many pictures and the question."""
    content = [*[{"type": "image"}] * images, {"type": "text", "text": QUESTION}]
    talk = [{"role": "user", "content": content}]
    words = AutoTokenizer.from_pretrained(folder)
    return str(words.apply_chat_template(talk, tokenize=False, add_generation_prompt=True))
