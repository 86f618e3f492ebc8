"""Which device a run gets, what is said of one that is not there, and the space of a disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.errors import SettingsError
from engine.machine import device
from engine.models import registry


def test_auto_is_the_accelerator_or_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STAGESCOPE_DEVICE", raising=False)
    found = device.choose()
    assert (found.type == "cpu") is not torch.accelerator.is_available()


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


def test_the_environment_names_what_figures_depend_on() -> None:
    found = device.environment(torch.device("cpu"))
    assert found["torch"] == torch.__version__ and found["device"] == "cpu"
    assert {"threads", "hardware", "transformers", "python"} <= set(found)


CPU = {"device": "cpu", "hardware": "x86_64", "processor": "EPYC", "threads": "2"}
GPU = {"device": "cuda:0", "hardware": "H200", "processor": "EPYC", "threads": "2"}


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        (CPU, "EPYC, 2 threads"),
        (CPU | {"threads": "1"}, "EPYC, 1 thread"),
        (CPU | {"processor": ""}, "x86_64, 2 threads"),
        ({"hardware": "x86_64"}, "x86_64"),
        (GPU, "H200"),
        ({}, ""),
    ],
)
def test_types_of_devices_have_names(environment: dict[str, str], name: str) -> None:
    assert device.kind(environment) == name


def test_a_folder_that_is_not_there_yet_has_the_space_of_its_disk(tmp_path: Path) -> None:
    here, there = (device.free_disk_bytes(one) for one in (tmp_path, tmp_path / "a" / "b"))
    assert here is not None and there is not None and abs(here - there) < 2**30 and here > 0


def test_the_space_of_a_place_that_cannot_be_is_not_known(tmp_path: Path) -> None:
    assert device.free_disk_bytes(tmp_path / ("x" * 5000)) is None
