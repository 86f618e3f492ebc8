"""Files that are too large, change or are pipes; kinds by first bytes, then by names; GIFs."""

import io
import os
from pathlib import Path

import pytest
from PIL import Image as Pillow

from engine.errors import MediaError
from engine.media import media_files
from tests.media import clips


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


@pytest.mark.parametrize(
    ("container", "codec", "kind"),
    [
        ("mp4", "libx264", media_files.MP4),
        ("mov", "libx264", media_files.MOV),
        ("matroska", "libx264", media_files.MATROSKA),
        ("webm", "libvpx", media_files.WEBM),
        ("mpegts", "libx264", media_files.MPEGTS),
        ("avi", "mpeg4", media_files.AVI),
        ("gif", "gif", media_files.GIF),
    ],
)
def test_clips(container: str, codec: str, kind: media_files.FileKind) -> None:
    data = clips.encoded(container, codec, range(0, 300, 50))
    assert media_files.kind_of(data[: media_files.HEAD], "a.png") is kind
    assert kind.field == "clip"


def test_the_name_decides_where_the_content_does_not() -> None:
    named = {"a.MP4": media_files.MP4, "a.webm": media_files.WEBM, "a.NPY": media_files.NPY}
    for name, kind in named.items():
        assert media_files.kind_of(b"", name) is kind
    assert media_files.kind_of(b"BM" + bytes(50), "a") is not None
    assert media_files.kind_of(bytes(50), "a") is None
    assert media_files.kind_of(b"xx", "a.xyz") is None


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b"\x89HDF\r\n\x1a\n", "a.mp4", media_files.HDF5),
        (b"PK\x03\x04", "a.h5", media_files.NPZ),
        (b"\x93NUMPY", "a.csv", media_files.NPY),
        (b"\1\2\3\4\5", "a.bin", media_files.CALTECH),
        (b"t,x,y,p\n", "a.csv", media_files.TEXT),
        (b"% evt 3.0\n% t x y p\n", "a.TXT", media_files.TEXT),
        (b"% evt 3.0\n", "a.dat", media_files.PROPHESEE_RAW),
        (b"% Data file containing CD events\n", "a.raw", media_files.PROPHESEE_DAT),
        (b"% Height 720\n% Version 2\n", "a", media_files.PROPHESEE_DAT),
        (b"#!AER-DAT4.0\r\n", "a", media_files.AEDAT4),
        (b"#!AER-DAT2.0\r\n", "a.aedat4", media_files.OLD_AEDAT),
    ],
)
def test_event_files(head: bytes, name: str, kind: media_files.FileKind) -> None:
    """Content first; a comment in a text is not taken for Prophesee's header."""
    assert media_files.kind_of(head, name) is kind
    unknown = media_files.kind_of(b"% something\n", "a.raw")
    assert unknown is not None and not unknown.field


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("colours", [2, 256])
def test_gifs_that_move(tmp_path: Path, count: int, colours: int) -> None:
    frames = [Pillow.fromarray(frame).quantize(colours) for frame in clips.moving(count)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], comment=b"," * 300)
    assert media_files.moves(file.getvalue()) is (count > 1)
    (tmp_path / "a").write_bytes(file.getvalue())
    kind = media_files.kind_of_file(tmp_path / "a", "a.gif")
    assert kind is (media_files.GIF if count > 1 else media_files.STILL_GIF)


def test_broken_gifs_do_not_move() -> None:
    data = clips.encoded("gif", "gif", [0])
    for size in range(0, len(data), 7):
        assert not media_files.moves(data[:size])
