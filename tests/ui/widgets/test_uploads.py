"""Dropped files: kept for the visit, under names of our own, within limits."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.media import kinds, own_files
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


def test_files_are_kept_with_their_content_beside_their_names(visit: Visit) -> None:
    kept = visit.keep([File("a.mp4", b"one"), File("b.PNG", b"two")])
    assert [name for name, _ in kept] == ["a.mp4", "b.PNG"]
    assert [path.read_bytes() for _, path in kept] == [b"one", b"two"]
    assert [path.suffix for _, path in kept] == [".mp4", ".png"]


def test_the_types_on_offer_are_those_that_are_read() -> None:
    offered = ["mp4", "m4v", "mov", "mkv", "webm", "avi", "ts", "gif", "npy", "png", "jpg", "jpeg"]
    offered += ["bin", "raw", "dat", "aedat4", "h5", "hdf5", "npz", "csv", "txt"]
    assert list(uploads.TYPES) == offered
    for ending in uploads.TYPES:
        kind = kinds.of(b"", f"a.{ending}")
        assert kind is not None and kind.field in ("clip", "events", "images")


@pytest.mark.parametrize(
    "name", ["../../evil.png", "/etc/passwd", "..", "a/b\\c.mp4", "x.py", "nul\0.png", ""]
)
def test_a_name_is_never_a_path(visit: Visit, name: str) -> None:
    ((shown, path),) = visit.keep([File(name)])
    assert shown == name
    assert path.resolve().is_relative_to(visit.root.resolve())
    assert path.stem == "1" and path.suffix in {"", *(f".{kind}" for kind in uploads.TYPES)}


def test_the_same_drop_is_written_once(visit: Visit) -> None:
    first = visit.keep([File("a.png", b"one")])
    first[0][1].write_bytes(b"marked")
    assert visit.keep([File("a.png", b"one")])[0][1].read_bytes() == b"marked"


def test_earlier_files_stay_while_there_is_room_or_a_run_reads_them(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    drops = [visit.keep([File("a.png", b"x" * 600_000, file_id=each)])[0][1] for each in "12"]
    visit.keep([File("a.png", file_id="3")])
    assert all(path.exists() for path in drops)
    monkeypatch.setattr(uploads, "MAX_KEPT_MB", 0.5)  # too small for either
    visit.keep([File("a.png", file_id="3")], live=drops[:1])
    assert [path.exists() for path in drops] == [True, False]
    visit.keep([File("a.png", file_id="3")])
    assert not drops[0].exists()


def test_a_file_is_checked_once(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(own_files, "fault", lambda name, *_: seen.append(name) or f"bad {name}")
    uploads.fault.clear()
    (file,) = visit.keep([File("a.png")])
    for event_images in (False, False, True):  # as an event image it is another question
        assert uploads.fault("1", event_images, *file) == "bad a.png"
    assert seen == ["a.png", "a.png"]


def test_files_beyond_the_limits_do_not_take_the_others_with_them() -> None:
    big = File("<i>big</i>.mp4", claimed=65 * 2**20)
    fitting, refused = uploads.within_limits([big, *(File(f"{n}.png") for n in range(66))])
    assert [file.name for file in fitting] == [f"{n}.png" for n in range(64)]
    assert refused[0] == "'<i>big</i>.mp4' has 65.0 MB: make it smaller than 64 MB."
    assert refused[1] == (
        "Only the first 64 files are used, without '64.png', '65.png': remove some."
    )
    assert uploads.within_limits([File("a.png")]) == ([File("a.png")], [])


def test_the_folder_goes_when_the_visit_ends() -> None:
    visit = Visit()
    root = visit.root
    visit.keep([File("a.png")])
    visit.end()
    assert not root.exists()
    visit.end()


def test_the_folder_goes_with_the_last_reference() -> None:
    root = Visit().root
    gc.collect()
    assert not root.exists()


def test_a_full_disk_leaves_no_half_drop(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BadInput, match="No space left"):
        visit.keep([File("a.png")])
    monkeypatch.undo()
    assert visit.keep([File("a.png", b"now")])[0][1].read_bytes() == b"now"
