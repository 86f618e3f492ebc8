"""`models` and `compare` on cards, broken folders and devices that are not here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import main
from engine.models import registry
from tests import published_checkpoints, tiny
from tests.conftest import picture
from tests.models import published_folders
from tests.served.fake_server import serving
from tests.tiny import unload_all


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_card_for_reading_and_as_json(
    capsys: pytest.CaptureFixture[str], tiny_models: Path
) -> None:
    code, out, _ = call(capsys, "models", "tiny-video_llava")
    said = dict(line.split(": ", 1) for line in out.splitlines())
    assert code == 0 and said["name"] == "tiny-video_llava" and said["state"] == "ready"
    assert said["visual tokens"] == "40 from 8 pictures"
    assert said["context limit"] == "1,024 tokens"
    assert said["vision tower"] == "3 layers of 16, 2 heads, 32 px in patches of 16 px"
    assert said["runs in"] == "float32, not quantized; stored as float16"
    assert "for the KV cache of 552 tokens" in said["memory"]
    code, out, _ = call(capsys, "models", "tiny-video_llava", "--json")
    card = json.loads(out)
    assert "from 1 picture" in call(capsys, "models", "tiny-llava")[1]
    assert card["available"] and card["tower"]["patch_size"] == tiny.PATCH
    assert card["needed_bytes"]["total"] == sum(
        card["needed_bytes"][part] for part in ("weights", "features", "kv_cache")
    )


def test_an_empty_path_is_not_the_current_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "EventGPT_Instruction_Subset.json").write_text('[{"id": "a"}]')
    monkeypatch.chdir(tmp_path)
    assert call(capsys, "samples", "--dataset", ".")[0] == 0  # control
    for command in ("samples --dataset", "bench --out", "import"):
        for empty in ("", " "):
            with pytest.raises(SystemExit) as left:
                call(capsys, *command.split(), empty)
            error = capsys.readouterr().err
            assert left.value.code == 2 and error.count("\n") == 1
            assert "it is empty, name a file or folder" in error


def test_the_full_hash_on_demand(capsys: pytest.CaptureFixture[str], tiny_models: Path) -> None:
    unload_all()  # a loaded model's digest is known
    _, out, _ = call(capsys, "models", "tiny-llava", "--json")
    assert json.loads(out)["digest"] is None
    _, out, _ = call(capsys, "models", "tiny-llava", "--json", "--full")
    assert len(json.loads(out)["digest"]) == 32
    code, _, err = call(capsys, "models", "--full")
    assert code == 2 and "name the model" in err


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
    rows = [
        f'[[model]]\nname="{name}"\nfamily="llava"\ncheckpoint="./{name}"\n' for name in folders
    ]
    (tmp_path / "models.toml").write_text("\n".join(rows))
    monkeypatch.setenv("STAGESCOPE_MODELS", str(tmp_path / "models.toml"))
    return folders


SAID = {
    "whole": None,
    "pointer": "pointer/model.safetensors is a git-lfs pointer",
    "truncated": "truncated/model.safetensors is not a complete safetensors file",
    "other": "other/config.json says its model_type is 'mistral'",
    "code": "code/pytorch_model.bin is not a complete file of PyTorch weights",
    "nothing": "has no config.json in ",
}


def test_each_broken_folder_is_one_sentence_in_the_list_and_in_a_run(
    capsys: pytest.CaptureFixture[str], mixed: dict[str, Path], tmp_path: Path
) -> None:
    _, out, _ = call(capsys, "models", "--json")
    reasons = {row["name"]: row["reason"] for row in json.loads(out)}
    code, out, err = call(
        capsys, "compare", "--dataset", _dataset(tmp_path), "--sample", "one", "--json",
        "--models", ",".join(mixed), "--max-new-tokens", 3,
    )  # fmt: skip
    rows: dict[str, Any] = {row["model"]: row for row in json.loads(out)}
    assert code == 2 and rows["whole"]["new_tokens"] == 3
    for name, said in SAID.items():
        if said is None:
            assert reasons[name] is None and rows[name]["error"] is None
            continue
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


def test_a_card_of_what_is_not_here_is_a_sentence(
    capsys: pytest.CaptureFixture[str], mixed: dict[str, Path]
) -> None:
    code, out, err = call(capsys, "models", "pointer")
    assert code == 2 and not out and SAID["pointer"] in err and err.count("\n") == 1
    code, _, err = call(capsys, "models", "wholly")
    assert code == 2 and "did you mean 'whole'" in err


def test_a_device_that_does_not_exist_is_named(
    capsys: pytest.CaptureFixture[str], tiny_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unload_all()  # a loaded model is where it is
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cuda:99")
    code, out, _ = call(capsys, "models", "--json")
    assert code == 0
    for row in json.loads(out):
        assert "STAGESCOPE_DEVICE is 'cuda:99'" in (row["reason"] or "")


def test_a_card_whose_sizes_are_known_later(
    capsys: pytest.CaptureFixture[str],
    tiny_models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    published_folders.build(tmp_path / "qwen")
    (tmp_path / "models.toml").write_text('[[model]]\nname = "qwen"\ncheckpoint = "./qwen"\n')
    monkeypatch.setenv("STAGESCOPE_MODELS", str(tmp_path / "models.toml"))
    _, out, _ = call(capsys, "models", "qwen")
    said = dict(line.split(": ", 1) for line in out.splitlines())
    assert said["family"] == "transformers, input: one frame" and said["state"] == "ready"
    assert said["visual tokens"] == "known after loading"
    assert said["context limit"] == "128,000 tokens"
    assert said["vision tower"] == "32 layers of 1,280, 16 heads, patches of 14 px"
    assert "assumed for pictures" in said["memory"]


def test_samples_show_windows_and_choices(
    capsys: pytest.CaptureFixture[str], tiny_models: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.npy").write_bytes(b"events")
    (tmp_path / "windows.csv").write_text(
        "file,start,length,question,choices,answer,task\n"
        "a.npy,1s,50ms,Which?,one|two,B,counting\n"
        "a.npy,,,,,,\n"
        "a.npy,,,Which?,one|two,,\n",
        encoding="utf-8",
    )
    code, out, _ = call(capsys, "samples", "--dataset", tmp_path)
    asked, plain, unknown = out.splitlines()
    assert code == 0 and "window 1s+50ms" in asked and "2 choices, right: B" in asked
    assert "  window " not in plain and "choices" not in plain
    assert unknown.endswith("2 choices")
    code, out, _ = call(capsys, "samples", "--dataset", tmp_path, "--json")
    row = json.loads(out)[0]
    assert (row["window"], row["choices"], row["answer"], row["task"]) == (
        "1s+50ms", ["one", "two"], "B", "counting",
    )  # fmt: skip


def test_a_server_is_asked_and_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "models.toml"
    file.write_text('[[model]]\nname = "a"\ncheckpoint = "./a"\n', encoding="utf-8")
    monkeypatch.setenv("STAGESCOPE_MODELS", str(file))
    monkeypatch.setenv("STAGESCOPE_CACHE_DIR", str(tmp_path / "cache"))
    with serving() as fake:
        wanted = ["--server", fake.url, "--shows", "video", "--weights", "a"]
        assert main(["models", "add", *wanted]) == 0
        out, told = capsys.readouterr()
        assert "vLLM 0.30.1" in told and 'model = "served-model"' in out
        entry = registry.entry("served-model")
        assert entry.server is not None and entry.server.url == fake.url and entry.kind == "video"
        assert entry.server.weights == "a"
        assert main(["models", "served-model"]) == 0
        assert "software: vLLM 0.30.1" in capsys.readouterr().out
        for words, why in (
            (["add", "--server", fake.url], "holds 'served-model' already"),
            (["add", "--server", "ftp://x"], "is no address of a server"),
            (["add", "--server", fake.url, "--dtype", "float16"], "is decided by the server"),
            (["add", "b", "--api-key-env", "KEY"], "belongs to a server"),
            (["add", "--server", fake.url, "--api-key-env", "NO_KEY"], "NO_KEY, which is not set"),
        ):
            assert main(["models", *words]) == 2 and why in capsys.readouterr().err
        fake.pages["/v1/models"] = {"data": [{"id": "x"}, {"id": "y"}]}
        assert main(["models", "add", "--server", fake.url]) == 2
        assert "has x, y: name the model" in capsys.readouterr().err
    assert main(["models", "served-model"]) == 2
    assert "refuses connections" in capsys.readouterr().err
    assert main(["download", "served-model"]) == 2 and "is a server" in capsys.readouterr().err
