"""Only regular files up to a size are read; everything else is one sentence, at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.plain_files import read_bytes


def test_a_file_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bytes(tmp_path / "a", 5, "a") == b"12345"
    with pytest.raises(BadInput, match="more than 4 bytes"):
        read_bytes(tmp_path / "a", 4, "a")


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_bytes(tmp_path / "b", 5, "b") == b"12345"


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "endless", "loop", "nowhere"])
def test_what_is_no_regular_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind != "nowhere":
        path.symlink_to({"device": "/dev/null", "endless": "/dev/zero", "loop": "x"}[kind])
    with pytest.raises(BadInput, match=r"^x .*\.$"):
        read_bytes(path, 100, "x")


def test_a_path_with_a_null_byte() -> None:
    with pytest.raises(BadInput, match="cannot be used"):
        read_bytes(Path("a\0b"), 100, "x")
