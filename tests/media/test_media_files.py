"""Names and sizes: how messages call a file, and how neighbours are sorted."""

import os
from pathlib import Path

import pytest

from engine.errors import MediaError
from engine.media import media_files


def test_files_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media_files, "MAX_BYTES", 10)
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert media_files.content(tmp_path / "a") == b"x" * 10
    (tmp_path / "a").write_bytes(b"x" * 11)
    with pytest.raises(MediaError, match="has 11 bytes: give a file of at most 10"):
        media_files.content(tmp_path / "a")


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
    assert media_files.kind_of_file(path, "a.png") is media_files.PNG
