"""Only regular files are opened, and no more of them is read than a stated size."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import BadInput, SettingsError
from engine.plain_files import (
    open_descriptor,
    open_regular,
    read_bytes,
    read_json,
    read_limited,
    read_text,
    write_whole,
)

LIMIT = 100
OPEN = Path("/proc/self/fd")


def refusal(path: Path, **options: object) -> str:
    """The one sentence with which this path is refused."""
    with pytest.raises(BadInput) as caught:
        read_bytes(path, LIMIT, "The list", **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert text.startswith("The list ") and text.endswith(".") and text.count(". ") == 0
    assert "\n" not in text and len(text) < 300
    return text


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * LIMIT)
    assert read_bytes(file, LIMIT, "The list") == b"x" * LIMIT
    file.write_bytes(b"x" * (LIMIT + 1))
    assert "more than the 100 bytes" in refusal(file)


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "named pipe" in refusal(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_descriptor(tmp_path / "pipe", os.O_WRONLY)


def test_devices_folders_and_sockets_are_refused(tmp_path: Path) -> None:
    assert "a device" in refusal(Path("/dev/zero"))
    assert "a folder" in refusal(tmp_path)
    (tmp_path / "zero").symlink_to("/dev/zero")
    assert "a device" in refusal(tmp_path / "zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert "not a regular file" in refusal(tmp_path / "s")


def test_links_are_followed_unless_they_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "loop").symlink_to("loop")
    assert read_bytes(tmp_path / "link", LIMIT, "The list") == b"text"
    assert "symbolic link" in refusal(tmp_path / "link", links=False)
    assert "symbolic link" in refusal(tmp_path / "loop")
    assert refusal(tmp_path / "absent")


def test_text_and_json_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "a"
    for data in (b"\xff", b"[" * 99, b"{", b"NaN", b'{"a": 1e999}', b'"x"', b'"\\ud800"'):
        file.write_bytes(data)
        with pytest.raises(SettingsError, match=r"^The list .*\.$"):
            read_json(file, LIMIT, "The list", dict, error=SettingsError)
    file.write_bytes(b"\xff")
    with pytest.raises(BadInput, match="UTF-8"):
        read_text(file, LIMIT, "The list")
    file.write_bytes(b'{"a": [1, 2.5, null]}')
    assert read_json(file, LIMIT, "The list", dict) == {"a": [1, 2.5, None]}


def test_descriptors_are_closed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").write_bytes(b"x")
    before = len(list(OPEN.iterdir())) if OPEN.exists() else 0
    for _ in range(5):
        refusal(tmp_path / "pipe")
        refusal(tmp_path / "absent")
        assert read_limited(tmp_path / "a", LIMIT) == b"x"
        with open_regular(tmp_path / "a"):
            pass
    if before:
        assert len(list(OPEN.iterdir())) == before


def test_a_file_is_replaced_whole_and_nothing_else_is(tmp_path: Path) -> None:
    file, other = tmp_path / "a", tmp_path / "other"
    write_whole(file, [b"one ", b"two"])
    write_whole(file, b"three")
    assert file.read_bytes() == b"three"
    other.write_bytes(b"kept")
    (tmp_path / "link").symlink_to(other)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder"):
        with pytest.raises(OSError, match="not a regular file"):
            write_whole(tmp_path / name, b"x")
    with pytest.raises(OSError, match="names a folder"):
        write_whole(Path(), b"x")
    assert other.read_bytes() == b"kept" and (tmp_path / "link").is_symlink()


def test_a_device_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By root too, who could: no file is even made beside it."""
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("something was opened"))
    for name in ("/dev/null", "/dev/stdout"):
        with pytest.raises(OSError, match="not a regular file"):
            write_whole(Path(name), b"x")


def test_an_end_in_the_middle_leaves_the_old_file_alone(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    write_whole(tmp_path / "a", b"old")
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "a", pieces())
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_name_that_no_system_takes_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "a\0b")
    assert refusal(tmp_path / ("a" * 5000))
