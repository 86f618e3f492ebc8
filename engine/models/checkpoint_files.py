"""Reads one file of a checkpoint: its JSON, or the header of its tensors.

Nothing is unpickled, and every error is a ModelUnavailable that names the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from engine import plain_files
from engine.errors import BadInput, ModelUnavailable
from engine.models import checkpoint_schema
from engine.quoting import cut

JSON_BYTES = 16 * 2**20  # of one settings file; published ones have a few kilobytes
LARGE_BYTES = 128 * 2**20  # of a tokenizer, or of any other JSON file in the folder
# The files that transformers opens beside the weights, even if they are not used here.
READ = (
    *checkpoint_schema.FILES,
    *("special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "adapter_config.json"),
)
TOKENIZERS = ("tokenizer.json", "tokenizer.model")
POINTER = b"version https://git-lfs"  # the first bytes of a git-lfs pointer
AGAIN = "copy or download it again"


def read_json(path: Path, name: str) -> dict[str, Any]:
    """A JSON object of a checkpoint, its values checked for their types, or ModelUnavailable."""
    refuse_unreadable(path, name)
    data = read_bytes(path, JSON_BYTES, name)
    try:
        content = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ModelUnavailable(
            f"{name}: {path} cannot be read ({cut(str(error))}): copy it again."
        ) from error
    if not isinstance(content, dict):
        raise ModelUnavailable(f"{name}: {path} is not a JSON object: copy it again.")
    if kind := checkpoint_schema.kind_of(path.name, content):
        checkpoint_schema.check(content, kind, path, name)
    return content


def read_if_there(path: Path, name: str) -> dict[str, Any]:
    """As `read_json`; {} if the file does not exist."""
    return read_json(path, name) if os.path.lexists(path) else {}


def read_bytes(path: Path, limit: int, name: str) -> bytes:
    """The content of a regular file of a checkpoint, or ModelUnavailable."""
    try:
        return plain_files.read_bytes(path, limit, f"{name}:")
    except (BadInput, OSError) as error:
        raise ModelUnavailable(str(error)) from error


def check_settings(folder: Path, name: str) -> None:
    """ModelUnavailable if a file that transformers would open is not a regular file, is too large,
    or holds a value of a wrong type."""
    for file in READ:
        path = folder / file
        if not os.path.lexists(path):
            continue
        if path.suffix == ".json":
            read_json(path, name)
        else:
            refuse_unreadable(path, name, JSON_BYTES)
    for file in TOKENIZERS:
        if os.path.lexists(folder / file):
            refuse_unreadable(folder / file, name, LARGE_BYTES)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number in JSON")


def refuse_unreadable(path: Path, name: str, limit: int | None = None) -> None:
    """ModelUnavailable if the file is absent, unreadable, a git-lfs pointer or over `limit`."""
    if path.exists() and not path.is_file():  # a pipe would block
        raise ModelUnavailable(f"{name}: {path} is not a file: {AGAIN}.")
    try:
        with path.open("rb") as stream:
            start, size = stream.read(len(POINTER)), os.fstat(stream.fileno()).st_size
    except FileNotFoundError as error:
        raise ModelUnavailable(
            f"{name} has no {path.name} in {path.parent}: point its entry in models.toml "
            "at a checkpoint folder."
        ) from error
    except OSError as error:
        raise ModelUnavailable(
            f"{name}: {path} cannot be read ({error.strerror}): give this user read permission."
        ) from error
    if start == POINTER:
        raise ModelUnavailable(
            f"{name}: {path} is a git-lfs pointer, not the file itself: run `git lfs pull` in "
            "its folder, or download it again."
        )
    if limit is not None and size > limit:
        raise ModelUnavailable(
            f"{name}: {path} has {size:,} bytes; at most {limit:,} are allowed: {AGAIN}."
        )


def shapes(file: Path, name: str) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a safetensors file, or ModelUnavailable if it is incomplete."""
    refuse_unreadable(file, name)
    try:
        with safe_open(file, framework="np") as tensors:
            return {key: tuple(tensors.get_slice(key).get_shape()) for key in tensors.keys()}  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(
            f"{name}: {file} is not a complete safetensors file ({error}): {AGAIN}."
        ) from error


def tensor_bytes(file: Path, name: str) -> int:
    """Bytes of tensors in a .bin file, which is a zip archive, or ModelUnavailable."""
    found = sum(info.file_size for info in _archive(file, name) if "/data/" in info.filename)
    return found or file.stat().st_size


def header_digest(file: Path, name: str) -> str:
    """A digest of the names, shapes and sizes in a weights file; its tensors are not read."""
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
            f"{name}: {file} is not a complete file of PyTorch weights ({error}): {AGAIN}."
        ) from error
