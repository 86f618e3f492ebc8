"""Features on disk: round trip, keys, damage, a folder that cannot be used, and hostile content."""

import hashlib
import json
import os
import pickle
import shutil
import sqlite3
import stat
from dataclasses import fields, replace
from pathlib import Path

import pytest
import safetensors.torch
import torch

from engine.errors import CacheError
from engine.pipeline import feature_cache
from engine.pipeline.feature_cache import BytesOnly, FeatureCache, key
from engine.types import Features, FeatureSpec


def _features(rows: torch.Tensor) -> Features:
    return Features({"rows": rows})


SPEC = FeatureSpec(
    model="llava",
    checkpoint="c0",
    processor="p0",
    dtype="float32",
    device="cpu",
    code="v0",
    media="m0",
)


@pytest.fixture
def cache(tmp_path: Path) -> FeatureCache:
    return FeatureCache(tmp_path / "features", 64)


@pytest.fixture
def kept(cache: FeatureCache) -> FeatureCache:
    """A cache with one entry."""
    cache.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)
    return cache


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rows_come_back_bit_for_bit(cache: FeatureCache, dtype: torch.dtype) -> None:
    rows = torch.randn(7, 5).to(dtype)
    cache.write(SPEC, _features(rows), 12.5, cold=True)
    stored = cache.read(SPEC)
    assert stored is not None
    assert stored.features.rows.dtype == dtype and torch.equal(stored.features.rows, rows)
    assert (stored.encode_ms, stored.cold) == (12.5, True)


@pytest.mark.parametrize("name", [field.name for field in fields(FeatureSpec)])
def test_every_ingredient_changes_the_key(cache: FeatureCache, name: str) -> None:
    other = replace(SPEC, **{name: "changed"})
    cache.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)
    assert key(other) != key(SPEC) == key(replace(SPEC))
    assert cache.read(other) is None


def test_another_process_reads_what_was_written(kept: FeatureCache) -> None:
    kept.close()
    assert FeatureCache(kept.folder, 64).read(SPEC) is not None


def value_files(cache: FeatureCache) -> list[Path]:
    return list(cache.folder.rglob("*.val"))


def test_one_changed_byte_is_noticed_and_the_entry_goes(cache: FeatureCache) -> None:
    cache.write(SPEC, _features(torch.randn(300, 40)), 1.0, cold=False)
    (file,) = value_files(cache)
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)
    with pytest.raises(CacheError, match="damaged"):
        cache.read(SPEC)
    assert cache.read(SPEC) is None


def test_a_value_file_that_vanished_is_a_miss(cache: FeatureCache) -> None:
    cache.write(SPEC, _features(torch.randn(300, 40)), 1.0, cold=False)
    value_files(cache)[0].unlink()
    assert cache.read(SPEC) is None


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "features").write_text("no folder")
    with pytest.raises(CacheError, match="features cannot read"):
        FeatureCache(tmp_path / "features", 64).read(SPEC)


def test_a_full_disk_is_said_and_leaves_no_partial_file(
    cache: FeatureCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write(SPEC, _features(torch.ones(300, 40)), 1.0, cold=False)

    def full(self: BytesOnly, path: str, pieces: object, *_: object) -> int:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BytesOnly, "_write", full)
    with pytest.raises(CacheError, match="No space left"):
        cache.write(replace(SPEC, media="m1"), _features(torch.ones(300, 40)), 1.0, cold=False)
    assert len(value_files(cache)) == 1


