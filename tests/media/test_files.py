"""Names and sizes: how messages call a file, and how neighbours are sorted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import MediaError
from engine.media import files, kinds


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


def test_a_large_file_is_the_same_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE", 7)
    data = bytes(range(100))
    (tmp_path / "a").write_bytes(data)
    found = files.large(tmp_path / "a")
    assert len(found) == 100
    assert [len(piece) for piece in files.pieces(found)] == [7] * 14 + [2]
    assert b"".join(files.pieces(found)) == b"".join(files.pieces(data)) == data
    with files.opened(found) as file, files.opened(data) as held:
        assert file.read() == held.read() == data


@pytest.mark.parametrize("when", ["before", "meanwhile", "gone"])
def test_a_large_file_must_stay_what_it_is(tmp_path: Path, when: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 10)
    found = files.large(path)
    if when != "meanwhile":
        path.unlink()
    if when == "before":
        path.write_bytes(b"y" * 11)
    why = "a could not be read" if when == "gone" else "a changed while it was read"
    with pytest.raises(MediaError, match=why), files.opened(found):
        path.write_bytes(b"z" * 12)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 10)
    found = files.large(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(MediaError, match=r"a could not be read .*named pipe"), files.opened(found):
        pass
    with pytest.raises(MediaError, match="not a file"):
        files.content(path)
    assert kinds.of_file(path, "a.png") is kinds.PNG


def test_long_and_odd_names_in_messages() -> None:
    long = files.label(Path("/d") / ("a" * 200) / ("b" * 60 + ".npy"))
    assert len(long) == 80 and long.startswith("...aaa") and long.endswith("b.npy")
    assert files.label(Path("s/a\nb.npy")).isprintable()
    assert len(files.place(Path("/d" * 300))) == 240
    assert len(files.reason(OSError(2, "No such file", "x" * 500))) < 80


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="does not exist or is not a file"):
        files.content(tmp_path)
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(MediaError, match="is empty"):
        files.large(tmp_path / "a")
    with pytest.raises(MediaError, match=r"could not be read|does not exist"):
        files.large(tmp_path / "a\0b")
