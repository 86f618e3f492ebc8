"""models.toml, availability and its reasons, and what a broken checkpoint folder gives."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import SettingsError
from engine.models import registry


def test_the_shipped_file_holds_the_demo_and_the_real_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("STAGESCOPE_MODELS", raising=False)
    entries = registry.entries()
    demo = [entry.name for entry in entries if entry.demo]
    assert demo == ["eventgpt-demo", "video-llava-demo", "llava-demo", "qwen2.5-vl-demo"]
    real = [entry for entry in entries if not entry.demo]
    assert (real[0].name, real[0].folder is None) == ("eventgpt-7b", False)
    assert {entry.checkpoint for entry in real[1:]} == {
        "LanguageBind/Video-LLaVA-7B-hf",
        "llava-hf/llava-1.5-7b-hf",
        "HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
        "llava-hf/llava-onevision-qwen2-0.5b-ov-hf",
        "OpenGVLab/InternVL3-1B-hf",
        "OpenGVLab/InternVL3-8B-hf",
        "Qwen/Qwen2.5-VL-3B-Instruct",
        "Qwen/Qwen2.5-VL-7B-Instruct",
        "Qwen/Qwen3-VL-4B-Instruct",
    }
    assert {entry.family for entry in real[3:]} == {"transformers"}
    assert all(entry.download for entry in real[1:])


@pytest.mark.slow
def test_the_first_load_of_a_process_asks_the_accelerators_memory(tiny_models: Path) -> None:
    """Without torch, only the system's memory is known (device.memories)."""
    code = (
        "import sys; from engine.models import registry\n"
        "registry._refuse_too_large = lambda *_: print('torch' in sys.modules)\n"
        "registry.load(registry.entry('tiny-llava'))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "True\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no .*model.* entry"),
        ('[[model]]\nname = "a"', "has no checkpoint: name a checkpoint, or server"),
        ('[[model]]\nname="a"\nfamily="gpt"\ncheckpoint="./x"', "unknown family 'gpt'"),
        ('[[model]]\nname="a"\nfamily="llava"\ncheckpoint="./x"\ndtype="int3"', "dtype 'int3'"),
        ('[[model]]\nname="a"\nfamily="llava"\ncheckpoint="./x"\nsize=1', "unknown field 'size'"),
        ('[[model]]\nname="a"\nfamily="llava"\ncheckpoint="./x"\n' * 2, "holds 'a' twice"),
        ('[[models]]\nname = "a"', "has 'models', but only"),
        ("model = ", "not valid TOML"),
        ('[[model]]\nname="a"\ncheckpoint="./x"\nshows="sound"', "unknown shows 'sound': known"),
        ('[[model]]\nname="a@events"\ncheckpoint="./x"', "'a@events' holds '@'"),
        ('[[model]]\nname="a,b"\ncheckpoint="./x"', "'a,b' holds ','"),
        (
            '[[model]]\nname="a"\ncheckpoint="./x"\nquantization="2bit"',
            "unknown quantization '2bit': known are 4bit, 8bit",
        ),
    ],
)
def test_a_models_file_of_no_use_is_named(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text)
    monkeypatch.setenv("STAGESCOPE_MODELS", str(path))
    with pytest.raises(SettingsError, match=message):
        registry.entries()
