"""The free space of a disk."""

from __future__ import annotations

from pathlib import Path

from engine.machine.device import free_disk_bytes


def test_a_folder_that_is_not_there_yet_has_the_space_of_its_disk(tmp_path: Path) -> None:
    here, there = free_disk_bytes(tmp_path), free_disk_bytes(tmp_path / "a" / "b")
    assert here is not None and there is not None and abs(here - there) < 2**30 and here > 0


def test_a_place_that_cannot_be_is_not_known(tmp_path: Path) -> None:
    assert free_disk_bytes(tmp_path / ("x" * 5000)) is None
