"""The feature cache: features on disk under a content key, stored through diskcache.

Values are safetensors bytes with a checksum; the key is a hash of the FeatureSpec.  Nothing read
from the folder can run code: diskcache would unpickle values, so `BytesOnly` refuses them.  Every
failure of the folder is a CacheError; the caller continues without the cache and adds a note.
"""

import errno
import hashlib
import json
import math
import re
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import diskcache
import safetensors.torch
import torch
from diskcache.core import MODE_BINARY, MODE_RAW
from safetensors import SafetensorError

from engine import settings
from engine.errors import CacheError
from engine.plain_files import advice, read_limited, reason
from engine.quoting import shown
from engine.types import Features, FeatureSpec

MAX_VALUE = 2**28  # bytes of one entry; 8 frames of a 7B model take about 2**25
CHUNK = 4 * 2**20  # diskcache would split bytes at every newline
CHECKSUM = 16
TIMEOUT_S = 2
_PLAIN = torch.contiguous_format  # safetensors takes neither views nor strides
# What diskcache and sqlite raise if a folder is missing, full, locked or damaged.  A changed byte
# in the database can raise almost any error about a value.
FOLDER_ERRORS = (sqlite3.Error, diskcache.Timeout, ValueError, KeyError, TypeError, OverflowError)
_VALUE_FILE = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{2}[/\\][0-9a-f]{28}\.val")
DATABASE = "cache.db"
FILES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal")
MOST_ROWS = 100  # of its tables and settings that are read: more than diskcache writes
_COUNTS = ("size_limit", "count", "size", "hits", "misses")  # settings of any size


class BytesOnly(diskcache.Disk):
    """Keys are text and values are bytes; pickles are refused on writing and reading."""

    def put(self, key: Any) -> tuple[str, bool]:
        if not isinstance(key, str):
            raise TypeError(f"cache keys are text, not {type(key).__name__}")
        return key, True

    def get(self, key: Any, raw: bool) -> str:
        if not raw or not isinstance(key, str):
            raise CacheError("the feature cache holds a key that StageScope did not write")
        return key

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, str | None, Any]:
        if read or not isinstance(value, bytes):
            raise TypeError(f"cache values are bytes, not {type(value).__name__}")
        filename, full_path = self.filename()
        pieces = (value[start : start + CHUNK] for start in range(0, len(value), CHUNK))
        try:
            size = self._write(full_path, pieces, "xb")
        except OSError:
            self.remove(filename)  # diskcache leaves the partial file behind
            raise
        return size, MODE_BINARY, filename, None

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> bytes:
        if mode == MODE_RAW and isinstance(value, bytes):
            return value
        if mode != MODE_BINARY or filename is None or not _VALUE_FILE.fullmatch(filename):
            raise CacheError("the feature cache holds a value that StageScope did not write")
        return read_limited(Path(self._directory) / filename, MAX_VALUE, links=False)

    def remove(self, file_path: str) -> None:
        """Removes only files named as by diskcache; another name may lead out of the folder."""
        if _VALUE_FILE.fullmatch(file_path):
            super().remove(file_path)


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    features: Features
    encode_ms: float
    cold: bool


@dataclass(frozen=True)
class CacheState:
    """The current contents of the cache, and the hits and misses of this process.  `checkpoints`
    maps a checkpoint's digest (ModelInfo.digest) to its number of entries and bytes."""

    folder: Path
    entries: int
    bytes: int
    limit_bytes: int
    hits: int
    misses: int
    checkpoints: Mapping[str, tuple[int, int]]


def key(spec: FeatureSpec) -> str:
    return hashlib.blake2b(_text_of(spec).encode(), digest_size=20).hexdigest()


