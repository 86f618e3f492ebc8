"""Parses untrusted bytes to a JSON value, and lists the files of folders."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine import plain_files
from engine.errors import BadInput

MEGABYTE = 2**20
LIMIT_BYTES = 64 * MEGABYTE  # the largest published file has 3 MB
LIMIT_FILES = 5_000
_HALF = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")  # of a surrogate pair in JSON


class RecordsError(BadInput):
    """A result file cannot be read."""


def parse(data: bytes, name: str) -> Any:
    """The JSON value in these bytes, or RecordsError.  NaN and Infinity become floats."""
    check_size(len(data), name)
    if not data.strip():
        raise RecordsError(f"{name} is empty: choose a JSON result file.")
    try:
        value = json.loads(data)
        other = b"\0" in data[:4]  # UTF-16 or UTF-32, where the pattern cannot match
        return _whole(value) if other or _HALF.search(data) else value
    except RecursionError as error:
        raise RecordsError(f"{name} is nested too deep: choose a JSON result file.") from error
    except UnicodeDecodeError as error:
        raise RecordsError(f"{name} is not text in UTF-8: choose a JSON result file.") from error
    except json.JSONDecodeError as error:
        raise RecordsError(_broken(data, name, error)) from error
    except ValueError as error:  # a whole number of thousands of digits
        raise RecordsError(f"{name} holds a number that is too long: correct it.") from error


def _whole(value: Any) -> Any:
    """The value with the replacement character for each lone surrogate: JSON can contain one, pages
    and text files cannot."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    return value


def _broken(data: bytes, name: str, error: json.JSONDecodeError) -> str:
    if data.lstrip()[:1] not in b'[{"':
        return f"{name} is not JSON: choose a JSON result file."
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
        return f"{name} ends in the middle (line {error.lineno}): copy the whole file again."
    return f"{name} is not valid JSON (line {error.lineno}: {error.msg}): correct it."


def check_size(size: int, name: str) -> None:
    if size > LIMIT_BYTES:
        raise RecordsError(
            f"{name} has {size / MEGABYTE:,.0f} MB: result files of at most "
            f"{LIMIT_BYTES // MEGABYTE} MB are read."
        )


def read(path: Path, name: str) -> bytes:
    """The bytes of a regular file, or RecordsError; a file over the limit is not opened."""
    try:
        check_size(path.stat().st_size, name)
        return plain_files.read_limited(path, LIMIT_BYTES)
    except OSError as error:
        reason = plain_files.reason(error)
        raise RecordsError(f"{name} cannot be read ({reason}): check the path.") from error
    except ValueError as error:  # a null byte in the name
        raise RecordsError(f"{name!r} is not a usable path: correct it.") from error


def find(paths: Iterable[Path]) -> list[tuple[str, Path]]:
    """(shown name, path) of each given file, and of each *.json below each given folder, sorted.

    Links are not followed out of a folder.  RecordsError for a folder without JSON files.
    """
    found: dict[Path, str] = {}
    for path in paths:
        if not _is_folder(path):
            found.setdefault(path, shown(str(path)))
            continue
        inside = _below(path)
        if not inside:
            raise RecordsError(f"{shown(str(path))} holds no .json file: choose another folder.")
        for file in inside:
            found.setdefault(file, shown(str(file.relative_to(path))))
    if len(found) > LIMIT_FILES:
        raise RecordsError(
            f"{len(found):,} files are more than {LIMIT_FILES:,}: choose a smaller folder."
        )
    return [(name, path) for path, name in found.items()]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False  # reading it says why


def _below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for base, folders, files in os.walk(folder, followlinks=False):
        folders.sort()
        paths = (Path(base, file) for file in sorted(files) if file.lower().endswith(".json"))
        found += [path for path in paths if not path.is_symlink()]
    return found


def shown(name: str, most: int = 120) -> str:
    """A name to show: only its last part if it is absolute or has "..", no control characters."""
    text = name.replace("\\", "/")
    if ".." in text.split("/") or text.startswith("/"):
        text = text.rsplit("/", 1)[-1]
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text[-most:] or "file"
