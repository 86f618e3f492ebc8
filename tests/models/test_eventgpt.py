"""The event model's published path, its prompt, and how its checkpoints are read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentencepiece import SentencePieceProcessor

from engine import media
from engine.decoding import decode
from engine.decoding.generation_rules import AnswerRules
from engine.errors import ModelUnavailable
from engine.models import registry
from engine.models.adapter import Adapter
from engine.models.eventgpt_model import EVENT_TOKEN_ID, EventGPT
from engine.types import DecodeConfig, Prepared, Sample
from tests import tiny
from tests.models.conftest import entry_for

QUESTION = "What is on the road?"


@pytest.fixture
def copy(tiny_models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_models / "eventgpt", tmp_path / "copy"))


@pytest.fixture
def adapter(tiny_models: Path) -> Adapter:
    return registry.load(registry.entry("tiny-eventgpt"))


@pytest.fixture
def prepared(adapter: Adapter, sample: Sample) -> Prepared:
    return adapter.preprocess(media.load(sample, "events"), QUESTION)


def test_five_images_and_the_adaptor_once(adapter: Adapter, prepared: Prepared) -> None:
    """The pooled rows, recomputed step by step from the parts."""
    model = adapter.model.model
    assert prepared.pixels.shape[0] == 5
    with torch.no_grad():
        tokens = [
            model.feature_adaptor(model.visual_projector(model.visual_tower(image[None])))[0]
            for image in prepared.pixels
        ]
        expected = torch.stack(
            [one.mean(dim=0) for one in tokens] + list(torch.stack(tokens).mean(dim=0))
        )
        rows = adapter.encode(prepared).rows
        torch.testing.assert_close(rows, expected)
        twice = model.feature_adaptor(rows)
        one_image = adapter.model.encode_events(prepared.pixels[:1])
    assert (
        rows.shape[0]
        == 5 + expected.shape[0] - 5
        == prepared.context_tokens - (prepared.input_ids.shape[1] - 1)
    )
    assert not torch.allclose(rows, twice, atol=1e-3)  # control: a second adaptor is seen
    assert one_image.shape[0] != rows.shape[0]  # control: a single image is seen


def test_published_generate_equals_the_cached_path(adapter: Adapter, prepared: Prepared) -> None:
    rules = AnswerRules(DecodeConfig(max_new_tokens=30), adapter.eos_ids)
    config = decode.generation_config(rules)
    calls: list[int] = []
    handle = adapter.model.model.feature_adaptor.register_forward_hook(
        lambda module, given, out: calls.append(out.shape[0])
    )
    published = adapter.model.generate(
        prepared.input_ids, event_tensors=prepared.pixels, generation_config=config
    )
    assert calls == [5]
    found = adapter.encode(prepared)
    calls.clear()
    features = adapter.model.generate(
        prepared.input_ids, event_features=found.rows, generation_config=config
    )
    handle.remove()
    assert not calls
    assert published.tolist() == features.tolist()
    embeds = adapter.embed(prepared, found)
    ids, _ = decode.generate(adapter.decoder, embeds, rules, lambda _: None, lambda: False)
    assert published[0].tolist() == ids


def test_prompt_has_one_bos_and_one_event_token(adapter: Adapter) -> None:
    ids, context = adapter.prompt_ids(QUESTION, 5)
    assert ids[0] == adapter.tokenizer.bos_token_id
    assert ids.count(adapter.tokenizer.bos_token_id) == 1
    assert ids.count(EVENT_TOKEN_ID) == 1
    before = adapter.tokenizer.decode(ids[1 : ids.index(EVENT_TOKEN_ID)])
    after = adapter.tokenizer.decode(ids[ids.index(EVENT_TOKEN_ID) + 1 :])
    assert before.endswith("USER: <ev_start>")
    assert after == f"<ev_end>\n{QUESTION} ASSISTANT:"
    assert context == len(ids) - 1 + 5 + 5


def test_two_event_tokens_are_refused(adapter: Adapter, prepared: Prepared) -> None:
    ids = torch.cat([prepared.input_ids, torch.tensor([[EVENT_TOKEN_ID]])], dim=1)
    with pytest.raises(ValueError, match="2 event tokens"):
        adapter.model.embed_prompt(ids, torch.zeros(10, 32))


@pytest.mark.parametrize("missing", ["visual_tower", "feature_adaptor", "lm_head"])
def test_missing_weights_are_refused(copy: Path, missing: str) -> None:
    file = copy / "model.safetensors"
    kept = {key: value for key, value in load_file(file).items() if missing not in key}
    save_file(kept, file, metadata={"format": "pt"})
    with pytest.raises(ModelUnavailable, match=f"lacks .*{missing}"):
        registry.load(entry_for(copy))


def test_released_key_layout_loads_the_same_weights(copy: Path, adapter: Adapter) -> None:
    """The release has `vision_model.` in its keys and stray buffers."""
    file = copy / "model.safetensors"
    inner = "visual_tower.visual_tower."
    released = {
        key.replace(inner, f"{inner}vision_model."): v for key, v in load_file(file).items()
    }
    assert any("vision_model." in key for key in released)
    save_file(released, file, metadata={"format": "pt"})
    model, report = EventGPT.from_pretrained(
        copy, dtype=torch.float32, output_loading_info=True, local_files_only=True
    )
    assert not report["missing_keys"]
    ours = adapter.model.state_dict()
    assert all(torch.equal(value, ours[key]) for key, value in model.state_dict().items())


def test_patch_token_grows_the_embedding_by_its_mean(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"mm_use_im_patch_token": True}))
    adapter = registry.load(entry_for(copy))
    head = adapter.model.lm_head.weight
    assert len(adapter.tokenizer) == head.shape[0] == config["vocab_size"] + 1
    torch.testing.assert_close(head[-1], head[:-1].mean(dim=0))


def test_tokenizer_larger_than_the_embedding_is_refused(copy: Path) -> None:
    path = copy / "tokenizer.json"
    words = json.loads(path.read_text())
    words["model"]["vocab"] |= {"extra": len(words["model"]["vocab"])}
    path.write_text(json.dumps(words))
    with pytest.raises(ModelUnavailable, match="has 262 tokens, but the embedding 261"):
        registry.load(entry_for(copy))


def test_the_published_form_with_a_bare_sentencepiece_model(
    tiny_models: Path, tmp_path: Path, sample: Sample
) -> None:
    """tokenizer.model alone, flags absent, a tower path of somebody else's machine."""
    folder, raw = tiny.eventgpt(tmp_path / "published", 330), tiny.sentencepiece_model(330)
    for name in ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):
        (folder / name).unlink()
    (folder / "tokenizer.model").write_bytes(raw)
    config = json.loads((folder / "config.json").read_text())
    del config["mm_use_im_patch_token"], config["mm_use_im_start_end"]
    config["mm_visual_tower"] = "/home/somebody/clip-vit-large-patch14-336"
    (folder / "config.json").write_text(json.dumps(config))
    adapter = registry.load(entry_for(folder))

    pieces = SentencePieceProcessor(model_proto=raw)
    before, after = adapter.prompt.format(question=QUESTION).split("<event>")
    expected = [1, *pieces.encode(before), EVENT_TOKEN_ID, *pieces.encode(after)]
    assert adapter.prompt_ids(QUESTION, 5)[0] == expected
    assert adapter.tokenizer.convert_tokens_to_ids("<ev_patch>") == 330
    assert adapter.model.lm_head.weight.shape[0] == 331


def test_a_folder_without_a_tokenizer_is_refused(copy: Path) -> None:
    (copy / "tokenizer.json").unlink()
    with pytest.raises(ModelUnavailable, match=r"no tokenizer\.json and no tokenizer\.model"):
        registry.load(entry_for(copy))


def test_no_processor_config_uses_the_published_values(copy: Path) -> None:
    (copy / "preprocessor_config.json").unlink()
    adapter = registry.load(entry_for(copy))
    assert adapter.image_processor.crop_size["height"] == tiny.SIZE
    assert any("clip-vit-large-patch14-336" in note for note in adapter.notes)
