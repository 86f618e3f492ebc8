"""The tests here run only with STAGESCOPE_PRETENDED=1: importing the device changes the process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.models import registry
from engine.models.adapter import Adapter
from engine.types import Sample
from tests import tiny
from tests.conftest import make_sample
from tests.pretended import ENABLED

FAMILIES = ("eventgpt", "video_llava", "llava")
GENERIC = ("qwen2_5_vl", "llava_next")  # through the adapter for any model of transformers
Load = Callable[[str, str], Adapter]

if not ENABLED:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def entries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models.toml with the tiny model of every family."""
    folder = tmp_path_factory.mktemp("pretended")
    file = tiny.models_toml(folder)
    for family in GENERIC:
        tiny.add_family(file, family)
    return file


@pytest.fixture
def load(entries: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a family's tiny model on a device, "cpu" or "pretended"."""
    monkeypatch.setenv("STAGESCOPE_MODELS", str(entries))

    def loaded(family: str, device: str) -> Adapter:
        monkeypatch.setenv("STAGESCOPE_DEVICE", device)
        entry = registry.entry(f"tiny-{family}")
        registry.unload(entry)
        adapter = registry.load(entry)
        assert adapter.device.type == device
        return adapter

    return loaded


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return [make_sample(tmp_path / "samples", seed) for seed in range(3)]
