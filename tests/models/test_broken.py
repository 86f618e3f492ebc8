"""A folder that cannot run is refused in one sentence that names the fault, and leaves nothing."""

import gc
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from engine.errors import ModelUnavailable, NotFinite
from engine.models import registry
from engine.pipeline import single_run
from engine.pipeline.feature_cache import FeatureCache
from engine.types import Mode, RunOptions, RunRequest, Sample
from tests import published_checkpoints
from tests.conftest import slow_unless
from tests.models import published_folders
from tests.models.conftest import CROPPED, OWN_FAMILIES, entry_for, loaded
from tests.models.published_folders import change

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("cache_dir")]
Damage = Callable[[Path], object]
Row = tuple[Damage, str]  # what happens to a folder, what is said of it
POINTER = "version https://git-lfs.github.com/spec/v1\n"
INDEX = "model.safetensors.index.json"
LORA = {"base_model_name_or_path": "Qwen/Qwen2.5-VL-3B-Instruct", "peft_type": "LORA"}
USE_LLAVA = "use llava-hf/llava-1.5-7b-hf"
USE_VIDEO_LLAVA = "use LanguageBind/Video-LLaVA-7B-hf"


def config(**fields: Any) -> Damage:
    return lambda folder: change(folder, "config.json", **fields)


def fields(file: str, **values: Any) -> Damage:
    return lambda folder: change(folder, file, **values)


def text(file: str, content: str) -> Damage:
    return lambda folder: (folder / file).write_text(content)


def absent(file: str) -> Damage:
    return lambda folder: next(folder.glob(file)).unlink()


def cut(file: str) -> Damage:
    def damage(folder: Path) -> None:
        path = next(folder.glob(file))
        path.write_bytes(path.read_bytes()[:-200])

    return damage


def weights(change_: Callable[[dict[str, torch.Tensor]], object]) -> Damage:
    """Other tensors, in files of the form that the folder has."""

    def damage(folder: Path) -> None:
        form: published_checkpoints.Form = "bin" if [*folder.glob("*.bin")] else "safetensors"
        if form == "bin":
            files = [*folder.glob("*.bin"), *folder.glob("*.index.json")]
            tensors: dict[str, torch.Tensor] = {}
            for file in folder.glob("*.bin"):
                tensors |= torch.load(file, weights_only=True)
            for file in files:
                file.unlink()
        else:
            tensors = published_checkpoints.weights(folder)
        change_(tensors)
        published_checkpoints.write(folder, tensors, form, shards=1)

    return damage


def without(part: str) -> Damage:
    return weights(lambda held: [held.pop(name) for name in list(held) if part in name])


def misshapen(part: str) -> Damage:
    return weights(lambda held: [held.update({n: torch.zeros(7)}) for n in held if part in n])


def odd_header(folder: Path) -> None:
    content = b'{"a": "b"}'
    (folder / "model.safetensors").write_bytes(len(content).to_bytes(8, "little") + content)


def no_archive(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(print) * 20_000)