class FeatureCache:
    """The cache folder.  It is opened on first use, so creating the object is cheap."""

    def __init__(self, folder: Path, limit_mb: int) -> None:
        self.folder, self.limit_mb = folder, limit_mb
        self.hits = self.misses = 0
        self._cache: diskcache.Cache | None = None

    def read(self, spec: FeatureSpec) -> StoredFeatures | None:
        """The features of this spec, or None.  Removes a damaged entry and raises CacheError."""
        with self._guard("read"):
            name = key(spec)
            value = self._open().get(name)
            if value is None:
                self.misses += 1
                return None
            stored = _unpack(value, spec)
            if stored is None:
                self._open().delete(name)
        if stored is None:
            self.misses += 1
            raise CacheError("An entry of the feature cache was damaged and has been removed.")
        self.hits += 1
        return stored

    def write(self, spec: FeatureSpec, features: Features, encode_ms: float, cold: bool) -> None:
        metadata = {"spec": _text_of(spec), "encode_ms": repr(encode_ms), "cold": str(int(cold))}
        kept = features.changed(lambda one: one.detach().cpu().clone(memory_format=_PLAIN))
        data = safetensors.torch.save(dict(kept.tensors), metadata)
        with self._guard("write"):
            self._open().set(key(spec), _checksum(data) + data, tag=spec.checkpoint)

    def prepare(self) -> None:
        """Opens the folder now, so that no run's time includes it."""
        with self._guard("read"):
            self._open()

    def state(self) -> CacheState:
        """The entries per checkpoint, and the hits and misses; raises CacheError."""
        with self._guard("read"):
            cache = self._open()
            # diskcache has no method for it
            counts = cache._sql("SELECT tag, COUNT(*), SUM(size) FROM Cache GROUP BY tag")
            return CacheState(
                folder=self.folder,
                entries=len(cache),
                bytes=cache.volume(),
                limit_bytes=cache.size_limit,
                hits=self.hits,
                misses=self.misses,
                checkpoints={
                    tag: (int(count), int(size))
                    for tag, count, size in counts.fetchall()
                    if isinstance(tag, str)
                },
            )

    def clear(self) -> int:
        with self._guard("write"):
            return int(self._open().clear())

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()

    def _open(self) -> diskcache.Cache:
        if self._cache is None:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            check_database(self.folder)
            self._cache = diskcache.Cache(
                self.folder, timeout=TIMEOUT_S, disk=BytesOnly, size_limit=self.limit_mb * 2**20
            )
        return self._cache

    @contextmanager
    def _guard(self, verb: str) -> Iterator[None]:
        try:
            yield
        except (OSError, *FOLDER_ERRORS) as error:
            self._cache = None
            fix = "delete this folder to start a new one, or wait if another program uses it"
            if isinstance(error, OSError):
                fix = f"{advice(error, 'repair it')} or set STAGESCOPE_CACHE_DIR to another folder"
            raise CacheError(
                f"The feature cache {shown(self.folder)} cannot {verb} ({reason(error)}): {fix}."
            ) from error


def check_database(folder: Path) -> None:
    """Raises ValueError, OSError or sqlite3.Error if this folder's database must not be opened.

    diskcache sets an attribute of its object for every row of its Settings table, and sqlite runs
    all triggers and views of the database.  Therefore a database is refused if it contains anything
    that diskcache does not write into a fresh one.  Parts may be missing, because another process
    may be creating it.
    """
    for path in map(folder.joinpath, FILES):
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise OSError(errno.EINVAL, f"{path.name} is not a regular file", str(path))
    if not (folder / DATABASE).exists():
        return
    with closing(sqlite3.connect(folder / DATABASE, timeout=TIMEOUT_S)) as database:
        made = database.execute("SELECT name, sql FROM sqlite_master").fetchmany(MOST_ROWS)
        with TemporaryDirectory(dir=folder) as new, diskcache.Cache(new, disk=BytesOnly) as fresh:
            schema = dict(fresh._sql("SELECT name, sql FROM sqlite_master").fetchall())
            usual = dict(fresh._sql("SELECT key, value FROM Settings").fetchall())
        if any(item not in schema or text != schema[item] for item, text in made):
            raise ValueError("its tables are not those that StageScope writes")
        if "Settings" in dict(made):
            rows = database.execute("SELECT key, value FROM Settings").fetchmany(MOST_ROWS)
            if any(key not in usual or not _fits(key, value, usual[key]) for key, value in rows):
                raise ValueError("its settings are not those that StageScope writes")


def _fits(key: str, value: object, usual: object) -> bool:
    if key in _COUNTS:
        return isinstance(value, int) and value >= 0
    return type(value) is type(usual) and value == usual


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
    return FeatureCache(chosen.cache_dir / "features", chosen.cache_limit_mb)
