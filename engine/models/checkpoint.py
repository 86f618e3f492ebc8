"""A checkpoint as files: where it is, whether it is whole, how large, and its digest.

Boundary: reads names, sizes, JSON and safetensors headers; imports neither torch nor transformers
and never goes to the network.  What is inside the tensors is the adapter's business.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelUnavailable
from engine.types import MediaKind

ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "I8": 1}
DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
FULL_HASH_LIMIT = 256 * 2**20
SAMPLES, SAMPLE_BYTES = 64, 2**16
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
    except (OSError, ValueError) as error:
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
            table = read_json(index, name).get("weight_map", {})
            shards = [folder / str(shard) for shard in sorted(set(table.values()))]
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


def weight_bytes(folder: Path, entry: ModelEntry) -> int:
    """Bytes the weights take in memory in the entry's dtype."""
    wanted = DTYPE_BYTES[entry.dtype]
    total = 0
    for file in weight_files(folder, entry.name):
        if file.suffix == ".safetensors":
            total += sum(math.prod(t["shape"]) * wanted for t in header(file, entry.name).values())
        else:  # a .bin tells nothing without being loaded; released ones hold 16-bit weights
            total += file.stat().st_size // 2 * wanted
    return total


def header(file: Path, name: str) -> dict[str, Any]:
    """Tensor names with shape and dtype, as the first bytes of a safetensors file give them.

    Format: https://github.com/huggingface/safetensors#format
    """
    try:
        with file.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            table = json.loads(stream.read(size)) if size < file.stat().st_size else None
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"{name}: {file} cannot be read ({error}): copy it again."
        ) from error
    if not isinstance(table, dict):
        raise ModelUnavailable(
            f"{name}: {file} is not a whole safetensors file: copy or download it again."
        )
    table.pop("__metadata__", None)
    _refuse_truncated(file, 8 + size, table, name)
    return table


def _refuse_truncated(file: Path, start: int, table: dict[str, Any], name: str) -> None:
    end = max((entry["data_offsets"][1] for entry in table.values()), default=0)
    if file.stat().st_size < start + end:
        raise ModelUnavailable(
            f"{name}: {file} is cut off ({file.stat().st_size:,} of {start + end:,} bytes): "
            "copy or download it again."
        )


def digest(folder: Path, name: str) -> str:
    """Hex text for what the checkpoint holds: its configuration and its weights.

    All bytes up to 256 MB of weights; of larger ones the sizes and 64 pieces of 64 kB spread
    evenly over each file, which any training or merge of weights changes.
    """
    total = hashlib.blake2b(digest_size=16)
    for config in sorted(folder.glob("*.json")):
        total.update(config.name.encode() + config.read_bytes())
    files = weight_files(folder, name)
    whole = sum(file.stat().st_size for file in files) <= FULL_HASH_LIMIT
    for file in files:
        _hash_file(file, whole, total)
    return total.hexdigest()


def _hash_file(file: Path, whole: bool, total: Any) -> None:
    size = file.stat().st_size
    total.update(f"{file.name}:{size}".encode())
    with file.open("rb") as stream:
        if whole:
            while piece := stream.read(2**22):
                total.update(piece)
            return
        for part in range(SAMPLES):
            stream.seek(part * (size - SAMPLE_BYTES) // (SAMPLES - 1))
            total.update(stream.read(SAMPLE_BYTES))
