"""A broken folder is refused in one sentence that names the file; nothing stays in memory."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.errors import ModelUnavailable, NotFinite
from engine.models import registry
from engine.models.eventgpt_model import EventGPT
from engine.pipeline import single_run
from engine.pipeline.feature_cache import FeatureCache
from engine.types import Mode, RunOptions, RunRequest, Sample
from tests import published_checkpoints
from tests.models.conftest import entry_for, loaded

pytestmark = pytest.mark.usefixtures("cache_dir")


@pytest.fixture
def copy(release_copy: Path) -> Path:
    return release_copy


class _Code:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("run",))


def _bin_with_code(folder: Path) -> str:
    file = next(folder.glob("*.bin"))
    torch.save(torch.load(file, weights_only=True) | {"x": _Code()}, file)
    return f"{file.name} holds more than tensors .*print"


def _truncated_bin(folder: Path) -> str:
    file = next(folder.glob("*.bin"))
    file.write_bytes(file.read_bytes()[:-200])
    return f"{file.name} is not a complete file of PyTorch weights"


def _damaged_bin(folder: Path) -> str:
    """A zip whose directory is whole and whose pickle is not."""
    file = next(folder.glob("*.bin"))
    data = bytearray(file.read_bytes())
    place = data.index(b"data.pkl") + 80
    data[place : place + 40] = b"\xff" * 40
    file.write_bytes(data)
    return f"{file.name} (is not a complete file|holds more than tensors)"


def _pointer_bin(folder: Path) -> str:
    file = next(folder.glob("*.bin"))
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    return f"{file.name} is a git-lfs pointer, .* `git lfs pull`"


def _pointer_tokenizer(folder: Path) -> str:
    (folder / "tokenizer.model").write_text("version https://git-lfs.github.com/spec/v1\n")
    return r"tokenizer\.model is a git-lfs pointer"


def _absent_shard(folder: Path) -> str:
    file = next(folder.glob("*.bin"))
    file.unlink()
    return f"lacks .*{file.name}, which its index lists"


def _unlisted_shard(folder: Path) -> str:
    index = folder / "pytorch_model.bin.index.json"
    table = json.loads(index.read_text())
    last = max(table["weight_map"].values())
    table["weight_map"] = {k: v for k, v in table["weight_map"].items() if v != last}
    index.write_text(json.dumps(table))
    return "describes .* weights, but the files hold"


def _no_index(folder: Path) -> str:
    (folder / "pytorch_model.bin.index.json").unlink()
    return "has no weights in .* of shards with their index"


def _truncated_safetensors(folder: Path) -> str:
    for file in [*folder.glob("*.bin"), *folder.glob("*.index.json")]:
        file.unlink()
    tensors = {"a": torch.zeros(100), "b": torch.zeros(100)}
    first, _ = published_checkpoints.write(folder, tensors, "safetensors")
    first.write_bytes(first.read_bytes()[:-10])
    return f"{first.name} is not a complete safetensors file"


def _broken_tokenizer(folder: Path) -> str:
    (folder / "tokenizer.model").write_bytes(b"\x00\x01 no model")
    return "tokenizer in .* cannot be loaded"


def _large_tokenizer(folder: Path) -> str:
    published_checkpoints.change_config(folder, vocab_size=400)
    tensors = {
        key: tensor[:400] if key in ("lm_head.weight", "model.embed_tokens.weight") else tensor
        for file in folder.glob("*.bin")
        for key, tensor in torch.load(file, weights_only=True).items()
    }
    published_checkpoints.write(folder, tensors, "bin")
    return r"tokenizer has 4\d\d tokens, but the embedding 400 rows"


def _architecture(folder: Path) -> str:
    published_checkpoints.change_config(folder, model_type="qwen2_vl")
    return r"config\.json says its model_type is 'qwen2_vl'"


def _odd_size(folder: Path) -> str:
    published_checkpoints.change_config(folder, hidden_size="wide")
    return r"config\.json: hidden_size is 'wide' \(expected int"


DAMAGES = [
    _bin_with_code,
    _truncated_bin,
    _damaged_bin,
    _pointer_bin,
    _pointer_tokenizer,
    _absent_shard,
    _unlisted_shard,
    _no_index,
    _truncated_safetensors,
    _broken_tokenizer,
    _large_tokenizer,
    _architecture,
    _odd_size,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_is_wrong_is_one_sentence_and_nothing_stays_in_memory(
    copy: Path, damage: Callable[[Path], str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = damage(copy)
    gc.collect()
    before = models_in_memory()
    with pytest.raises(ModelUnavailable, match=said) as caught:
        loaded(copy, "eventgpt")
    assert "\n" not in str(caught.value) and str(copy) in str(caught.value)
    assert models_in_memory() == before  # though the error, and its traceback, is still held
    assert not registry.resident() or entry_for(copy) not in registry.resident()
    assert "run" not in capsys.readouterr().out.split()


def models_in_memory() -> int:
    """Models that are not on the meta device, where sizes are counted."""
    found = [one for one in gc.get_objects() if type(one) is EventGPT]
    return sum(one.device.type != "meta" for one in found)


def test_control_a_model_in_memory_is_counted(copy: Path) -> None:
    gc.collect()
    before = models_in_memory()
    adapter = loaded(copy, "eventgpt")
    assert models_in_memory() == before + 1 and adapter.runs == 0


@pytest.mark.parametrize("name", ["config.json", "tokenizer.model", "*.bin"])
def test_no_permission_is_said_of_the_file(
    copy: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated, because whoever runs the tests may be allowed everything."""
    closed = next(copy.glob(name))
    plain = Path.open

    def denied(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(ModelUnavailable, match=f"{closed.name} cannot be read .*denied"):
        loaded(copy, "eventgpt")


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(ModelUnavailable, match="is a file, not a checkpoint folder"):
        loaded(tmp_path / "f", "llava")


@pytest.mark.parametrize("mode", ["decoupled", "hooked"])
def test_weights_that_are_no_numbers_answer_nothing_and_keep_nothing(
    tiny_models: Path, sample: Sample, cache_dir: Path, mode: Mode
) -> None:
    adapter = registry.load(registry.entry("tiny-llava"))
    adapter.decoder.head.weight.data.fill_(float("nan"))
    cache = FeatureCache(cache_dir / "features", 64)
    request = RunRequest(sample, "tiny-llava", "Why?", RunOptions(mode=mode))
    with pytest.raises(NotFinite, match="copy the checkpoint again"):
        single_run.run(adapter, request, cache)
    assert cache.state().entries == 0
    registry.unload(registry.entry("tiny-llava"))


@pytest.mark.parametrize("layer", [-50, []])
def test_a_layer_that_the_tower_lacks_is_named(tiny_models: Path, layer: object) -> None:
    path = tiny_models / "llava" / "config.json"
    text = path.read_text(encoding="utf-8")
    registry.unload(registry.entry("tiny-llava"))
    path.write_text(json.dumps(json.loads(text) | {"vision_feature_layer": layer}))
    try:
        with pytest.raises(ModelUnavailable, match="vision_feature_layer"):
            registry.load(registry.entry("tiny-llava"))
    finally:
        path.write_text(text, encoding="utf-8")


@pytest.fixture(params=["eventgpt", "llava", "video_llava", "qwen2_5_vl"])
def whole(
    request: pytest.FixtureRequest,
    tiny_folder: Path,
    family_folder: Callable[[str], Path],
    tmp_path: Path,
) -> tuple[Path, str]:
    """A copy of a small checkpoint of each family, and the family."""
    name, own = request.param, tiny_folder / request.param
    source, family = (own, name) if own.exists() else (family_folder(name), "transformers")
    return Path(shutil.copytree(source, tmp_path / name)), family


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = published_checkpoints.weights(folder)
    change(tensors)
    published_checkpoints.write(folder, tensors, "safetensors", shards=1)


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
def test_layers_that_the_config_leaves_out_are_named(whole: tuple[Path, str], part: str) -> None:
    folder, family = whole
    config = published_checkpoints.read_config(folder)
    sizes = config.get(part, config)
    sizes["depth" if "depth" in sizes else "num_hidden_layers"] = 1
    if "layer_types" in sizes:
        sizes["layer_types"] = sizes["layer_types"][:1]
    published_checkpoints.change_config(folder, **config)
    said = r"no place in the layers of its config\.json .* for \d+ weights "
    with pytest.raises(ModelUnavailable, match=said + r"\(model\..*(layers|blocks)\.1\."):
        loaded(folder, family)


def test_a_left_over_bias_of_a_layer_is_named_and_a_head_is_not(whole: tuple[Path, str]) -> None:
    folder, family = whole
    key = next(key for key in published_checkpoints.weights(folder) if "layers.0" in key)
    bias = f"{key.split('.0.')[0]}.0.self_attn.o_proj.bias"
    change_weights(folder, lambda tensors: tensors.update({"old_head.weight": torch.ones(2, 2)}))
    assert loaded(folder, family).info.extra == ("old_head.weight",)
    change_weights(folder, lambda tensors: tensors.update({bias: torch.ones(2)}))
    with pytest.raises(ModelUnavailable, match=r"for 1 weight \(.*0\.self_attn\.o_proj\.bias"):
        loaded(folder, family)


def zero(folder: Path, part: str, rows: slice = slice(None)) -> None:
    """Zeros in these rows of every weight whose name holds this part."""

    def change(tensors: dict[str, torch.Tensor]) -> None:
        found = [tensor for name, tensor in tensors.items() if part in name]
        assert found
        for tensor in found:
            tensor[rows] = 0

    change_weights(folder, change)


@pytest.mark.parametrize("part", ["", "0.mlp.down_proj.weight", "embed_tokens.weight", "patch"])
def test_a_matrix_of_zeros_is_named(whole: tuple[Path, str], part: str) -> None:
    """As in an unfinished download; `patch`: a tower's first layer, a convolution."""
    folder, family = whole
    zero(folder, part)
    with pytest.raises(ModelUnavailable, match=rf"only zeros in \d+ weights? \(.*{part}"):
        loaded(folder, family)


@pytest.mark.parametrize("part", ["", "bias", "norm"])
def test_zeros_in_some_rows_or_in_vectors_are_no_damage(whole: tuple[Path, str], part: str) -> None:
    folder, family = whole
    zero(folder, part, slice(None) if part else slice(1))
    assert loaded(folder, family).info.extra == ()
