"""`models` and `compare` on cards, broken folders and devices that are not here."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.models import registry
from tests import published_checkpoints, tiny
from tests.cli.conftest import Call, Refused
from tests.conftest import picture
from tests.models import published_folders
from tests.served.fake_server import serving
from tests.tiny import unload_all

Capture = pytest.CaptureFixture[str]


def shown(card: str) -> dict[str, str]:
    """The rows of a card in text."""
    return dict(line.split(": ", 1) for line in card.splitlines())


def test_a_card_for_reading_and_as_json(call: Call, tiny_models: Path) -> None:
    code, out, _ = call("models", "tiny-video_llava")
    said = shown(out)
    assert code == 0 and said["name"] == "tiny-video_llava" and said["state"] == "ready"
    assert said["visual tokens"] == "40 from 8 pictures"
    assert said["context limit"] == "1,024 tokens"
    assert said["vision tower"] == "3 layers of 16, 2 heads, 32 px in patches of 16 px"
    assert said["runs in"] == "float32, not quantized; stored as float16"
    assert "for the KV cache of 552 tokens" in said["memory"]
    code, out, _ = call("models", "tiny-video_llava", "--json")
    card = json.loads(out)
    assert "from 1 picture" in call("models", "tiny-llava")[1]
    assert card["available"] and card["tower"]["patch_size"] == tiny.PATCH
    assert card["needed_bytes"]["total"] == sum(
        card["needed_bytes"][part] for part in ("weights", "features", "kv_cache")
    )


def test_an_empty_path_is_refused(
    call: Call, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "EventGPT_Instruction_Subset.json").write_text('[{"id": "a"}]')
    monkeypatch.chdir(tmp_path)
    assert call("samples", "--dataset", ".")[0] == 0  # control
    for command in ("samples --dataset", "bench --out", "import"):
        for empty in ("", " "):
            with pytest.raises(SystemExit, match="2"):
                call(*command.split(), empty)
            error = capsys.readouterr().err
            assert "it is empty, name a file or folder" in error and error.count("\n") == 1


def test_the_full_hash_on_demand(call: Call, refused: Refused, tiny_models: Path) -> None:
    unload_all()  # a loaded model's digest is known
    for flags, length in (((), 0), (("--full",), 32)):
        _, out, _ = call("models", "tiny-llava", "--json", *flags)
        assert len(json.loads(out)["digest"] or "") == length
    assert "name the model" in refused("models", "--full")


@pytest.fixture
def mixed(tiny_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A registry of a whole model and of broken ones; the folder of each."""
    whole = tmp_path / "whole"
    shutil.copytree(tiny_models / "llava", whole)
    folders = {"whole": whole}
    for name in ("pointer", "truncated", "other", "code", "nothing"):
        folders[name] = Path(shutil.copytree(whole, tmp_path / name))
    weights = "model.safetensors"
    (folders["pointer"] / weights).write_text("version https://git-lfs.github.com/spec/v1\n")
    data = (whole / weights).read_bytes()
    (folders["truncated"] / weights).write_bytes(data[:-50])
    published_checkpoints.change_config(folders["other"], model_type="mistral")
    (folders["code"] / weights).unlink()
    (folders["code"] / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    shutil.rmtree(folders["nothing"])
    folders["nothing"].mkdir()
    row = '[[model]]\nname="{0}"\nfamily="llava"\ncheckpoint="./{0}"\n'
    (tmp_path / "models.toml").write_text("".join(map(row.format, folders)))
    monkeypatch.setenv("STAGESCOPE_MODELS", str(tmp_path / "models.toml"))
    return folders


SAID = {
    "pointer": "pointer/model.safetensors is a git-lfs pointer",
    "truncated": "truncated/model.safetensors is not a complete safetensors file",
    "other": "other/config.json says its model_type is 'mistral'",
    "code": "code/pytorch_model.bin is not a complete file of PyTorch weights",
    "nothing": "has no config.json in ",
}


def test_a_broken_folder_is_one_sentence_in_list_and_run(
    call: Call, mixed: dict[str, Path], tmp_path: Path
) -> None:
    _, out, _ = call("models", "--json")
    reasons = {row["name"]: row["reason"] for row in json.loads(out)}
    code, out, err = call("compare", "--dataset", _dataset(tmp_path), "--sample", "one", "--json",
        "--models", ",".join(mixed), "--max-new-tokens", 3,
    )  # fmt: skip
    rows: dict[str, Any] = {row["model"]: row for row in json.loads(out)}
    assert code == 2 and rows["whole"]["new_tokens"] == 3
    assert reasons["whole"] is None and rows["whole"]["error"] is None  # control
    for name, said in SAID.items():
        for sentence in (reasons[name], rows[name]["error"]):
            assert said in sentence and sentence in err + reasons[name]
            assert "\n" not in sentence and "total_ms" not in rows[name]


def _dataset(folder: Path) -> Path:
    root = folder / "root"
    for frame in range(3):
        picture(root / "video" / "road" / "000000" / f"{frame:06d}.png", frame)
    record = {"id": "one", "split": "road", "video_data": "road/000000"}
    (root / "EventGPT_Instruction_Subset.json").write_text(json.dumps([record]))
    return root


def test_a_card_of_a_missing_model_is_refused(refused: Refused, mixed: dict[str, Path]) -> None:
    assert SAID["pointer"] in refused("models", "pointer")
    assert "did you mean 'whole'" in refused("models", "wholly")


def test_a_device_that_does_not_exist_is_named(
    call: Call, tiny_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unload_all()  # a loaded model is where it is
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cuda:99")
    code, out, _ = call("models", "--json")
    assert code == 0
    for row in json.loads(out):
        assert "STAGESCOPE_DEVICE is 'cuda:99'" in (row["reason"] or "")


def test_a_card_whose_sizes_are_known_later(
    call: Call, tiny_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published_folders.build(tmp_path / "qwen")
    (tmp_path / "models.toml").write_text('[[model]]\nname = "qwen"\ncheckpoint = "./qwen"\n')
    monkeypatch.setenv("STAGESCOPE_MODELS", str(tmp_path / "models.toml"))
    said = shown(call("models", "qwen")[1])
    assert said["family"] == "transformers, input: one frame" and said["state"] == "ready"
    assert said["visual tokens"] == "known after loading"
    assert said["context limit"] == "128,000 tokens"
    assert said["vision tower"] == "32 layers of 1,280, 16 heads, patches of 14 px"
    assert "assumed for pictures" in said["memory"]


def test_samples_show_windows_and_choices(call: Call, tiny_models: Path, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"events")
    (tmp_path / "windows.csv").write_text(
        "file,start,length,question,choices,answer,task\n"
        "a.npy,1s,50ms,Which?,one|two,B,counting\n"
        "a.npy,,,,,,\n"
        "a.npy,,,Which?,one|two,,\n",
        encoding="utf-8",
    )
    code, out, _ = call("samples", "--dataset", tmp_path)
    asked, plain, unknown = out.splitlines()
    assert code == 0 and "window 1s+50ms" in asked and "2 choices, right: B" in asked
    assert "  window " not in plain and "choices" not in plain
    assert unknown.endswith("2 choices")
    code, out, _ = call("samples", "--dataset", tmp_path, "--json")
    told = {"window": "1s+50ms", "choices": ["one", "two"], "answer": "B", "task": "counting"}
    assert told.items() <= json.loads(out)[0].items()


def test_a_server_is_asked_and_entered(
    call: Call, refused: Refused, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cache_dir.parent / "models.toml"
    file.write_text('[[model]]\nname = "a"\ncheckpoint = "./a"\n', encoding="utf-8")
    monkeypatch.setenv("STAGESCOPE_MODELS", str(file))
    with serving() as fake:
        wanted = ["--server", fake.url, "--shows", "video", "--weights", "a"]
        code, out, told = call("models", "add", *wanted)
        assert code == 0 and "vLLM 0.30.1" in told and 'model = "served-model"' in out
        entry = registry.entry("served-model")
        assert entry.server is not None and entry.server.url == fake.url and entry.kind == "video"
        assert entry.server.weights == "a"
        assert "software: vLLM 0.30.1" in call("models", "served-model")[1]
        for words, why in (
            (["add", "--server", fake.url], "holds 'served-model' already"),
            (["add", "--server", "ftp://x"], "is no address of a server"),
            (["add", "--server", fake.url, "--dtype", "float16"], "is decided by the server"),
            (["add", "b", "--api-key-env", "KEY"], "belongs to a server"),
            (["add", "--server", fake.url, "--api-key-env", "NO_KEY"], "NO_KEY, which is not set"),
        ):
            assert why in refused("models", *words)
        fake.pages["/v1/models"] = {"data": [{"id": "x"}, {"id": "y"}]}
        assert "has x, y: name the model" in refused("models", "add", "--server", fake.url)
    assert "refuses connections" in refused("models", "served-model")
    code, _, told = call("download", "served-model")
    assert code == 2 and "is a server" in told
