"""Kinds by their first bytes, then by their names; GIFs that move and GIFs that do not."""

import io
from pathlib import Path

import pytest
from PIL import Image as Pillow

from engine.media import media_files as kinds
from tests.media import clips


@pytest.mark.parametrize(
    ("container", "codec", "kind"),
    [
        ("mp4", "libx264", kinds.MP4),
        ("mov", "libx264", kinds.MOV),
        ("matroska", "libx264", kinds.MATROSKA),
        ("webm", "libvpx", kinds.WEBM),
        ("mpegts", "libx264", kinds.MPEGTS),
        ("avi", "mpeg4", kinds.AVI),
        ("gif", "gif", kinds.GIF),
    ],
)
def test_clips(container: str, codec: str, kind: kinds.FileKind) -> None:
    data = clips.encoded(container, codec, range(0, 300, 50))
    assert kinds.kind_of(data[: kinds.HEAD], "a.png") is kind
    assert kind.field == "clip"


def test_the_name_decides_where_the_content_does_not() -> None:
    for name, kind in {"a.MP4": kinds.MP4, "a.webm": kinds.WEBM, "a.NPY": kinds.NPY}.items():
        assert kinds.kind_of(b"", name) is kind
    assert kinds.kind_of(b"BM" + bytes(50), "a") is not None
    assert kinds.kind_of(bytes(50), "a") is None and kinds.kind_of(b"xx", "a.xyz") is None


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b"\x89HDF\r\n\x1a\n", "a.mp4", kinds.HDF5),
        (b"PK\x03\x04", "a.h5", kinds.NPZ),
        (b"\x93NUMPY", "a.csv", kinds.NPY),
        (b"\1\2\3\4\5", "a.bin", kinds.CALTECH),
        (b"t,x,y,p\n", "a.csv", kinds.TEXT),
        (b"% evt 3.0\n% t x y p\n", "a.TXT", kinds.TEXT),
        (b"% evt 3.0\n", "a.dat", kinds.PROPHESEE_RAW),
        (b"% Data file containing CD events\n", "a.raw", kinds.PROPHESEE_DAT),
        (b"% Height 720\n% Version 2\n", "a", kinds.PROPHESEE_DAT),
        (b"#!AER-DAT4.0\r\n", "a", kinds.AEDAT4),
        (b"#!AER-DAT2.0\r\n", "a.aedat4", kinds.OLD_AEDAT),
    ],
)
def test_event_files(head: bytes, name: str, kind: kinds.FileKind) -> None:
    """Content first; a comment in a text is not taken for Prophesee's header."""
    assert kinds.kind_of(head, name) is kind
    unknown = kinds.kind_of(b"% something\n", "a.raw")
    assert unknown is not None and not unknown.field


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("colours", [2, 256])
def test_gifs_that_move(tmp_path: Path, count: int, colours: int) -> None:
    frames = [Pillow.fromarray(frame).quantize(colours) for frame in clips.moving(count)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], comment=b"," * 300)
    assert kinds.moves(file.getvalue()) is (count > 1)
    (tmp_path / "a").write_bytes(file.getvalue())
    kind = kinds.kind_of_file(tmp_path / "a", "a.gif")
    assert kind is (kinds.GIF if count > 1 else kinds.STILL_GIF)


def test_broken_gifs_do_not_move() -> None:
    data = clips.encoded("gif", "gif", [0])
    for size in range(0, len(data), 7):
        assert not kinds.moves(data[:size])
