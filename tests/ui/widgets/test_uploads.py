"""Dropped files: kept for the visit, under names of our own, within limits."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.media import kinds
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


def test_a_new_drop_deletes_the_old_one(visit: Visit) -> None:
    old = visit.keep([File("a.png", file_id="1")])[0][1]
    new = visit.keep([File("a.png", file_id="2")])[0][1]
    assert not old.exists() and new.exists()


def test_files_of_a_run_that_goes_on_stay_until_it_ends(visit: Visit) -> None:
    old = visit.keep([File("a.png", file_id="1")])[0][1]
    visit.keep([File("a.png", file_id="2")], busy=True)
    assert old.exists()
    visit.keep([File("a.png", file_id="2")], busy=False)
    assert not old.exists()


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


def test_too_large_and_too_many_are_refused_in_a_sentence(visit: Visit) -> None:
    with pytest.raises(BadInput, match=r"big\.mp4 has 65 MB: the limit is 64 MB"):
        visit.keep([File("big.mp4", claimed=65 * 2**20)])
    with pytest.raises(BadInput, match="65 files were added: add at most 64"):
        visit.keep([File(f"{n}.png") for n in range(65)])
    assert list(visit.root.iterdir()) == []


def test_a_full_disk_leaves_no_half_drop(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BadInput, match="No space left"):
        visit.keep([File("a.png")])
    monkeypatch.undo()
    assert visit.keep([File("a.png", b"now")])[0][1].read_bytes() == b"now"
