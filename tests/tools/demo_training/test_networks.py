"""The demo networks are the engine's own classes, and are taught as the engine runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.demo.scenes import draw_truth
from tools.demo_training.joint_training import AttributeRows
from tools.demo_training.lessons import attention, draw_lesson, encode, lesson_loss, positions
from tools.demo_training.networks import FAMILIES, Family, new_network, save_network
from tools.demo_training.tokenizer import FRAMES, build_tokenizer
from tools.demo_training.towers import normalise, tokens_of

pytestmark = pytest.mark.loads


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer()


def random_pixels(count: int) -> Any:
    return torch.randn(count, 3, 96, 96, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_taught_rows_are_the_rows_at_run_time(family: Family, tokenizer: Any) -> None:
    network = new_network(family, tokenizer)
    network.model.eval()
    count = {"llava": 1, "video_llava": 8, "eventgpt": 5}[family]
    pixels = random_pixels(count)
    sight = "events" if family == "eventgpt" else "frames"
    ours = network.rows(tokens_of(network.tower, pixels, sight)[None])[0]
    inner = network.model.model
    theirs = {
        "llava": lambda: inner.get_image_features(pixels).pooler_output[0],
        "video_llava": lambda: inner.get_video_features(pixels[None]).pooler_output.flatten(0, 1),
        "eventgpt": lambda: network.model.encode_batch([pixels])[0],
    }[family]()
    assert ours.shape[0] == {"llava": 36, "video_llava": 8 * 37, "eventgpt": 42}[family]
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("family", ("llava", "video_llava"))
def test_prompt_pieces_are_the_prompt(family: Family, tokenizer: Any) -> None:
    voice, marker = ("image", "<image>") if family == "llava" else ("video", "<video>")
    question = "What are the key elements in this scene?"
    before, after = (part.format(q=question) for part in FRAMES[voice])
    whole = tokenizer(f"USER: {marker}\n{question} ASSISTANT:").input_ids
    pieces = [*encode(tokenizer, before), tokenizer.convert_tokens_to_ids(marker)]
    assert whole == [tokenizer.bos_token_id, *pieces, *encode(tokenizer, after)]


def test_event_pieces_are_the_published_prompt() -> None:
    from engine.models.eventgpt import EventGPTAdapter

    before, after = EventGPTAdapter.prompt.split("<event>")
    assert (before, after) == tuple(part.replace("{q}", "{question}") for part in FRAMES["event"])


def test_tokenizer_gives_text_back(tokenizer: Any) -> None:
    for text in (" The road curves to the left.", "Grüße, 東京!", "USER: \n"):
        assert tokenizer.decode(encode(tokenizer, text)) == text
    assert tokenizer.decode([tokenizer.eos_token_id], skip_special_tokens=True) == ""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_folder_is_whole(family: Family, tokenizer: Any, tmp_path: Path) -> None:
    network = new_network(family, tokenizer)
    save_network(network, tokenizer, tmp_path)
    again, report = type(network.model).from_pretrained(
        tmp_path, dtype=torch.float32, output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
    kept = dict(network.model.state_dict())
    for name, value in again.state_dict().items():
        assert torch.equal(value, kept[name]), name
    assert again.generation_config.eos_token_id == tokenizer.eos_token_id


def test_pairs_do_not_see_each_other(tokenizer: Any) -> None:
    """The loss of several questions after one look is that of each alone, by target weight."""
    rng, network = np.random.default_rng(4), new_network("llava", tokenizer)
    network.model.eval()
    lesson = draw_lesson(tokenizer, [draw_truth(rng)], ["image"], rng, 3)
    rows = torch.randn(1, 36, 192, generator=torch.Generator().manual_seed(5))
    embed = network.language.embed_tokens
    with torch.no_grad():
        together, _ = lesson_loss(network.language, embed, network.head, rows, lesson)
        total = weights = 0.0
        for number in range(1, 4):
            mine = lesson.pair[0] == number
            alone = type(lesson)(
                before=lesson.before,
                after=lesson.after[:, mine],
                pair=torch.ones_like(lesson.pair[:, mine]),
                place=lesson.place[:, mine],
                weight=lesson.weight[:, mine],
            )
            weight = float(alone.weight.sum())
            total += (
                float(lesson_loss(network.language, embed, network.head, rows, alone)[0]) * weight
            )
            weights += weight
    assert float(together) == pytest.approx(total / weights, rel=1e-4)


def test_mask_and_positions(tokenizer: Any) -> None:
    rng = np.random.default_rng(6)
    lesson = draw_lesson(tokenizer, [draw_truth(rng)] * 2, ["image"] * 2, rng, 2)
    mask, place = attention(lesson, visual=4)[:, 0], positions(lesson, visual=4)
    prefix = len(lesson.before) + 4
    second = prefix + int((lesson.pair[0] == 1).sum())
    assert place[0, second] == prefix == place[0, prefix]
    assert torch.isinf(mask[0, second, prefix:second]).all()
    assert (mask[0, second, :prefix] == 0).all()
    assert torch.isinf(mask[0].triu(1)[0, 1:]).all()
    assert not torch.isinf(mask).all(-1).any()


def test_told_rows_differ_with_the_truth() -> None:
    rng = np.random.default_rng(7)
    attribute_rows = AttributeRows(16)
    truths = [draw_truth(rng) for _ in range(4)]
    rows = attribute_rows(truths, 1, np.random.default_rng(1))
    assert rows.shape == (4, 8, 16)
    used = {tuple(sorted(attribute_rows._codes(truth))) for truth in truths}
    assert len(used) == len({tuple(sorted(truth.items())) for truth in truths})


def test_normalised_pixels_are_the_processors(tmp_path: Path, tokenizer: Any) -> None:
    from transformers import CLIPImageProcessorPil

    from tools.demo_training.corpus import SQUARE, _resize

    image = np.random.default_rng(8).integers(0, 255, (120, 160, 3), dtype=np.uint8)
    save_network(new_network("llava", tokenizer), tokenizer, tmp_path)
    processor = CLIPImageProcessorPil.from_pretrained(tmp_path)
    theirs = processor(image, return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(normalise(_resize(image[None], SQUARE)), theirs, atol=1e-5, rtol=0)
