"""Names and sizes: how messages call a file, and how neighbours are sorted."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import MediaError
from engine.media import files


def test_numbers_sort_as_numbers() -> None:
    names = ["000000_10.png", "000000_2.png", "cover.png", "000000_0.png", "7_1.png"]
    found = sorted((Path("a2") / name for name in names), key=files.by_number)
    assert [path.name for path in found] == [
        "000000_0.png",
        "7_1.png",
        "000000_2.png",
        "000000_10.png",
        "cover.png",
    ]


def test_a_label_is_the_folder_and_the_file() -> None:
    assert files.label(Path("/data/mp4/seq/000000.mp4")) == "seq/000000.mp4"
    assert files.label(Path("000000.mp4")) == "000000.mp4"


def test_files_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert files.content(tmp_path / "a") == b"x" * 10
    (tmp_path / "a").write_bytes(b"x" * 11)
    with pytest.raises(MediaError, match="has 11 bytes: give a file of at most 10"):
        files.content(tmp_path / "a")