def lora_adapter(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    published_folders.write(folder, "adapter_config.json", LORA)
    (folder / "adapter_model.safetensors").write_bytes(b"x")


def gguf(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-Q4_K_M.gguf")


class _Code:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("run",))


def bin_with_code(folder: Path) -> None:
    file = next(folder.glob("*.bin"))
    torch.save(torch.load(file, weights_only=True) | {"x": _Code()}, file)


def damaged_pickle(folder: Path) -> None:
    """In a zip whose directory is whole."""
    file = next(folder.glob("*.bin"))
    data = bytearray(file.read_bytes())
    place = data.index(b"data.pkl") + 80
    data[place : place + 40] = b"\xff" * 40
    file.write_bytes(data)


def unlisted_shard(folder: Path) -> None:
    path = folder / "pytorch_model.bin.index.json"
    table = json.loads(path.read_text())["weight_map"]
    last = max(table.values())
    change(folder, path.name, weight_map={k: v for k, v in table.items() if v != last})


def fewer_rows(folder: Path) -> None:
    change(folder, "config.json", vocab_size=400)

    def shorten(held: dict[str, torch.Tensor]) -> None:
        for name in ("lm_head.weight", "model.embed_tokens.weight"):
            held[name] = held[name][:400]

    weights(shorten)(folder)


def sections(section: object) -> Damage:
    def damage(folder: Path) -> None:
        text_config = published_checkpoints.read_config(folder)["text_config"]
        text_config["rope_parameters"]["mrope_section"] = section
        change(folder, "config.json", text_config=text_config)

    return damage


def shard(second: str) -> Damage:
    """An index that lists this file too."""
    return text(INDEX, json.dumps({"weight_map": {"x": "model.safetensors", "y": second}}))


def pixels(**values: Any) -> Damage:
    return fields("preprocessor_config.json", **values)


def cropped(**settings: Any) -> Damage:
    return processor(**CROPPED | settings)


def processor(**settings: Any) -> Damage:
    return text("preprocessor_config.json", json.dumps(settings))


def generation(**values: Any) -> Damage:
    return fields("generation_config.json", **values)


# "release": EventGPT as published; "published": the files of a Qwen2.5-VL without its weights
LISTED: dict[str, list[Row]] = {
    "llava": [
        (absent("config.json"), "has no config.json"),
        (text("config.json", "[1]"), "config.json is not a JSON object"),
        (text("config.json", '{"a":' * 5000), "config.json cannot be read"),
        (absent("*.safetensors"), "has no weights"),
        (cut("*.safetensors"), "safetensors is not a complete safetensors file"),
        (odd_header, "model.safetensors is not a complete safetensors file"),
        (text("model.safetensors", POINTER), "safetensors is a git-lfs pointer"),
        (text(INDEX, '{"weight_map": ["a"]}'), "lists no weights"),
        (shard("b.safetensors"), "lacks .*b.safetensors, which its index lists"),
        (shard("../other.safetensors"), "other.safetensors, which lies outside its folder"),
        (no_archive, "pytorch_model.bin is not a complete file of PyTorch"),
        (config(vision_config=5), "config.json: vision_config is 5"),
        (config(model_type=5), "model_type is 5"),
        (config(model_type="video_llava"), "model_type is 'video_llava'"),
        (config(model_type="qwen2_vl"), f"'qwen2_vl' .*{USE_LLAVA}"),
        (
            config(vision_config={"model_type": "siglip_vision_model"}),
            f"vision_config .* 'siglip_vision_model'.*{USE_LLAVA}",
        ),
        (config(text_config={"model_type": "qwen2"}), f"text_config .* 'qwen2'.*{USE_LLAVA}"),
        (config(model_type="llava_next_video"), USE_VIDEO_LLAVA),
        (config(architectures=["LlavaLlamaForCausalLM"]), f"authors' own format.*{USE_LLAVA}"),
        (config(mm_vision_tower="openai/clip"), f"authors' own format.*{USE_LLAVA}"),
        (generation(guidance_scale=1.5), "guidance_scale"),
        (generation(encoder_repetition_penalty=1.5), "encoder_repetition_penalty"),
        (generation(penalty_alpha=0.6), "penalty_alpha"),
        (generation(custom_generate="evil"), "custom_generate"),
    ],
    "video_llava": [
        (config(mm_video_tower="LanguageBind"), f"authors' own format.*{USE_VIDEO_LLAVA}"),
    ],
    "release": [(config(hidden_size="wide"), "hidden_size is 'wide' .expected int")],
    "published": [
        (config(model_type="qwen2"), "'qwen2', a language model that answer"),
        (config(model_type="qwen9_vl"), "'qwen9_vl', which is no .* or a newer transformers"),
        (
            config(model_type="new_chat", auto_map={"AutoModel": "code.Model"}),
            "no code from repositories: use a checkpoint in transformers' own form",
        ),
        (config(model_type="EventChat_llama"), 'write family = "eventgpt" in models.toml'),
        (absent("tokenizer.json"), "its tokenizer is missing"),
        (lora_adapter, "only a LoRA adapter of 'Qwen/Qwen2.5-VL-3B-Instruct', not a whole model"),
        (gguf, "holds only GGUF files"),
        (config(quantization_config={"quant_method": "gptq"}), "stored quantized .'gptq'., which"),
        (
            config(text_config={"quantization_config": {"quant_method": "awq"}}),
            "stored quantized .'awq'.",
        ),
        (pixels(size={"shortest_edge": "small"}), "preprocessor_config.json: size.* is .*'small'"),
        (config(vision_config={"hidden_size": 0}), "hidden_size is 0"),
        (generation(stop_strings=["end"]), "stop_strings"),
    ],
}
ONLY_AT_LOAD: dict[str, list[Row]] = {
    "release": [
        (bin_with_code, "bin holds more than tensors .*print"),
        (cut("*.bin"), "bin is not a complete file of PyTorch weights"),
        (damaged_pickle, "bin (is not a complete file|holds more than tensors)"),
        (text("tokenizer.model", POINTER), r"tokenizer\.model is a git-lfs .* `git lfs pull`"),
        (absent("*.bin"), "lacks .*bin, which its index lists"),
        (unlisted_shard, "describes .* weights, but the files hold"),
        (absent("*.index.json"), "has no weights in .* of shards with their index"),
        (absent("tokenizer.model"), r"no tokenizer\.json and no tokenizer\.model"),
        (text("tokenizer.model", "\0 no model"), "tokenizer in .* cannot be loaded"),
        (fewer_rows, r"tokenizer has 4\d\d tokens, but the embedding 400 rows"),
        (without("projector.2.bias"), "lacks 1 weight .*visual_projector.2.bias"),
        (misshapen("projector.2.bias"), r"wrong shape for 1.*projector.2.bias.* is \(7,\), not \("),
    ],
    "eventgpt": [(without("visual_tower"), "lacks .*visual_tower")],
    "llava": [
        (without("projector.linear_2.bias"), "lacks 1 weight .*projector.linear_2.bias"),
        (config(text_config=...), "describes .* weights, but the files hold"),
        (config(text_config={"num_attention_heads": 7}), "config.json in .* loaded .*heads .7"),
        (generation(eos_token_id="x"), "generation_config.json: eos_token_id is 'x'"),
        (generation(eos_token_id=10**6), "1000000"),
        (generation(suppress_tokens=[10**6]), "1000000"),
        (text("tokenizer_config.json", "{}"), "no bos_token"),
        (config(vision_feature_layer=0), "vision_feature_layer of its .* is 0"),
        (config(vision_feature_layer=-50), "vision_feature_layer of its .* is -50"),
        (config(vision_feature_layer=[]), "vision_feature_layer"),
        (config(vision_feature_layer=[-2, 0]), "has a wrong shape"),
        (config(image_token_id=None), "cannot be loaded"),
        (config(image_token_index=1), "from one checkpoint"),
        (
            processor(image_processor_type="Evil", auto_map={"AutoImageProcessor": "evil.X"}),
            "image processor Evil in .* cannot be loaded",
        ),
        (
            processor(image_processor_type="CLIPImageProcessor"),
            r"makes pixels of .*224.*from one",
        ),
        (cropped(resample=99), "image processor .* cannot be loaded .*99"),
        (cropped(size={"shortest_edge": 10**9}), "size.* is .*1000000000"),
        (cropped(image_std=1e308), r"preprocessor_config\.json: image_std is .* \(expected "),
        (cropped(image_std=[0.5, 1e-300, 0.5]), r"image_std is .* \(expected "),
        (cropped(image_std=[]), r"image_std is .* \(expected "),
        (cropped(image_mean=[-1e308] * 3), r"image_mean is .* \(expected "),
        (cropped(image_mean="x"), r"image_mean is .* \(expected "),
        (cropped(rescale_factor=0), r"rescale_factor is .* \(expected "),
    ],
    "qwen2_5_vl": [
        (pixels(merge_size=1), "writes other visual tokens than .* features for.*one checkpoint"),
        (
            pixels(patch_size=14),
            r"cannot be loaded \(shape '\[32, -1\]' is invalid.*one checkpoint",
        ),
        (sections(None), r"mrope_section is None \(expected array, got null\)"),
        (sections((-1, 3, 2)), r"mrope_section is \[-1, 3, 2\] \(expected int >= 0\)"),
        (sections((1, 1, 1)), "in a trial with a picture, in "),
    ],
}


def words(value: object) -> str:
    """A parameter in a test's name."""
    return value if isinstance(value, str) else ""


def rows(table: dict[str, list[Row]]) -> list[tuple[str, Damage, str]]:
    return [(source, *row) for source, found in table.items() for row in found]


@pytest.fixture
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], tuple[Path, str]]:
    """A copy of a small folder and its family."""

    def copy(source: str) -> tuple[Path, str]:
        if source == "release":
            return request.getfixturevalue("release_copy"), "eventgpt"
        if source == "published":
            return published_folders.build(tmp_path / source), "transformers"
        if source in OWN_FAMILIES:
            return request.getfixturevalue("tiny_copy")(source), source
        folder = request.getfixturevalue("family_folder")(source)
        return Path(shutil.copytree(folder, tmp_path / source)), "transformers"

    return copy


