"""Resolves a record's file names below one dataset root, or refuses them.

A record is untrusted text.  It must not make this program open a file outside its root, by "..", an
absolute path, a Windows path or a symbolic link.

Boundary: checks names, sizes and links; opens no file.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from engine.errors import MediaError
from engine.media.media_files import by_number
from engine.quoting import quoted, shown

MIN_MP4_BYTES = 1_000
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")


class Root:
    """One dataset root.  Every path it returns lies inside it, after links are resolved."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._folders: dict[Path, bool] = {}

    def path_of(self, folder: str, value: object) -> Path:
        """root/folder/value; MediaError if the value is not a path below root/folder."""
        if not isinstance(value, str) or not value or not value.isprintable():
            raise MediaError(f"{quoted(value)} is not a file name: correct the record.")
        parts = value.split("/")
        if not set(parts) - {"", "."}:
            raise MediaError(f"{quoted(value)} is not a file name: correct the record.")
        if "\\" in value or re.match(r"[A-Za-z]:", value) or value.startswith("/"):
            raise MediaError(f"{quoted(value)} is refused: name a path relative to {folder}/.")
        if ".." in parts:
            raise MediaError(f"{quoted(value)} leaves {folder}/ and is refused: remove the '..'.")
        if len(value) > 1_000 or any(len(part.encode()) > 255 for part in parts):
            raise MediaError(f"{quoted(value)} is too long for a file name: correct the record.")
        return self.path / folder / value

    def has(self, path: Path) -> bool:
        """Whether anything exists there, even a broken link; False without permission."""
        try:
            path.lstat()
        except OSError:
            return False
        return True

    def file(self, path: Path) -> Path:
        """The path of a file that exists, is not empty and lies inside, or MediaError."""
        name = self._name(path)
        try:
            info = path.lstat()
            self._check_inside(path, stat.S_ISLNK(info.st_mode))
            info = path.stat() if stat.S_ISLNK(info.st_mode) else info
        except (FileNotFoundError, NotADirectoryError):
            raise MediaError(f"{name} does not exist: restore it.") from None
        except OSError as error:
            raise MediaError(f"{name} cannot be reached ({error.strerror}): check it.") from error
        if not stat.S_ISREG(info.st_mode):
            raise MediaError(f"{name} is not a file: replace it by one.")
        if not info.st_size:
            raise MediaError(f"{name} is empty (0 bytes): copy it again.")
        if path.suffix.lower() == ".mp4" and info.st_size < MIN_MP4_BYTES:
            raise MediaError(f"{name} is broken ({info.st_size:,} bytes): encode the clip again.")
        return path

    def pictures(self, path: Path) -> tuple[Path, ...]:
        """The PNG and JPEG files of a folder, sorted by number; MediaError if there are none."""
        name = self._name(path)
        try:
            self._check_inside(path, path.is_symlink())
            with os.scandir(path) as entries:
                found = [entry for entry in entries if _is_picture(entry.name)]
            for entry in found:
                if entry.is_symlink():
                    self._check_inside(path / entry.name, True)
        except (FileNotFoundError, NotADirectoryError):
            raise MediaError(f"{name}/ does not exist: restore it.") from None
        except OSError as error:
            raise MediaError(f"{name}/ cannot be read ({error.strerror}): check it.") from error
        if not found:
            raise MediaError(f"{name}/ holds no PNG or JPEG: restore its frames.")
        return tuple(sorted((path / entry.name for entry in found), key=by_number))

    def _name(self, path: Path) -> str:
        return shown(path.relative_to(self.path).as_posix())

    def _check_inside(self, path: Path, link: bool) -> None:
        """MediaError if a link leads out of the root; the result for a folder is remembered."""
        inside = self._folders.get(path.parent)
        if inside is None:
            inside = self._folders[path.parent] = self._holds(path.parent)
        if not inside or (link and not self._holds(path)):
            raise MediaError(
                f"{self._name(path)} is a link out of the dataset and is refused: copy the file."
            )

    def _holds(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self.path)
        except RuntimeError:  # Python 3.10 to 3.12 raise it for circular links
            return False


def _is_picture(name: str) -> bool:
    # macOS writes "._000027.png" beside the real files on other file systems.
    return name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith(".")