class Trap:
    """Unpickling this would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def rewrite(cache: FeatureCache, sql: str, *values: object) -> None:
    cache.close()
    with sqlite3.connect(cache.folder / "cache.db") as database:
        database.execute(sql, values)
    database.close()


def test_a_planted_pickle_is_refused_and_not_run(kept: FeatureCache, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    code = pickle.dumps(Trap(trap))
    pickle.loads(code)  # noqa: S301 - control: the trap works
    assert trap.exists()
    trap.unlink()
    rewrite(kept, "UPDATE Cache SET mode = 4, filename = NULL, value = ?", code)
    with pytest.raises(CacheError, match="did not write"):
        FeatureCache(kept.folder, 64).read(SPEC)
    assert not trap.exists()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE Settings SET value = 'zzz' WHERE key = 'eviction_policy'",
        "UPDATE Settings SET value = -1 WHERE key = 'count'",
        "UPDATE Settings SET value = x'80' WHERE key = 'size_limit'",
        "INSERT INTO Settings VALUES ('disk_zzz', 3)",
        "INSERT INTO Settings VALUES ('get', 'x')",
        "INSERT INTO Settings VALUES ('_con', 'x')",
        "INSERT INTO Settings VALUES ('sqlite_writable_schema', 1)",
        "INSERT INTO Settings VALUES (x'ff', 1)",
        "CREATE TRIGGER t BEFORE INSERT ON Cache BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE VIEW other AS SELECT 1",
        "CREATE TABLE other (x)",
        "ALTER TABLE Cache ADD COLUMN x",
    ],
)
def test_a_damaged_database_is_refused_with_advice(kept: FeatureCache, sql: str) -> None:
    rewrite(kept, sql)
    damaged = FeatureCache(kept.folder, 64)
    with pytest.raises(CacheError, match="delete this folder"):
        damaged.read(SPEC)
        damaged.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)


def test_the_check_of_a_database_leaves_nothing_behind(kept: FeatureCache) -> None:
    kept.close()
    before = sorted(kept.folder.rglob("*"))
    feature_cache.check_database(kept.folder)
    assert sorted(kept.folder.rglob("*")) == before


@pytest.mark.parametrize("name", feature_cache.FILES)
def test_a_database_that_is_no_regular_file_is_not_opened(kept: FeatureCache, name: str) -> None:
    kept.close()
    for put in (os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")):
        shutil.rmtree(kept.folder)
        kept.folder.mkdir()
        put(kept.folder / name)
        with pytest.raises(CacheError, match=r"not a regular file"):
            FeatureCache(kept.folder, 64).read(SPEC)


def test_a_value_that_is_no_regular_file_is_a_miss(cache: FeatureCache, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    for put in (os.mkfifo, Path.mkdir, lambda path: path.symlink_to(tmp_path / "secret")):
        cache.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)
        (file,) = value_files(cache)
        file.unlink()
        put(file)
        assert cache.read(SPEC) is None
        cache.clear()
        shutil.rmtree(cache.folder)
        cache.close()
        cache = FeatureCache(cache.folder, 64)


FORGED = ({"encode_ms": "nan"}, {"encode_ms": "-1"}, {"cold": None}, {"spec": "[" * 100_000},
          {"encode_ms": "x"})  # fmt: skip


@pytest.mark.parametrize("change", FORGED, ids=lambda change: next(iter(change)))
def test_a_forged_note_of_an_entry_is_noticed(
    kept: FeatureCache, change: dict[str, str | None]
) -> None:
    (file,) = value_files(kept)
    data = file.read_bytes()[16:]
    note = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"] | change
    forged = safetensors.torch.save(
        {"rows": torch.ones(2, 2)}, {key: value for key, value in note.items() if value is not None}
    )
    file.write_bytes(hashlib.blake2b(forged, digest_size=16).digest() + forged)
    with pytest.raises(CacheError, match="damaged"):
        kept.read(SPEC)


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "aa/bb/../../cache.db"])
def test_a_value_file_outside_the_folder_is_refused(kept: FeatureCache, name: str) -> None:
    rewrite(kept, "UPDATE Cache SET mode = 2, value = NULL, filename = ?", name)
    with pytest.raises(CacheError, match="did not write"):
        FeatureCache(kept.folder, 64).read(SPEC)


@pytest.mark.parametrize("value", [None, 1, "text", [1]])
def test_only_bytes_go_in(tmp_path: Path, value: object) -> None:
    with pytest.raises(TypeError, match="values are bytes"):
        BytesOnly(str(tmp_path)).store(value, False)


def test_the_folder_is_the_users_alone(kept: FeatureCache) -> None:
    assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700


def test_clear_counts_and_removes_the_entries(kept: FeatureCache) -> None:
    assert kept.clear() == 1 and kept.state().entries == 0


def test_clearing_removes_no_file_outside_the_folder(cache: FeatureCache, tmp_path: Path) -> None:
    """A hostile database that names one."""
    precious = tmp_path / "precious.txt"
    precious.write_text("kept")
    cache.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)
    cache.close()
    with sqlite3.connect(cache.folder / "cache.db") as database:
        database.execute("UPDATE Cache SET filename = '../precious.txt'")
    database.close()
    assert FeatureCache(cache.folder, 64).clear() == 1
    assert precious.read_text() == "kept"