@pytest.mark.parametrize(("source", "damage", "said"), rows(LISTED), ids=words)
def test_what_cannot_run_is_refused_in_the_list(
    source: str, damage: Damage, said: str, copied: Callable[[str], tuple[Path, str]]
) -> None:
    folder, family = copied(source)
    entry = entry_for(folder, family)
    assert registry.unavailable(entry) is None  # control: the undamaged folder is accepted
    damage(folder)
    with pytest.raises(ModelUnavailable, match=said) as caught:
        loaded(folder, family)
    assert registry.unavailable(entry) == str(caught.value)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("source", "damage", "said"),
    slow_unless(rows(ONLY_AT_LOAD)[::3], rows(ONLY_AT_LOAD)),
    ids=words,
)
def test_what_only_loading_shows_is_refused_and_leaves_no_model_in_memory(
    source: str,
    damage: Damage,
    said: str,
    copied: Callable[[str], tuple[Path, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, family = copied(source)
    damage(folder)
    gc.collect()
    before = models_in_memory()
    with pytest.raises(ModelUnavailable, match=said) as caught:
        loaded(folder, family)
    assert "\n" not in str(caught.value)
    assert models_in_memory() == before  # though the error is still held
    assert entry_for(folder, family) not in registry.resident()
    assert "run" not in capsys.readouterr().out.split()


def models_in_memory() -> int:
    """Models that are not on the meta device, where sizes are counted."""
    found = [one for one in gc.get_objects() if issubclass(type(one), PreTrainedModel)]
    return sum(one.device.type != "meta" for one in found)


def test_control_a_model_in_memory_is_counted(release: Path) -> None:
    gc.collect()
    before = models_in_memory()
    adapter = loaded(release, "eventgpt")
    assert models_in_memory() > before and adapter.use.runs == 0


@pytest.mark.parametrize("name", ["config.json", "tokenizer.model", "*.bin"])
def test_no_permission_is_said_of_the_file(
    release: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated, because whoever runs the tests may be allowed everything."""
    closed = next(release.glob(name))
    plain = Path.open

    def denied(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(ModelUnavailable, match=f"{closed.name} cannot be read .*denied"):
        loaded(release, "eventgpt")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("model-Q4_K_M.gguf", "is a GGUF file, which StageScope does not read"),
        ("model.bin", "is a file, not a checkpoint folder"),
    ],
)
def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ModelUnavailable, match=said):
        loaded(tmp_path / name, "transformers")


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


@pytest.fixture(params=["eventgpt", "llava", "qwen2_5_vl"])
def whole(
    request: pytest.FixtureRequest, copied: Callable[[str], tuple[Path, str]]
) -> tuple[Path, str]:
    return copied(request.param)


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
def test_layers_that_the_config_leaves_out_are_named(whole: tuple[Path, str], part: str) -> None:
    folder, family = whole
    whole_config = published_checkpoints.read_config(folder)
    sizes = whole_config.get(part, whole_config)
    sizes["depth" if "depth" in sizes else "num_hidden_layers"] = 1
    if "layer_types" in sizes:
        sizes["layer_types"] = sizes["layer_types"][:1]
    change(folder, "config.json", **whole_config)
    said = r"no place in the layers of its config\.json .* for \d+ weights "
    with pytest.raises(ModelUnavailable, match=said + r"\(model\..*(layers|blocks)\.1\."):
        loaded(folder, family)


def zero(folder: Path, part: str, rows: slice = slice(None)) -> None:
    """Zeros in these rows of every weight whose name holds this part."""

    def zeros(held: dict[str, torch.Tensor]) -> None:
        found = [tensor for name, tensor in held.items() if part in name]
        assert found
        for tensor in found:
            tensor[rows] = 0

    weights(zeros)(folder)


@pytest.mark.parametrize("part", ["0.mlp.down_proj.weight", "patch"])
def test_a_matrix_of_zeros_is_named(whole: tuple[Path, str], part: str) -> None:
    """As in an unfinished download; `patch`: a tower's first layer, a convolution."""
    folder, family = whole
    zero(folder, part)
    with pytest.raises(ModelUnavailable, match=rf"only zeros in \d+ weights? \(.*{part}"):
        loaded(folder, family)


@pytest.mark.parametrize("part", ["", "norm"])
def test_zeros_in_some_rows_or_in_vectors_are_no_damage(whole: tuple[Path, str], part: str) -> None:
    folder, family = whole
    zero(folder, part, slice(None) if part else slice(1))
    assert loaded(folder, family).info.extra == ()
