"""Which device a run gets, what is said of one that is not there, and the space of a disk."""

from pathlib import Path

import pytest

from engine.errors import SettingsError
from engine.machine import device
from engine.models import registry


@pytest.mark.parametrize("name", ["xpu:7", "gpu", "cuda:99"])
def test_a_device_that_is_not_here_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, tiny_models: Path
) -> None:
    entry = registry.entry("tiny-llava")
    registry.unload(entry)
    monkeypatch.setenv("STAGESCOPE_DEVICE", name)
    with pytest.raises(SettingsError, match=f"STAGESCOPE_DEVICE is '{name}'"):
        registry.load(entry)
    assert entry not in registry.resident()


CPU = {"device": "cpu", "hardware": "x86_64", "processor": "EPYC", "threads": "2"}
GPU = {"device": "cuda:0", "hardware": "H200", "processor": "EPYC", "threads": "2"}


def test_a_folder_that_is_not_there_yet_has_the_space_of_its_disk(tmp_path: Path) -> None:
    here, there = (device.free_disk_bytes(one) for one in (tmp_path, tmp_path / "a" / "b"))
    assert here is not None and there is not None and abs(here - there) < 2**30 and here > 0


def test_the_space_of_a_place_that_cannot_be_is_not_known(tmp_path: Path) -> None:
    assert device.free_disk_bytes(tmp_path / ("x" * 5000)) is None
