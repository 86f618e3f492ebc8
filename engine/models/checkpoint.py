"""A checkpoint as files: where it is, whether it is whole, how large, and its digest.

Boundary: reads names, JSON and safetensors headers; imports neither torch nor transformers
and never goes to the network.  What is inside the tensors is the adapter's business.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from engine.errors import ModelUnavailable
from engine.types import MediaKind

DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")


@dataclass(frozen=True)
class ModelEntry:
    """One entry of models.toml.  `folder` is set for local checkpoints, None for hub names."""

    name: str
    label: str
    family: str
    kind: MediaKind
    checkpoint: str
    folder: Path | None
    revision: str | None
    dtype: str
    demo: bool


def is_hub_name(checkpoint: str) -> bool:
    """ "owner/name" is a hub name; a folder with one slash is written ./owner/name."""
    return _HUB_NAME.fullmatch(checkpoint) is not None


def locate(entry: ModelEntry) -> Path:
    """The folder that holds the checkpoint's files, or ModelUnavailable with what to do."""
    folder = entry.folder or _in_hub_cache(entry)
    if not folder.is_dir():
        raise ModelUnavailable(
            f"{entry.name} is not on this machine: put its checkpoint folder at {folder}, "
            "or change its checkpoint in models.toml."
        )
    read_json(folder / "config.json", entry.name)
    if not weight_files(folder, entry.name):
        raise ModelUnavailable(
            f"{entry.name} has no weights in {folder}: copy its *.safetensors (or *.bin) there."
        )
    return folder


def _in_hub_cache(entry: ModelEntry) -> Path:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(entry.checkpoint, "config.json", revision=entry.revision)
    if not isinstance(found, str):
        raise ModelUnavailable(
            f"{entry.name} has not been downloaded: run "
            f"`hf download {entry.checkpoint} --revision {entry.revision or 'main'}` once, "
            "or set its checkpoint in models.toml to a folder."
        )
    return Path(found).parent


def read_json(path: Path, name: str) -> dict[str, Any]:
    """A JSON object of a checkpoint, or ModelUnavailable that names the file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelUnavailable(
            f"{name} has no {path.name} in {path.parent}: point its entry in models.toml "
            "at a checkpoint folder."
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelUnavailable(
            f"{name}: {path} cannot be read ({error}): copy it again."
        ) from error
    if not isinstance(content, dict):
        raise ModelUnavailable(f"{name}: {path} is not a JSON object: copy it again.")
    return content


def weight_files(folder: Path, name: str) -> list[Path]:
    """The files that hold weights, safetensors first; a shard that is absent is refused by name."""
    for single, pattern in (("model", "safetensors"), ("pytorch_model", "bin")):
        index = folder / f"{single}.{pattern}.index.json"
        if index.is_file():
            table = read_json(index, name).get("weight_map")
            if not isinstance(table, dict) or not table:
                raise ModelUnavailable(f"{name}: {index} lists no weights: copy it again.")
            shards = [folder / shard for shard in sorted({str(shard) for shard in table.values()})]
            _refuse_absent(shards, name)
            return shards
        if (folder / f"{single}.{pattern}").is_file():
            return [folder / f"{single}.{pattern}"]
    return []


def _refuse_absent(shards: list[Path], name: str) -> None:
    for shard in shards:
        if shard.parent.resolve() != shards[0].parent.resolve() or not shard.is_file():
            raise ModelUnavailable(
                f"{name} lacks {shard.name}, which its index lists: copy or download it again."
            )


def weight_count(folder: Path, name: str) -> int:
    """How many numbers the weight files hold; of .bin files, which tell nothing unread, at most."""
    total = 0
    for file in weight_files(folder, name):
        if file.suffix == ".safetensors":
            total += sum(math.prod(shape) for shape in shapes(file, name).values())
        else:
            total += file.stat().st_size // 2  # 16-bit, as released ones are
    return total


def shapes(file: Path, name: str) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a safetensors file, or ModelUnavailable if it is not whole."""
    try:
        with safe_open(file, framework="np") as tensors:
            return {key: tuple(tensors.get_slice(key).get_shape()) for key in tensors.keys()}  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(
            f"{name}: {file} is not a whole safetensors file ({error}): copy or download it again."
        ) from error


def digest(folder: Path, name: str, memo: Path) -> str:
    """Hex text for what the checkpoint holds: every byte of its configuration and its weights.

    A file's hash is kept in the JSON file `memo` under its path, size, times and inode, because
    reading 14 GB takes as long as loading them.
    """
    known = _read_memo(memo)
    found = {_identity(file): file for file in weight_files(folder, name)}
    hashes = {key: known.get(key) or _hash(file) for key, file in found.items()}
    _write_memo(memo, known, hashes)
    return _total(folder, found, hashes)


def known_digest(folder: Path, name: str, memo: Path) -> str | None:
    """The digest if `memo` holds every weight file as it is now, else None: nothing is hashed."""
    known = _read_memo(memo)
    found = {_identity(file): file for file in weight_files(folder, name)}
    return _total(folder, found, known) if found.keys() <= known.keys() else None


def _total(folder: Path, found: Mapping[str, Path], hashes: Mapping[str, str]) -> str:
    total = hashlib.blake2b(digest_size=16)
    for config in sorted(folder.glob("*.json")):
        total.update(config.name.encode() + config.read_bytes())
    for key, file in found.items():
        total.update(f"{file.name}:{hashes[key]}".encode())
    return total.hexdigest()


def _identity(file: Path) -> str:
    state = file.stat()
    times = f"{state.st_mtime_ns}:{state.st_ctime_ns}"
    return f"{file.resolve()}:{state.st_size}:{times}:{state.st_ino}"


def _hash(file: Path) -> str:
    total = hashlib.blake2b(digest_size=16)
    with file.open("rb") as stream:
        while piece := stream.read(2**22):
            total.update(piece)
    return total.hexdigest()


def _read_memo(memo: Path) -> dict[str, str]:
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}  # hashed again
    return known if isinstance(known, dict) else {}


def _write_memo(memo: Path, known: dict[str, str], hashes: dict[str, str]) -> None:
    if hashes.items() <= known.items():
        return
    part = memo.with_suffix(f".{os.getpid()}.part")
    with contextlib.suppress(OSError):  # hashed again the next time
        memo.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(known | hashes), encoding="utf-8")
        part.replace(memo)
