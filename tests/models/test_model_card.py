"""A model's card: what a folder tells unloaded, what loading adds, and that results carry it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from engine.models import checkpoint_files, registry
from engine.types import Tower
from tests import published_checkpoints
from tests.models.conftest import entry_for, loaded


@pytest.fixture
def folder(tiny_models: Path, tiny_copy: Callable[..., Path]) -> Path:
    return tiny_copy("llava")


def test_a_folder_tells_who_it_is_without_a_weight_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_files, "_hashes", lambda _: pytest.fail("read every byte"))
    card = registry.card(entry_for(folder, "llava"))
    assert card.source == str(folder) and card.revision is None and card.digest == ""
    assert card.tower == Tower(16, 3, 2, 32, 16)
    assert (card.visual_tokens, card.images, card.context_limit) == (4, 1, 1024)
    assert (card.dtype, card.stored_dtype, card.quantization) == ("float32", "float16", None)
    held = load_file(folder / "model.safetensors").values()
    assert card.parameters == sum(tensor.numel() for tensor in held)
    assert card.missing is None and card.extra is None  # only loading shows


def test_bin_files_have_a_digest_and_no_count(tmp_path: Path, cache_dir: Path) -> None:
    published_checkpoints.build(tmp_path, "llava", published_checkpoints.released, "bin")
    card = registry.card(entry_for(tmp_path, "llava"))
    assert card.headers and card.parameters is None
    files = sorted(tmp_path.glob("*.bin"))
    one, two = (checkpoint_files._contents(file, "x") for file in files)
    assert one != two
    known = loaded(tmp_path, "llava").info
    assert known.parameters is not None
    assert known.parameters <= checkpoint_files.weight_count(tmp_path, "x")


def test_loading_adds_what_is_extra(folder: Path) -> None:
    file = folder / "model.safetensors"
    tensors = load_file(file)
    stray = tensors["language_model.lm_head.weight"].clone()
    save_file(tensors | {"odd.weight": stray}, file, metadata={"format": "pt"})
    item = entry_for(folder, "llava")
    adapter = registry.load(item)
    assert adapter.info.extra == ("odd.weight",) and adapter.info.missing == ()
    assert registry.card(item) is adapter.info and adapter.info.device == "cpu"
    registry.unload(item)
    assert registry.card(item).extra is None
