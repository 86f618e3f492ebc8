"""The released forms load: every tensor bit for bit, the prompt's ids, and no weight made up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from sentencepiece import SentencePieceProcessor

from engine import media
from engine.models.adapter import Adapter
from engine.models.eventgpt import EVENT_TOKEN_ID
from engine.prompts import DEFAULT_QUESTION
from engine.types import Sample
from tests import published_checkpoints
from tests.conftest import picture, slow_unless
from tests.models.conftest import loaded

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("cache_dir")]
FORMS: list[tuple[str, Callable[[str], str], published_checkpoints.Form]] = [
    (family, layout, form)
    for family, layouts in published_checkpoints.LAYOUTS.items()
    for layout in layouts
    for form in ("safetensors", "bin")
]


@pytest.mark.parametrize(
    ("family", "layout", "form"),
    slow_unless(FORMS[::4], FORMS),
)
def test_every_tensor_arrives_bit_for_bit(
    family: str, layout: Callable[[str], str], form: published_checkpoints.Form, tmp_path: Path
) -> None:
    held = published_checkpoints.build(tmp_path, family, layout, form, shards=3)
    adapter = loaded(tmp_path, family)
    own = published_checkpoints.flat if family == "eventgpt" else published_checkpoints.newest
    found = dict(adapter.model.state_dict())
    assert set(found) == {own(key) for key in held}
    for key, tensor in held.items():
        arrived = found[own(key)][: len(tensor)]  # EventGPT's embedding has grown by <ev_patch>
        assert torch.equal(arrived, tensor.float()), key
    assert adapter.info.missing == ()
    assert adapter.info.parameters == sum(tensor.numel() for tensor in held.values())


# EventGPT's folder as its authors publish it


@pytest.fixture
def copy(release_copy: Path) -> Path:
    return release_copy


def ids_of(adapter: Adapter, question: str = DEFAULT_QUESTION) -> list[int]:
    return adapter.prompt_ids(question, 5)[0]


def rewrite(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """The folder with these weights."""
    for file in [*folder.glob("*.bin"), *folder.glob("*.index.json")]:
        file.unlink()
    published_checkpoints.write(folder, tensors, "bin")
    published_checkpoints.change_config(folder, vocab_size=len(tensors["lm_head.weight"]))


def test_the_default_prompt_has_60_ids_with_the_markers_as_pieces(release: Path) -> None:
    adapter = loaded(release, "eventgpt")
    ids = ids_of(adapter)
    assert len(ids) == 60 and ids.count(1) == 1 and ids[0] == 1
    assert ids.count(EVENT_TOKEN_ID) == 1 and ids.index(EVENT_TOKEN_ID) == 39
    pieces = adapter.tokenizer.convert_ids_to_tokens
    assert pieces(ids[1:39]) == published_checkpoints.HEAD
    assert pieces(ids[40:]) == published_checkpoints.TAIL
    sentencepiece = SentencePieceProcessor(model_file=str(release / "tokenizer.model"))
    before, after = adapter.prompt.format(question=DEFAULT_QUESTION).split("<event>")
    assert ids == [1, *sentencepiece.encode(before), EVENT_TOKEN_ID, *sentencepiece.encode(after)]
    with pytest.raises(ValueError, match="2 event tokens"):
        adapter.model.embed_prompt(torch.tensor([[*ids, EVENT_TOKEN_ID]]), torch.zeros(10, 32))


@pytest.mark.parametrize(
    ("stated", "start_end", "count"),
    [
        (None, True, 54),  # markers are special tokens, read as the published code reads them
        ({"legacy": None}, True, 54),
        ({"legacy": False}, True, 53),
        ({"legacy": False}, False, 60),
        ({"add_bos_token": False, "legacy": False, "bos_token": "<s>"}, False, 60),
    ],
)
def test_the_flags_and_the_tokenizer_config_decide_the_markers(
    copy: Path, stated: dict[str, Any] | None, start_end: bool, count: int
) -> None:
    if stated is not None:
        (copy / "tokenizer_config.json").write_text(json.dumps(stated))
    published_checkpoints.change_config(copy, mm_use_im_start_end=start_end)
    adapter = loaded(copy, "eventgpt")
    ids = ids_of(adapter)
    assert len(ids) == count and ids.count(1) == 1 and ids.count(EVENT_TOKEN_ID) == 1
    tokens = adapter.tokenizer.convert_ids_to_tokens([id_ for id_ in ids if id_ >= 0])
    assert ("<ev_start>" in tokens) is ("<ev_end>" in tokens) is start_end
    vocabulary = SentencePieceProcessor(model_file=str(copy / "tokenizer.model")).get_piece_size()
    rows = adapter.model.get_input_embeddings().num_embeddings
    assert rows == len(adapter.tokenizer) == vocabulary + (3 if start_end else 1)


@pytest.mark.parametrize("count", [1, 2, 10])
def test_one_event_image_up_to_ten(release: Path, tmp_path: Path, count: int) -> None:
    images = tuple(picture(tmp_path / f"e_{n}.png", n) for n in range(count))
    shown = media.load(Sample("s", "q", event_images=images), "events")
    adapter = loaded(release, "eventgpt")
    prepared = adapter.preprocess(shown, DEFAULT_QUESTION)
    features = adapter.encode(prepared)
    assert prepared.pixels.shape[0] == count and len(features.rows) == count + 5
    embedded = adapter.embed(prepared, features).shape[1]
    assert prepared.context_tokens == 59 + count + 5 == embedded


def test_rows_beyond_the_tokenizer_are_cut(copy: Path) -> None:
    """As the published code resizes: no answer can hold an id that stands for no text."""
    before = loaded(copy, "eventgpt")
    size = len(before.tokenizer)
    tensors = dict(before.model.state_dict())
    for key in ("lm_head.weight", "model.embed_tokens.weight"):
        tensors[key] = torch.cat([tensors[key], tensors[key].new_full((7, 32), 9.0)])
    rewrite(copy, tensors)
    adapter = loaded(copy, "eventgpt")
    for layer in (adapter.model.get_input_embeddings(), adapter.model.get_output_embeddings()):
        assert len(layer.weight) == size
    assert torch.equal(adapter.model.lm_head.weight, before.model.lm_head.weight)
    assert adapter.text_config.vocab_size == size
