"""The weight files of a checkpoint: their names, sizes and digest; the progress of reading them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Literal

from engine.errors import BadInput, ModelUnavailable
from engine.models import checkpoint_files
from engine.plain_files import read_json, write_whole

MAX_MEMO = 2**24  # bytes of the list of hashes

FORMS = (("model", "safetensors"), ("pytorch_model", "bin"))  # in the order of preference
# Buffers of older library versions that releases contain besides the weights.
STRAY = re.compile(r"rotary_emb\.inv_freq$|embeddings\.position_ids$")
_SHARD = re.compile(r"(model|pytorch_model)-\d+-of-\d+\.(safetensors|bin)")

Step = Literal["hash", "weights"]
Listener = Callable[[Step, int, int], None]  # (step, amount done, total amount)
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def reported_to(listener: Listener) -> Iterator[None]:
    """Sends every report of this thread to the listener, which may raise Cancelled."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def report(step: Step, done: int, total: int) -> None:
    """Reports progress: bytes hashed, or weights loaded, out of `total`."""
    if listener := _listener.get():
        listener(step, done, total)


def weight_files(folder: Path, name: str) -> list[Path]:
    """The weight files, safetensors first; ModelUnavailable names a missing shard."""
    for single, form in FORMS:
        index = folder / f"{single}.{form}.index.json"
        if index.is_file():
            return _indexed(folder, index, form, name)
        if (folder / f"{single}.{form}").is_file():
            return [folder / f"{single}.{form}"]
        if stray := sorted(folder.glob(f"{single}-*-of-*.{form}")):
            raise ModelUnavailable(
                f"{name}: {stray[0]} is one of several shards, but their index {index.name} is "
                "missing: copy or download it again."
            )
    return []


def _indexed(folder: Path, index: Path, form: str, name: str) -> list[Path]:
    table = checkpoint_files.read_json(index, name).get("weight_map")
    if not isinstance(table, dict) or not table:
        raise ModelUnavailable(f"{name}: {index} lists no weights: copy it again.")
    shards = [folder / shard for shard in sorted({str(shard) for shard in table.values()})]
    for shard in shards:
        if shard.parent.resolve() != folder.resolve():
            raise ModelUnavailable(
                f"{name}: {index} lists {shard}, which lies outside its folder, and is refused: "
                "copy or download it again."
            )
        if not shard.is_file():
            raise ModelUnavailable(
                f"{name} lacks {shard}, which its index lists: copy or download it again."
            )
    known = {shard.name for shard in shards}
    for file in sorted(folder.glob(f"*-of-*.{form}")):
        if _SHARD.fullmatch(file.name) and file.name not in known:
            raise ModelUnavailable(
                f"{name}: {index} does not list {file.name}, which lies beside it: copy the index "
                "and all shards from one checkpoint."
            )
    return shards


def weight_count(folder: Path, name: str) -> int:
    """The number of weights in the files; an upper bound for .bin files, which are not read."""
    total = 0
    for file in weight_files(folder, name):
        if file.suffix == ".safetensors":
            found = checkpoint_files.shapes(file, name).items()
            total += sum(math.prod(shape) for key, shape in found if not STRAY.search(key))
        else:
            # 16 bits are assumed, as in releases
            total += checkpoint_files.tensor_bytes(file, name) // 2
    return total


def counts_exactly(folder: Path, name: str) -> bool:
    """Whether weight_count is exact; for .bin files it is an upper bound."""
    return all(file.suffix == ".safetensors" for file in weight_files(folder, name))


def header_digest(folder: Path, name: str) -> str:
    """A digest of the names, shapes and sizes of all weights and of the JSON files; fast."""
    total = _configuration(folder, name)
    for file in weight_files(folder, name):
        total.update(f"{file.name}:{checkpoint_files.header_digest(file, name)}".encode())
    return total.hexdigest()


def digest(folder: Path, name: str, memo: Path) -> str:
    """A digest of all bytes of the checkpoint's configuration and weights.

    Hashes are kept in the JSON file `memo` by path, size, times and inode, because reading 14 GB
    takes as long as loading them.
    """
    total = _configuration(folder, name)
    known = _read_memo(memo)
    found = {_identity(file): file for file in weight_files(folder, name)}
    hashes = _hashes({key: file for key, file in found.items() if key not in known})
    hashes |= {key: known[key] for key in found if key in known}
    for key, file in found.items():
        total.update(f"{file.name}:{hashes[key]}".encode())
    _write_memo(memo, known, hashes)
    return total.hexdigest()


def digest_if_known(folder: Path, name: str, memo: Path) -> str | None:
    """The digest if the hashes of all files are already known."""
    known = _read_memo(memo)
    if all(_identity(file) in known for file in weight_files(folder, name)):
        return digest(folder, name, memo)
    return None


def _configuration(folder: Path, name: str) -> hashlib.blake2b:
    """A hash of the other files that decide an answer: JSON, templates, sentencepiece."""
    total = hashlib.blake2b(digest_size=16)
    others = (folder / "chat_template.jinja", folder / "tokenizer.model")
    for path in (*sorted(folder.glob("*.json")), *(one for one in others if one.exists())):
        content = checkpoint_files.read_bytes(path, checkpoint_files.LARGE_BYTES, name)
        total.update(path.name.encode() + content)
    return total


def _identity(file: Path) -> str:
    state = file.stat()
    times = f"{state.st_mtime_ns}:{state.st_ctime_ns}"
    return f"{file.resolve()}:{state.st_size}:{times}:{state.st_ino}"


def _hashes(found: Mapping[str, Path]) -> dict[str, str]:
    """The hash of each file; reports the bytes read."""
    whole, done = sum(file.stat().st_size for file in found.values()), 0
    hashes = {}
    for key, file in found.items():
        total = hashlib.blake2b(digest_size=16)
        with file.open("rb") as stream:
            while piece := stream.read(2**22):
                total.update(piece)
                done += len(piece)
                report("hash", done, whole)
        hashes[key] = total.hexdigest()
    return hashes


def _read_memo(memo: Path) -> dict[str, str]:
    try:
        return read_json(memo, MAX_MEMO, "The list of hashes", dict[str, str])
    except BadInput:
        return {}  # hashed again


def _write_memo(memo: Path, known: dict[str, str], hashes: dict[str, str]) -> None:
    if hashes.items() <= known.items():
        return
    with contextlib.suppress(OSError):  # hashed again the next time
        memo.parent.mkdir(parents=True, exist_ok=True)
        write_whole(memo, json.dumps(known | hashes).encode())
