"""The store of prefixes: bytes, order of leaving, owners, and that nothing is written to twice."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig

from engine.decoding import llama
from engine.models import registry
from engine.pipeline import prefix_cache
from engine.pipeline.prefix_cache import Prefix, Prefixes

TOOK = {"preprocess": 1.0, "vision": 2.0, "decode.prefill": 3.0}
CONFIG = LlamaConfig(num_hidden_layers=2)


class Owner:
    """A model, as far as the store knows."""


def made(tokens: int = 4, width: int = 8, fill: float = 1.0) -> Prefix:
    layer = (torch.full((1, 2, tokens, width), fill), torch.full((1, 2, tokens, width), -fill))
    return Prefix((layer, layer), TOOK, False)


def test_bytes_and_tokens_are_those_of_the_tensors() -> None:
    found = made(tokens=4, width=8)
    assert found.tokens == 4
    assert found.bytes == 2 * 2 * (2 * 4 * 8) * 4


def test_the_least_recently_used_leaves_when_room_is_needed() -> None:
    size = made(tokens=2**12).bytes  # 1 MiB
    store, owner = Prefixes(limit_mb=2), Owner()
    assert size == 2**20
    for name in "ab":
        store.keep(name, made(tokens=2**12), owner)
    assert store.find("a") is not None
    store.keep("c", made(tokens=2**12), owner)
    assert store.find("b") is None and store.find("a") and store.find("c")
    assert store.bytes == 2 * size <= store.limit_bytes


def test_what_is_larger_than_the_limit_is_not_kept_and_costs_no_other() -> None:
    store, owner = Prefixes(limit_mb=1), Owner()
    store.keep("small", made(), owner)
    assert not store.keep("large", made(tokens=2**13), owner)
    assert store.find("small") is not None and len(store) == 1


def test_a_prefix_leaves_with_its_owner() -> None:
    store, owner, other = Prefixes(1), Owner(), Owner()
    store.keep("one", made(), owner)
    store.keep("two", made(), other)
    del owner
    gc.collect()
    assert store.find("one") is None and store.find("two") is not None


def test_an_equal_prefix_of_another_owner_stays() -> None:
    store, owner, other = Prefixes(1), Owner(), Owner()
    store.keep("one", made(), owner)
    store.keep("one", made(), other)
    del owner
    gc.collect()
    assert store.find("one") is not None


def test_clear_forgets_all() -> None:
    store, owner = Prefixes(1), Owner()
    store.keep("one", made(), owner)
    assert store.clear() == 1 and store.bytes == 0 and len(store) == 0


def test_going_on_from_a_prefix_leaves_it_as_it_was() -> None:
    kept = made(tokens=3)
    before = [[part.clone() for part in layer] for layer in kept.layers]
    cache = kept.begin(CONFIG)
    assert cache.get_seq_length() == 3
    for index in range(2):
        cache.update(torch.zeros(1, 2, 1, 8), torch.zeros(1, 2, 1, 8), index)
    cache.layers[0].keys.zero_()
    assert cache.get_seq_length() == 4 and kept.tokens == 3
    for layer, old in zip(kept.layers, before, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(layer, old, strict=True))


def test_a_cut_has_the_first_tokens_and_memory_of_its_own() -> None:
    cache = llama.cache(CONFIG)
    keys = torch.arange(2 * 5 * 8, dtype=torch.float32).reshape(1, 2, 5, 8)
    for index in range(2):
        cache.update(keys, -keys, index)
    cut = prefix_cache.cut(cache, 3, TOOK, True)
    cache.layers[0].keys.zero_()
    assert cut.tokens == 3 and cut.cold
    assert torch.equal(cut.layers[0][0], keys[:, :, :3])
    assert cut.bytes == cut.layers[0][0].untyped_storage().nbytes() * 4


def test_making_room_for_a_model_takes_the_prefixes_first(
    tiny_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = registry.entry("tiny-llava")
    adapter = registry.load(entry)
    prefix_cache.store().keep("one", made(), adapter)
    monkeypatch.setattr("engine.machine.device.free_bytes", lambda: 10**15 if not _held() else 0)
    registry.load(entry)
    assert not _held() and entry in registry.resident()


def _held() -> int:
    return len(prefix_cache.store())


def test_unloading_a_model_frees_its_prefixes(tiny_models: Path) -> None:
    entry = registry.entry("tiny-llava")
    prefix_cache.store().keep("one", made(), registry.load(entry))
    registry.unload(entry)
    assert not _held()


def test_the_limit_is_a_setting(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGESCOPE_PREFIX_LIMIT_MB", "7")
    prefix_cache.store.cache_clear()
    found: Any = prefix_cache.store()
    assert found.limit_bytes == 7 * 2**20
