"""Features on disk: round trip, keys, damage, a folder that cannot be used, the limit."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import fields, replace
from pathlib import Path

import pytest
import safetensors.torch
import torch

from engine.errors import CacheError
from engine.pipeline.feature_cache import FeatureCache, key
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


def test_another_process_reads_what_was_written(cache: FeatureCache) -> None:
    cache.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)
    assert FeatureCache(cache.folder, 64).read(SPEC) is not None


def value_files(cache: FeatureCache) -> list[Path]:
    return list(cache.folder.glob("*.safetensors"))


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


def test_a_file_in_the_folders_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "features").write_text("no folder")
    with pytest.raises(CacheError, match="features cannot read"):
        FeatureCache(tmp_path / "features", 64).read(SPEC)


def test_a_full_disk_is_said_and_leaves_no_partial_file(
    cache: FeatureCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write(SPEC, _features(torch.ones(300, 40)), 1.0, cold=False)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CacheError, match="No space left"):
        cache.write(replace(SPEC, media="m1"), _features(torch.ones(300, 40)), 1.0, cold=False)
    assert len(value_files(cache)) == 1 == len(list(cache.folder.iterdir()))


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_a_value_that_is_no_regular_file_is_said_and_not_read(
    kind: str, cache: FeatureCache, tmp_path: Path
) -> None:
    cache.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)
    (file,) = value_files(cache)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(elsewhere)  # even to a good entry
    with pytest.raises(CacheError, match=r"not a regular file|symbolic link"):
        cache.read(SPEC)


def test_the_oldest_entries_leave_when_the_limit_is_reached(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path / "features", 1)
    specs = [replace(SPEC, media=f"m{n}") for n in range(5)]
    for spec in specs[:3]:  # 0.3 MB each
        cache.write(spec, _features(torch.ones(300, 256)), 1.0, cold=False)
    assert cache.state().entries == 3
    again = FeatureCache(cache.folder, 1)  # another process does not know what is there
    for spec in specs[3:]:
        again.write(spec, _features(torch.ones(300, 256)), 1.0, cold=False)
    assert [cache.read(spec) is not None for spec in specs] == [False, False, True, True, True]
    assert cache.state().bytes <= 2**20


FORGED = ({"encode_ms": "nan"}, {"encode_ms": "-1"}, {"cold": None}, {"spec": "[" * 100_000},
          {"encode_ms": "x"})  # fmt: skip


@pytest.mark.parametrize("change", FORGED, ids=lambda change: next(iter(change)))
def test_a_forged_note_of_an_entry_is_noticed(
    cache: FeatureCache, change: dict[str, str | None]
) -> None:
    cache.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)
    (file,) = value_files(cache)
    data = file.read_bytes()[16:]
    note = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"] | change
    forged = safetensors.torch.save(
        {"rows": torch.ones(2, 2)}, {key: value for key, value in note.items() if value is not None}
    )
    file.write_bytes(hashlib.blake2b(forged, digest_size=16).digest() + forged)
    with pytest.raises(CacheError, match="damaged"):
        cache.read(SPEC)


def test_the_folder_is_the_users_alone(cache: FeatureCache) -> None:
    cache.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700


def test_clear_and_count(cache: FeatureCache) -> None:
    cache.write(SPEC, _features(torch.ones(300, 40)), 1.0, cold=False)
    count, size = cache.state().entries, cache.state().bytes
    assert count == 1 and size > 300 * 40 * 4
    assert cache.clear() == 1 and cache.state().entries == 0


def test_the_state_counts_entries_bytes_and_hits(cache: FeatureCache) -> None:
    assert cache.state().hit_rate is None
    other = replace(SPEC, checkpoint="c1")
    cache.write(SPEC, _features(torch.ones(20, 20)), 1.0, cold=False)
    cache.write(replace(SPEC, media="m1"), _features(torch.ones(20, 20)), 1.0, cold=False)
    cache.write(other, _features(torch.ones(40, 20)), 1.0, cold=False)
    assert cache.read(SPEC) and cache.read(other) and cache.read(SPEC)
    assert cache.read(replace(SPEC, media="m2")) is None
    state = cache.state()
    assert (state.entries, state.hits, state.misses, state.hit_rate) == (3, 3, 1, 0.75)
    assert state.folder == cache.folder and state.limit_bytes == 64 * 2**20
    assert {name: count for name, (count, _) in state.checkpoints.items()} == {"c0": 2, "c1": 1}
    assert state.checkpoints["c0"][1] > 2 * 1600 and state.bytes >= state.checkpoints["c0"][1]


def test_clearing_one_checkpoint_leaves_the_others(cache: FeatureCache) -> None:
    other = replace(SPEC, checkpoint="c1")
    for spec in (SPEC, replace(SPEC, media="m1"), other):
        cache.write(spec, _features(torch.ones(2, 2)), 1.0, cold=False)
    assert cache.clear("c0") == 2 and cache.clear("c0") == 0
    assert cache.read(SPEC) is None and cache.read(other) is not None
    assert len(value_files(cache)) == 1
    assert cache.clear() == 1 and cache.state().checkpoints == {}


def test_clearing_removes_no_file_outside_the_folder(cache: FeatureCache, tmp_path: Path) -> None:
    precious = tmp_path / "precious.safetensors"
    precious.write_text("kept")
    cache.write(SPEC, _features(torch.ones(2, 2)), 1.0, cold=False)
    (cache.folder / "c1").symlink_to(tmp_path)
    (file,) = value_files(cache)
    file.unlink()
    file.symlink_to(precious)
    cache.clear()
    assert precious.read_text() == "kept"
