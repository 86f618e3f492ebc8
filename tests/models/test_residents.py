"""Which models stay in memory, which leave for another, and what each of them needs."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from engine.errors import ModelUnavailable
from engine.machine import device
from engine.models import checkpoint_files, model_card, registry
from engine.models.checkpoint import ModelEntry
from tests.tiny import unload_all

pytestmark = pytest.mark.loads


@pytest.fixture
def entries(tiny_models: Path) -> dict[str, ModelEntry]:
    """The three tiny models, none of them loaded."""
    unload_all()
    return {item.family: item for item in registry.entries()}


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """So many bytes are free while no model is loaded; what is free shrinks with what is."""

    def limited(size: int) -> None:
        monkeypatch.setattr(
            device, "free_bytes", lambda: size - sum(registry.resident_bytes().values())
        )

    return limited


def test_the_least_recently_used_leaves_and_is_freed(
    entries: dict[str, ModelEntry], room: Callable[[int], None]
) -> None:
    needs = {family: registry.needed(item) for family, item in entries.items()}
    room(sum(one.weights for one in needs.values()) + needs["video_llava"].run - 1000)
    registry.load(entries["eventgpt"])
    gone = weakref.ref(registry.load(entries["llava"]).model)
    registry.load(entries["eventgpt"])  # used again: llava is now the older one
    registry.card(entries["llava"])  # no use
    assert registry.resident() == (entries["llava"], entries["eventgpt"]) and gone() is not None
    registry.load(entries["video_llava"])
    assert registry.resident() == (entries["eventgpt"], entries["video_llava"])
    gc.collect()
    assert gone() is None
    room(needs["video_llava"].total)  # it fits alone
    registry.unload(entries["video_llava"])
    registry.load(entries["llava"])
    assert registry.unavailable(entries["video_llava"]) is None
    registry.load(entries["video_llava"])
    assert registry.resident() == (entries["video_llava"],)


def test_what_never_fits_is_refused_with_figures_and_unloads_nothing(
    entries: dict[str, ModelEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.load(entries["llava"])
    monkeypatch.setattr(device, "free_bytes", lambda: 1000)
    reason = registry.unavailable(entries["video_llava"])
    assert reason is not None and "for its weights" in reason and "KV cache of" in reason
    with pytest.raises(ModelUnavailable, match="are free on cpu"):
        registry.load(entries["video_llava"])
    assert registry.resident() == (entries["llava"],)


# what a 7B model needs, by hand


def absent(family: str) -> model_card.Shape:
    """Of a config.json that states nothing."""
    return model_card.of_config(family, registry.FAMILIES[family].kind, {})


@pytest.mark.parametrize(("kind", "bytes_each"), [("8bit", 1.0), ("4bit", 0.5625)])
def test_quantized_weights_need_less(
    entries: dict[str, ModelEntry], kind: str, bytes_each: float
) -> None:
    """Only the linear layers between embedding and head shrink."""
    item = replace(entries["llava"], dtype="float16")
    whole = registry.needed(item)
    small = registry.needed(replace(item, quantization=kind))  # type: ignore[arg-type]
    linear = 2 * (2 * 32 * 8 * (4 + 4) + 3 * 32 * 64)
    assert whole.weights - small.weights == pytest.approx(linear * (2 - bytes_each), abs=1)
    assert whole.run == small.run
    run = model_card.of_run(item, absent("llava"), 1)
    assert run.total == run.run


def test_memory_that_a_run_still_holds_is_not_counted_as_free(
    entries: dict[str, ModelEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The adapter leaves the registry at once, its memory only when its run has ended."""
    running = registry.load(entries["llava"])
    held = sum(registry.resident_bytes().values())
    room = registry.needed(entries["video_llava"]).total + 100
    monkeypatch.setattr(device, "free_bytes", lambda: room - held)  # whatever is unloaded
    with pytest.raises(ModelUnavailable, match="while another model is running"):
        registry.load(entries["video_llava"])
    assert registry.resident() == () and running.use.runs == 0
    monkeypatch.setattr(device, "free_bytes", lambda: room)
    assert registry.load(entries["video_llava"]).use.runs == 0


def test_a_load_that_runs_out_of_memory_says_so_and_leaves_nothing(
    entries: dict[str, ModelEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[weakref.ref[torch.nn.Module]] = []
    load = transformers.LlavaForConditionalGeneration.from_pretrained

    def full(*arguments: Any, **options: Any) -> Any:
        model, _ = load(*arguments, **options)
        parts.append(weakref.ref(model))
        raise torch.OutOfMemoryError("Tried to allocate 14.00 GiB.")

    with monkeypatch.context() as patched:
        patched.setattr(transformers.LlavaForConditionalGeneration, "from_pretrained", full)
        with pytest.raises(ModelUnavailable, match="are free on cpu; Tried to allocate") as caught:
            registry.load(entries["llava"])
    assert parts[0]() is None and caught.value.__cause__ is not None
    assert registry.load(entries["llava"]) is not None


def test_a_24_gib_card_holds_one_7b_model_at_a_time(
    entries: dict[str, ModelEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published sizes, by their counts of weights: 16 bits, answers of 256 tokens."""
    counts = {"eventgpt": 7_080_000_000, "video_llava": 7_370_000_000, "llava": 7_063_000_000}
    needs = {}
    for family, item in entries.items():
        monkeypatch.setattr(checkpoint_files, "weight_count", lambda *_, n=counts[family]: n)
        chosen, place = replace(item, dtype="float16"), Path("unused")
        needs[family] = model_card.needed(chosen, place, absent(family))
        packed = replace(chosen, quantization="4bit")
        quantized = model_card.needed(packed, place, absent(family))
        assert 5 * 2**30 < quantized.total < 6.2 * 2**30
    gib = {family: one.total / 2**30 for family, one in needs.items()}
    assert all(13.1 < size < 15 for size in gib.values()), gib
    assert needs["eventgpt"].context == 256 + 582 + 256
    assert needs["video_llava"].context == 2048  # the limit of a config that names none
    assert min(gib["eventgpt"] + gib["llava"], sum(gib.values())) > 24
