"""What tests of checkpoint folders share: loading one through the registry, the release's form."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.models import registry
from engine.models.adapter import Adapter
from engine.models.checkpoint import ModelEntry
from tests import published_checkpoints, tiny

OWN_FAMILIES = ("eventgpt", "video_llava", "llava")
SIDE = {"height": tiny.SIZE, "width": tiny.SIZE}
CROPPED = {"size": {"shortest_edge": 32}, "crop_size": SIDE, "do_center_crop": True}


def entry_for(folder: Path, family: str = "eventgpt") -> ModelEntry:
    kind = registry.FAMILIES[family].kind
    return ModelEntry(
        folder.name, folder.name, family, kind, str(folder), folder, None, "float32", True
    )


def loaded(folder: Path, family: str) -> Adapter:
    entry = entry_for(folder, family)
    try:
        return registry.load(entry)
    finally:
        registry._held.pop(entry, None)  # unload(), without its garbage collection


def hub_snapshot(hub: Path, checkpoint: str) -> Path:
    """The folder, not yet made, that the hub's cache `hub` names for this checkpoint's main."""
    repository = hub / f"models--{checkpoint.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("a" * 40)
    return repository / "snapshots" / ("a" * 40)


@pytest.fixture
def tiny_copy(tiny_folder: Path, tmp_path: Path) -> Callable[..., Path]:
    """A family and where -> a copy of its tiny checkpoint."""

    def copied(family: str, where: str = "copy") -> Path:
        return Path(shutil.copytree(tiny_folder / family, tmp_path / where / family))

    return copied


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published_checkpoints.eventgpt(tmp_path_factory.mktemp("release") / "EventGPT")


@pytest.fixture
def release_copy(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "EventGPT"))
