"""Dropped files: kept for the visit, under names of our own, within limits."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.media import media_files
from ui.widgets import uploads
from ui.widgets.uploads import Visit


@dataclass(frozen=True)
class File:
    name: str
    data: bytes = b"x"
    file_id: str = "1"
    claimed: int | None = None

    @property
    def size(self) -> int:
        return len(self.data) if self.claimed is None else self.claimed

    def getbuffer(self) -> memoryview:
        return memoryview(self.data)


@pytest.fixture
def visit() -> Visit:
    return Visit()


def test_the_types_on_offer_are_those_that_are_read() -> None:
    offered = ["mp4", "m4v", "mov", "mkv", "webm", "avi", "ts", "gif", "npy", "png", "jpg", "jpeg"]
    offered += ["bin", "raw", "dat", "aedat4", "h5", "hdf5", "npz", "csv", "txt"]
    assert list(uploads.TYPES) == offered
    for ending in uploads.TYPES:
        kind = media_files.kind_of(b"", f"a.{ending}")
        assert kind is not None and kind.field in ("clip", "events", "images")


@pytest.mark.parametrize(
    "name", ["../../evil.png", "/etc/passwd", "..", "a/b\\c.mp4", "x.py", "nul\0.png", ""]
)
def test_a_name_is_never_a_path(visit: Visit, name: str) -> None:
    ((shown, path),) = visit.keep([File(name)])
    assert shown == name
    assert path.resolve().is_relative_to(visit.root.resolve())
    assert path.stem == "1" and path.suffix in {"", *(f".{kind}" for kind in uploads.TYPES)}


def test_files_beyond_the_limits_do_not_take_the_others_with_them() -> None:
    big = File("<i>big</i>.mp4", claimed=65 * 2**20)
    fitting, refused = uploads.within_limits([big, *(File(f"{n}.png") for n in range(66))])
    assert [file.name for file in fitting] == [f"{n}.png" for n in range(64)]
    assert refused[0] == "'<i>big</i>.mp4' has 65.0 MB: make it smaller than 64 MB."
    assert refused[1] == (
        "Only the first 64 files are used, without '64.png', '65.png': remove some."
    )
    assert uploads.within_limits([File("a.png")]) == ([File("a.png")], [])


def test_a_full_disk_leaves_no_half_drop(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BadInput, match="No space left"):
        visit.keep([File("a.png")])
    monkeypatch.undo()
    assert visit.keep([File("a.png", b"now")])[0][1].read_bytes() == b"now"
