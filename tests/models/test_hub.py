"""What is fetched from the hub, where it goes, and one sentence for each way it can fail."""

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import huggingface_hub
import pytest
from huggingface_hub import constants, errors

from engine.__main__ import main
from engine.errors import ModelUnavailable
from engine.models import hub as download
from engine.models import registry
from tests.models.conftest import hub_snapshot

HUB = "llava-hf/llava-1.5-7b-hf"
FILES = [
    *(
        "chat_template.jinja",
        "config.json",
        "merges.txt",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ),
    *("model.safetensors.index.json", "tokenizer.json", "tokenizer.model"),
]
OLD = [
    *("config.json", "pytorch_model-00001-of-00002.bin", "pytorch_model.bin.index.json"),
    *("tokenizer.json", "tokenizer.model"),
]
ASIDE = [
    *(".gitattributes", "README.md", "adapter_config.json", "consolidated.safetensors"),
    *("model-Q4_K_M.gguf", "onnx/config.json", "onnx/model.onnx", "original/consolidated.pth"),
    *("original/model.safetensors", "training_args.bin"),
]
Api = huggingface_hub.HfApi


@pytest.fixture(autouse=True)
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STAGESCOPE_MODELS", raising=False)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A hub of one repository; what snapshot_download was asked for."""
    asked: dict[str, Any] = {}

    def about(self: Any, name: str, revision: str | None, timeout: float) -> Any:
        return SimpleNamespace(siblings=[SimpleNamespace(rfilename=file) for file in FILES])

    def snapshot(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(options["local_dir"] or tmp_path / "hub" / "snapshots" / "c0")

    monkeypatch.setattr(Api, "model_info", about)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    return asked


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ([*FILES, *OLD, *ASIDE], FILES),
        ([*OLD, *ASIDE], OLD),
    ],
)
def test_only_what_loading_reads_is_fetched(files: list[str], wanted: list[str]) -> None:
    assert download.needed(sorted(set(files))) == wanted


@pytest.mark.parametrize(
    ("files", "config", "said"),
    [
        (FILES, {"model_type": "qwen2"}, "answers text only"),
        (
            FILES,
            {"model_type": "qwen2_5_vl", "quantization_config": {"quant_method": "awq"}},
            "stored quantized ('awq')",
        ),
        (["config.json", "model-Q4.gguf"], {}, "on the hub holds only GGUF files"),
        (["config.json", "weights.msgpack"], {}, "has no weights in safetensors"),
    ],
)
def test_what_could_not_run_is_not_downloaded(
    files: list[str],
    config: dict[str, Any],
    said: str,
    hub: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def about(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(
            siblings=[SimpleNamespace(rfilename=one) for one in given[0]], config=given[1]
        )

    monkeypatch.setattr(Api, "model_info", about)
    given: tuple[list[str], dict[str, Any] | None] = (files, config)
    assert main(["download", "qwen3-vl-4b"]) == 2
    assert said in capsys.readouterr().err and not hub
    for fine in ({"model_type": "qwen3_vl"}, {}, None):  # control; the hub may tell nothing
        given = (FILES, fine)
        assert main(["download", "qwen3-vl-4b"]) == 0 and hub.pop("name")
        hub.clear()


def test_into_the_hubs_own_cache_or_a_folder(
    hub: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["download", "llava-1.5-7b"]) == 0
    out, err = capsys.readouterr()
    assert out.strip().endswith("c0") and HUB in err
    assert (hub["name"], hub["revision"], hub["local_dir"]) == (HUB, "main", None)
    assert hub["allow_patterns"] == download.needed(FILES)
    assert main(["download", "llava-1.5-7b", "--to", str(tmp_path / "here")]) == 0
    out, err = capsys.readouterr()
    assert out.strip() == str(tmp_path / "here") == str(hub["local_dir"])
    assert "set checkpoint =" in err and "models.toml" in err


def response(status: int) -> httpx2.Response:
    return httpx2.Response(status, request=httpx2.Request("GET", "https://hub.invalid/x"))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.GatedRepoError("x", response=response(403)), "asks for consent"),
        (errors.RepositoryNotFoundError("x", response=response(404)), f"the hub has no {HUB}"),
        (errors.RevisionNotFoundError("x", response=response(404)), "has no revision 'main'"),
        (errors.HfHubHTTPError("x", response=response(503)), "the hub refused"),
        (httpx2.ConnectError("Name or service not known"), "cannot be reached (Name or"),
        (errors.OfflineModeIsEnabled("offline\nmode"), "cannot be reached (offline)"),
        (errors.LocalEntryNotFoundError("not found"), "cannot be reached"),
        (OSError(errno.ENOSPC, "No space left on device"), "cannot be written to the hub cache"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_fails_is_one_sentence_and_exit_code_2(
    hub: dict[str, Any],
    error: Exception,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    assert main(["download", "llava-1.5-7b"]) == 2
    out, err = capsys.readouterr()
    assert not out and said in err.splitlines()[-1] and len(err.splitlines()) == 2


def test_a_machine_without_a_network_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real client, against a port where nobody listens."""
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: Api(endpoint="http://127.0.0.1:9"))
    assert main(["download", "llava-1.5-7b"]) == 2
    assert "the Hugging Face hub cannot be reached" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eventgpt-7b"], "is a local folder"),
        (["llava-1.5"], "did you mean 'llava-1.5-7b'"),
        (["llava-1.5-7b", "--to", __file__], "which is a file"),
        (["llava-1.5-7b", "--to", str(Path(__file__).parent)], "which holds other files"),
    ],
)
def test_bad_input_never_reaches_the_hub(
    arguments: list[str], said: str, hub: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["download", *arguments]) == 2
    assert said in capsys.readouterr().err and not hub


def test_a_checkpoint_in_the_hubs_cache_is_found_there(
    hub: dict[str, Any], tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the hub's own client, which is asked only where its cache has a folder of that name."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    entry = next(item for item in registry.entries() if item.checkpoint == HUB)
    asked: list[str] = []
    look = huggingface_hub.try_to_load_from_cache

    def looked(name: str, *more: Any, **options: Any) -> Any:
        asked.append(name)
        return look(name, *more, **options)

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", looked)
    assert "has not been downloaded" in str(registry.unavailable(entry)) and not asked
    snapshot = hub_snapshot(tmp_path, HUB)
    shutil.copytree(tiny_folder / "llava", snapshot)
    card = registry.card(entry)
    assert (card.revision, card.source) == (snapshot.name, f"Hugging Face hub: {HUB}")
    assert set(asked) == {HUB} and not hub
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(ModelUnavailable, match=r"download llava-1[.]5-7b` to finish"):
        registry.card(entry)
