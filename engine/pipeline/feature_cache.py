"""The feature cache: one safetensors file per entry, named by its checkpoint and a content key.

A file begins with a checksum; its metadata holds the whole FeatureSpec, of which the key is the
hash.  Nothing read from the folder can run code or lead out of it: links are not followed.

Every failure of the folder is a CacheError; the caller continues without the cache and adds a note.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError

from engine import settings
from engine.errors import CacheError
from engine.plain_files import advice, read_limited, reason, write_whole
from engine.quoting import shown
from engine.types import Features, FeatureSpec

MAX_VALUE = 2**28  # bytes of one entry; 8 frames of a 7B model take about 2**25
CHECKSUM = 16
_PLAIN = torch.contiguous_format  # safetensors takes neither views nor strides


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """Features as read, on the CPU, and the time of their computation."""

    features: Features
    encode_ms: float
    cold: bool


@dataclass(frozen=True)
class CacheState:
    """The current contents of the cache, and the hits and misses of this process.

    `checkpoints` maps a checkpoint's digest (ModelInfo.digest) to its number of entries and bytes.
    """

    folder: Path
    entries: int
    bytes: int
    limit_bytes: int
    hits: int
    misses: int
    checkpoints: Mapping[str, tuple[int, int]]

    @property
    def hit_rate(self) -> float | None:
        reads = self.hits + self.misses
        return self.hits / reads if reads else None


def key(spec: FeatureSpec) -> str:
    return hashlib.blake2b(_text_of(spec).encode(), digest_size=20).hexdigest()


class FeatureCache:
    """The cache folder with its limit: the entries that were stored first go first."""

    def __init__(self, folder: Path, limit_mb: int) -> None:
        self.folder = folder
        self.limit_mb = limit_mb
        self.hits = 0
        self.misses = 0
        self._bytes: int | None = None  # of all entries, as far as this process knows

    def read(self, spec: FeatureSpec) -> StoredFeatures | None:
        """The features of this spec, or None.  Removes a damaged entry and raises CacheError."""
        path, stored = self._path(spec), None
        with self._guard("read"):
            try:
                stored = _unpack(read_limited(path, MAX_VALUE, links=False), spec)
            except FileNotFoundError:
                self.misses += 1
                return None
            if stored is None:
                path.unlink(missing_ok=True)
        if stored is None:
            self.misses += 1
            raise CacheError("An entry of the feature cache was damaged and has been removed.")
        self.hits += 1
        return stored

    def write(self, spec: FeatureSpec, features: Features, encode_ms: float, cold: bool) -> None:
        """Stores features with the time of their computation."""
        metadata = {"spec": _text_of(spec)}
        metadata |= {"encode_ms": repr(encode_ms), "cold": str(int(cold))}
        kept = features.changed(lambda one: one.detach().cpu().clone(memory_format=_PLAIN))
        data = safetensors.torch.save(dict(kept.tensors), metadata)
        path = self._path(spec)
        with self._guard("write"):
            self._make_folder()
            write_whole(path, [_checksum(data), data])
            known, size = self._bytes, path.stat().st_size
            self._bytes = self._total() if known is None else known + size
            if self._bytes > self.limit_mb * 2**20:
                self._make_room()

    def prepare(self) -> None:
        """Makes the folder, so that no run's time includes it."""
        with self._guard("read"):
            self._make_folder()

    def state(self) -> CacheState:
        """The entries per checkpoint, and the hits and misses; raises CacheError."""
        with self._guard("read"):
            self._make_folder()
            found: dict[str, tuple[int, int]] = {}
            for path, about in self._files():
                count, size = found.get(_owner(path), (0, 0))
                found[_owner(path)] = count + 1, size + about.st_size
        return CacheState(
            folder=self.folder,
            entries=sum(count for count, _ in found.values()),
            bytes=sum(size for _, size in found.values()),
            limit_bytes=self.limit_mb * 2**20,
            hits=self.hits,
            misses=self.misses,
            checkpoints=found,
        )

    def clear(self, checkpoint: str | None = None) -> int:
        """Removes the entries of one checkpoint (ModelInfo.digest) or all; returns their number."""
        self._bytes = None
        with self._guard("write"):
            gone = [path for path, _ in self._files() if checkpoint in (None, _owner(path))]
            for path in gone:
                path.unlink(missing_ok=True)
        return len(gone)

    def _make_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def _path(self, spec: FeatureSpec) -> Path:
        owner = spec.checkpoint if spec.checkpoint.isalnum() else "unknown"
        return self.folder / f"{owner}-{key(spec)}.safetensors"

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.folder.glob("*-*.safetensors"):
            with suppress(FileNotFoundError):  # another process removed it
                yield path, path.lstat()

    def _total(self) -> int:
        return sum(about.st_size for _, about in self._files())

    def _make_room(self) -> None:
        """Removes the oldest entries until the rest is within the limit."""
        self._bytes = self._total()
        for path, about in sorted(self._files(), key=lambda one: one[1].st_mtime_ns):
            if self._bytes <= self.limit_mb * 2**20:
                break
            path.unlink(missing_ok=True)
            self._bytes -= about.st_size

    @contextmanager
    def _guard(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CacheError(
                f"The feature cache {shown(self.folder)} cannot {verb} ({reason(error)}): "
                f"{advice(error, 'repair it')} or set STAGESCOPE_CACHE_DIR to another folder."
            ) from error


def _owner(path: Path) -> str:
    return path.name.partition("-")[0]


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=CHECKSUM).digest()


def _unpack(value: bytes, spec: FeatureSpec) -> StoredFeatures | None:
    """None if the bytes are damaged or belong to another spec."""
    data = value[CHECKSUM:]
    if value[:CHECKSUM] != _checksum(data):
        return None
    try:
        features = Features(safetensors.torch.load(data))
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        encode_ms, cold = float(metadata["encode_ms"]), metadata["cold"] == "1"
    except (SafetensorError, KeyError, ValueError, RecursionError):
        return None
    usable = metadata["spec"] == _text_of(spec) and 0 <= encode_ms < math.inf
    return StoredFeatures(features, encode_ms, cold) if usable and features.tensors else None


def _text_of(spec: FeatureSpec) -> str:
    return json.dumps(asdict(spec), sort_keys=True)


@lru_cache(maxsize=1)
def shared() -> FeatureCache:
    chosen = settings.load()
    return FeatureCache(chosen.features_dir, chosen.cache_limit_mb)
