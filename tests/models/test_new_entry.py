"""`models add`: what is written, what is left as it was, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.models import checkpoint, new_entry, registry
from tests.models import published_folders
from tests.models.conftest import hub_snapshot

HUB = "Qwen/Qwen2.5-VL-3B-Instruct"
BEFORE = """# my models
[[model]]   # the first
name = "first"
family = 'llava'
checkpoint = "./first"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("STAGESCOPE_MODELS", str(tmp_path / "models.toml"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.toml").write_text(BEFORE)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The sentence with which `models add` is refused; nothing is written."""
    before = {path: path.read_bytes() for path in Path().glob("models.toml")}
    assert main(["models", "add", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().glob("models.toml")} == before
    return err


def test_a_hub_name_is_written_unseen(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "add", HUB]) == 0
    text = (home / "models.toml").read_text()
    assert text.startswith(BEFORE) and text.count("[[model]]") == 2
    found = registry.entry("qwen2.5-vl-3b-instruct")
    assert (found.label, found.checkpoint) == ("Qwen2.5-VL-3B-Instruct", HUB)
    assert (found.family, found.revision, found.dtype) == ("transformers", "main", "bfloat16")
    said = capsys.readouterr().err
    assert "is checked after `python -m engine download qwen2.5-vl-3b-instruct`" in said


def test_the_fields_may_be_chosen(home: Path) -> None:
    chosen = ["--name", "q3", "--label", 'Qwen "3"', "--dtype", "float32", "--shows", "video"]
    page = f"https://huggingface.co/{HUB}"
    assert main(["models", "add", page, *chosen]) == 0
    found = registry.entry("q3")
    assert (found.label, found.dtype, found.kind) == ('Qwen "3"', "float32", "video")
    assert found.checkpoint == HUB


def test_a_folder_is_checked_now(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published_folders.build(home / "new" / "Smol", "smolvlm")
    assert main(["models", "add", "new/Smol", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (
        said["checked"] and said["written"] and said["entry"] in (home / "models.toml").read_text()
    )
    found = registry.entry("smol")
    assert (found.checkpoint, found.dtype) == ("./new/Smol", "float32")  # as its files
    assert 'family = "transformers"' in said["entry"]
    assert registry.unavailable(found) is None


def test_a_folder_elsewhere_is_written_with_its_whole_path(
    home: Path, tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("away") / "llava"
    shutil.copytree(tiny_folder / "llava", away)
    assert main(["models", "add", str(away)]) == 0
    found = registry.entry("llava")
    assert (found.checkpoint, found.family) == (str(away), "llava")


def test_a_hub_name_whose_files_are_here_is_checked(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = published_folders.build(hub_snapshot(home / "hub", HUB))
    published_folders.change(folder, "config.json", model_type="qwen2")
    assert "answers text only" in refused(capsys, HUB)
    published_folders.change(folder, "config.json", model_type="qwen2_5_vl")
    assert main(["models", "add", HUB]) == 0
    assert registry.unavailable(registry.entry("qwen2.5-vl-3b-instruct")) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((HUB, "--name", "first"), "holds 'first' already: choose another name"),
        ((HUB, "--name", "a@video"), "'a@video' cannot be a model's name"),
        ((HUB, "--name", "add"), "holds 'add' already"),
        ((HUB, "--label", "a" * 2000), "is no entry (expected 'str' of length <= 1000"),
        (("nowhere",), "'nowhere' is neither a folder here nor a name on the Hugging Face hub"),
        (("models.toml",), "'models.toml' is a file, not a checkpoint"),
        (("./hub.gguf",), "is a GGUF file"),
        (("lora",), "only a LoRA adapter of 'a/base'"),
        (("empty",), "has no config.json"),
    ],
)
def test_what_cannot_be_an_entry_is_refused(
    arguments: tuple[str, ...], said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "hub.gguf").write_bytes(b"GGUF")
    (home / "empty").mkdir()
    lora = {"base_model_name_or_path": "a/base"}
    published_folders.write(home / "lora", "adapter_config.json", lora)
    assert said in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = ", "not valid TOML"),
        ('model = [{name = "x", checkpoint = "a/b"}]', "not valid TOML"),  # with one more entry
        ('[[model]]\nname = "x"\n', "has no checkpoint: name a checkpoint, or server"),
    ],
)
def test_a_file_that_cannot_take_an_entry_stays(
    text: str, said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "models.toml").write_text(text)
    assert said in refused(capsys, HUB)


def test_a_missing_and_a_read_only_file_are_said(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "models.toml").chmod(0o444)
    assert "models.toml cannot be written (it is read-only)" in refused(capsys, HUB)
    (home / "models.toml").chmod(0o644)
    (home / "models.toml").unlink()
    assert "models.toml cannot be read" in refused(capsys, HUB)


def test_an_entry_that_is_read_differently_is_not_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = checkpoint.read_entries
    monkeypatch.setattr(new_entry.checkpoint, "read_entries", lambda *given: read(*given)[:1])
    assert "would be read differently" in refused(capsys, HUB)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["models", "add"], "needs a folder or a name on the hub"),
        (["models", "add", " "], "needs a folder or a name on the hub"),
        (["models", "first", "second"], "prints one card at a time"),
        (["models", "first", "--dtype", "float32"], "--dtype belongs to models add"),
        (["models", "--dry-run"], "--dry-run belongs to models add"),
        (["models", "add", HUB, "--full"], "--full hashes a model's files"),
    ],
)
def test_flags_of_the_other_command_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
