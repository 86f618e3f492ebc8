"""Only regular files up to a stated size are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine import plain_files
from engine.errors import BadInput


def test_a_regular_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").symlink_to("a")
    assert plain_files.read_bytes(tmp_path / "a", 5, "File") == b"12345"
    assert plain_files.read_bytes(tmp_path / "b", 5, "File") == b"12345"


def test_a_larger_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123456")
    with pytest.raises(BadInput, match=r"File .* is larger than 5 bytes"):
        plain_files.read_bytes(tmp_path / "a", 5, "File")


@pytest.mark.skipif(os.name != "posix", reason="needs pipes and device files")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_other_kinds_are_refused_without_waiting(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(BadInput, match=r"File .* is not a regular file"):
        plain_files.read_bytes(path, 100, "File")


def test_an_absent_file_is_left_to_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        plain_files.read_bytes(tmp_path / "a", 100, "File")
