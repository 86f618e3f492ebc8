"""The full-size benchmark, made small: on a bare machine, and with a fault it must see."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import full_size, random_models
from engine.models import families, registry
from engine.prompts import DEFAULT_QUESTION
from engine.types import DecodeConfig, RunOptions, RunRequest, Sample

ROOT = Path(__file__).resolve().parents[2]
# What the product uses beside torch, transformers, numpy and pillow (and what those bring along).
ABSENT = (
    *("streamlit", "av", "diskcache", "psutil", "pandas", "altair", "sentencepiece", "torchvision"),
)
BARE = f"""
import importlib.machinery, importlib.metadata, sys
ABSENT = {ABSENT!r}
class Bare(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in ABSENT else super().find_spec(name, path, target)
sys.meta_path = [Bare if one is importlib.machinery.PathFinder else one for one in sys.meta_path]
plain = importlib.metadata.distribution
def distribution(name):
    if name in ABSENT:
        raise importlib.metadata.PackageNotFoundError(name)
    return plain(name)
importlib.metadata.distribution = distribution
from benchmarks.full_size import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_it_runs_on_a_machine_with_torch_and_transformers_alone(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    small = ["--layers", "2", "--hidden", "256", "--tokens", "4", "--repeat", "1"]
    small += ["--ways", "generate,eager"]  # compiling three models takes a minute
    done = subprocess.run(
        [sys.executable, "-c", BARE, *small, "--device", "cpu", "--out", str(out)],
        cwd=ROOT,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    figures = json.loads(out.read_text())
    assert figures["machine"]["av"] is None and figures["machine"]["streamlit"] is None
    assert figures["full_size"] is False and figures["copy_gb_per_s"] > 0
    contexts = {"eventgpt": 582, "video_llava": 2056, "llava": 576}
    for family, found in figures["families"].items():
        assert found["dtype"] == random_models.DTYPES[family] and found["new_tokens"] == 4
        assert contexts[family] < found["context_tokens"] < contexts[family] + 70
        exact = {"equal": True, "tokens": 4, "first_difference": None, "control": True}
        assert found["decoupled_against_generate"] == exact
        assert found["ttft_ms"]["n"] == 1 and found["peak_memory"]["bytes"] > 0
        assert found["mbu"]["weight_bytes_per_token"] < found["weights_bytes"]
        ways = found["ways"]
        assert [ways[way]["ran"] for way in ways] == ["generate", "eager"]
        assert ways["generate"]["ratio"]["median"] == 1 and ways["eager"]["mbu"]["of_copy"] > 0
    assert set(figures["families"]) == set(contexts)


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return full_size._rendered(tmp_path)


def small(family: str) -> Any:
    return random_models.build(family, "float32", torch.device("cpu"), 1, 64)


@pytest.mark.parametrize("family", random_models.FAMILIES)
def test_a_decoder_that_differs_is_seen(
    family: str, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = small(family)
    request = RunRequest(sample, "x", DEFAULT_QUESTION, RunOptions(decode=DecodeConfig(5, 5)))
    assert full_size._verify(adapter, request)["equal"] is True
    choose = full_size.decode.choose

    def wrong(scores: torch.Tensor, ids: list[int], *more: Any) -> int:
        return choose(scores, ids, *more) + (len(ids) == 2)

    monkeypatch.setattr(full_size.decode, "choose", wrong)
    found = full_size._verify(adapter, request)
    assert (found["equal"], found["first_difference"], found["tokens"]) == (False, 2, 5)


def test_the_bytes_a_token_reads_are_the_language_models(sample: Sample) -> None:
    """By hand: one layer of width 64 and the head, neither embedding nor tower."""
    adapter = small("eventgpt")
    request = RunRequest(sample, "x", DEFAULT_QUESTION, RunOptions(decode=DecodeConfig(4, 4)))
    run = full_size.single_run.run(adapter, request, None)
    found = full_size.mbu(adapter, [run], gb_per_s=1.0)
    layer = 4 * 64 * 64 + 3 * 64 * 172 + 2 * 64
    assert found["weight_bytes_per_token"] == 4 * (layer + 64 + 64 * 32_000)
    tokens = run.generation.prompt_tokens + 2
    assert found["kv_bytes_per_token"] == 2 * 64 * 4 * tokens
    assert found["of_copy"] == pytest.approx(found["gb_per_s"], abs=0.01)


def test_the_real_sizes_are_the_published_ones() -> None:
    """On the meta device, which takes no memory: 7B weights, and the tower of the release."""
    for family, (low, high) in {
        "eventgpt": (7.0e9, 7.2e9),
        "video_llava": (7.3e9, 7.5e9),
        "llava": (7.0e9, 7.1e9),
    }.items():
        text, tower = random_models._text(None, None), random_models._tower(None, None)
        model_class, config, _ = random_models._PARTS[family](text, tower)
        with torch.device("meta"):
            count = sum(weight.numel() for weight in model_class(config).parameters())
        assert low < count < high, (family, count)
        published = registry.FAMILIES[family].tower
        assert tower["image_size"] == published.image_size and published.layers == 24
        assert published.hidden == tower["hidden_size"] == families.CLIP_L_336.hidden
