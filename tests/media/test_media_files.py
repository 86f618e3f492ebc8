"""Names and sizes: how messages call a file, and how neighbours are sorted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import MediaError
from engine.media import kinds, media_files


def test_numbers_sort_as_numbers() -> None:
    names = ["000000_0.png", "7_1.png", "000000_2.png", "000000_10.png", "cover.png"]
    found = sorted((Path("a2") / name for name in sorted(names)), key=media_files.by_number)
    assert [path.name for path in found] == names


def test_a_label_is_the_folder_and_the_file() -> None:
    assert media_files.label(Path("/data/mp4/seq/000000.mp4")) == "seq/000000.mp4"
    assert media_files.label(Path("000000.mp4")) == "000000.mp4"


def test_files_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media_files, "MAX_BYTES", 10)
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert media_files.content(tmp_path / "a") == b"x" * 10
    (tmp_path / "a").write_bytes(b"x" * 11)
    with pytest.raises(MediaError, match="has 11 bytes: give a file of at most 10"):
        media_files.content(tmp_path / "a")


def test_a_large_file_is_the_same_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media_files, "PIECE", 7)
    data = bytes(range(100))
    (tmp_path / "a").write_bytes(data)
    found = media_files.large(tmp_path / "a")
    assert len(found) == 100
    assert [len(piece) for piece in media_files.pieces(found)] == [7] * 14 + [2]
    assert b"".join(media_files.pieces(found)) == b"".join(media_files.pieces(data)) == data
    with media_files.opened(found) as file, media_files.opened(data) as held:
        assert file.read() == held.read() == data


@pytest.mark.parametrize("when", ["before", "meanwhile", "gone"])
def test_a_large_file_must_stay_what_it_is(tmp_path: Path, when: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 10)
    found = media_files.large(path)
    if when != "meanwhile":
        path.unlink()
    if when == "before":
        path.write_bytes(b"y" * 11)
    why = "a could not be read" if when == "gone" else "a changed while it was read"
    with pytest.raises(MediaError, match=why), media_files.opened(found):
        path.write_bytes(b"z" * 12)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 10)
    found = media_files.large(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(MediaError, match=r"be read .*named pipe"), media_files.opened(found):
        pass
    with pytest.raises(MediaError, match="not a file"):
        media_files.content(path)
    assert kinds.of_file(path, "a.png") is kinds.PNG


def test_long_and_odd_names_in_messages() -> None:
    long = media_files.label(Path("/d") / ("a" * 200) / ("b" * 60 + ".npy"))
    assert len(long) == 80 and long.startswith("...aaa") and long.endswith("b.npy")
    assert media_files.label(Path("s/a\nb.npy")).isprintable()
    assert len(media_files.place(Path("/d" * 300))) == 240
    assert len(media_files.reason(OSError(2, "No such file", "x" * 500))) < 80


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="does not exist or is not a file"):
        media_files.content(tmp_path)
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(MediaError, match="is empty"):
        media_files.large(tmp_path / "a")
    with pytest.raises(MediaError, match=r"could not be read|does not exist"):
        media_files.large(tmp_path / "a\0b")
