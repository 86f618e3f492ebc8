"""One file of a checkpoint: its JSON, the header of its tensors, or why it is no such file.

Boundary: opens single files, imports neither torch nor transformers, unpickles nothing.  Every
refusal is a ModelUnavailable that names the file.  Which files there are is weights.py's business.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from engine.errors import ModelUnavailable

POINTER = b"version https://git-lfs"  # how the text begins that git-lfs leaves for a large file
AGAIN = "copy or download it again"


def read_json(path: Path, name: str) -> dict[str, Any]:
    """A JSON object of a checkpoint, or ModelUnavailable that names the file."""
    refuse_unreadable(path, name)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelUnavailable(
            f"{name}: {path} cannot be read ({error}): copy it again."
        ) from error
    if not isinstance(content, dict):
        raise ModelUnavailable(f"{name}: {path} is not a JSON object: copy it again.")
    return content


def refuse_unreadable(path: Path, name: str) -> None:
    """ModelUnavailable if the file is absent, may not be read, or is a git-lfs pointer."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ModelUnavailable(f"{name}: {path} is not a file: {AGAIN}.")
    try:
        with path.open("rb") as stream:
            start = stream.read(len(POINTER))
    except FileNotFoundError as error:
        raise ModelUnavailable(
            f"{name} has no {path.name} in {path.parent}: point its entry in models.toml "
            "at a checkpoint folder."
        ) from error
    except OSError as error:
        raise ModelUnavailable(
            f"{name}: {path} cannot be read ({error.strerror}): give this user the right to it."
        ) from error
    if start == POINTER:
        raise ModelUnavailable(
            f"{name}: {path} is a git-lfs pointer and not the file itself: run `git lfs pull` in "
            "its folder, or download it again."
        )


def shapes(file: Path, name: str) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a safetensors file, or ModelUnavailable if it is not whole."""
    refuse_unreadable(file, name)
    try:
        with safe_open(file, framework="np") as tensors:
            return {key: tuple(tensors.get_slice(key).get_shape()) for key in tensors.keys()}  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(
            f"{name}: {file} is not a whole safetensors file ({error}): {AGAIN}."
        ) from error


def tensor_bytes(file: Path, name: str) -> int:
    """Bytes of tensors in a .bin file, which is a zip archive, or ModelUnavailable."""
    found = sum(info.file_size for info in _archive(file, name) if "/data/" in info.filename)
    return found or file.stat().st_size


def header_digest(file: Path, name: str) -> str:
    """Hex text for the names, shapes and sizes in a weights file; its tensors are not read."""
    total = hashlib.blake2b(str(file.stat().st_size).encode(), digest_size=16)
    if file.suffix == ".safetensors":
        for key, shape in sorted(shapes(file, name).items()):
            total.update(f"{key}:{shape}".encode())
    else:
        for info in _archive(file, name):
            total.update(f"{info.filename}:{info.file_size}:{info.CRC}".encode())
    return total.hexdigest()


def _archive(file: Path, name: str) -> list[zipfile.ZipInfo]:
    refuse_unreadable(file, name)
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise ModelUnavailable(
            f"{name}: {file} is not a whole file of PyTorch weights ({error}): {AGAIN}."
        ) from error
