"""models.toml -> entries -> adapters, which are loaded at their first use.

Boundary: the only module that names concrete models.  Listing entries and checking whether one can
be used imports neither torch nor transformers; `load` does.  A new family is one line in FAMILIES.
"""

from __future__ import annotations

import difflib
import importlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import settings
from engine.errors import BadInput, ModelUnavailable, SettingsError, UnknownModel
from engine.machine import device, memory
from engine.models import (
    checkpoint,
    memory_need,
    model_card,
    quantization,
    shape,
    supported,
    variants,
)
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.models.memory_need import NEW_TOKENS, Need
from engine.models.residents import Resident, Residents, View
from engine.models.shape import Form, Shape
from engine.quoting import listed, quoted, shown
from engine.types import VARIANT_MARK, MediaKind, ModelInfo, Sample

if TYPE_CHECKING:
    from engine.models.adapter import Adapter


@dataclass(frozen=True)
class Family:
    """A family's adapter, its kind of media, its model_type and its form of config.json."""

    adapter: str
    kind: MediaKind
    model_type: str
    form: Form


FAMILIES: dict[str, Family] = {
    "eventgpt": Family(
        "engine.models.eventgpt:EventGPTAdapter",
        "events",
        "EventChat_llama",
        Form("", shape.CLIP_L_336, 5, shape.pooled),
    ),
    "video_llava": Family(
        "engine.models.video_llava:VideoLlavaAdapter",
        "video",
        "video_llava",
        Form("text_config", shape.CLIP_L_224, 8, shape.all_rows),
    ),
    "llava": Family(
        "engine.models.llava:LlavaAdapter",
        "image",
        "llava",
        Form("text_config", shape.CLIP_L_336, 1, shape.patch_rows),
    ),
}
# Letters in a name that mean a family: a model must not carry another family's name.
_TELLING = {"videollava": "video_llava", "eventgpt": "eventgpt"}
_FIELDS = {
    "name",
    "label",
    "family",
    "checkpoint",
    "revision",
    "dtype",
    "demo",
    "quantization",
    "shows",
}
# The usual number of pictures of a sample, for memory estimates.
PICTURES: dict[MediaKind, int] = {"events": 5, "video": 8, "image": 1}
MAX_TEXT = 1000  # characters of a value in models.toml
_residents = Residents()
_lock = threading.Lock()


def entries() -> tuple[ModelEntry, ...]:
    """All entries of models.toml in file order; SettingsError says what is wrong."""
    path = settings.load().models_file
    rows = settings.read_toml(path).get("model", [])
    if not isinstance(rows, list) or not rows:
        raise SettingsError(f"{shown(path)} holds no [[model]] entry: add one.")
    found = tuple(_entry(row, path) for row in rows)
    names = [entry.name for entry in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"{shown(path)} holds {quoted(twice)} twice: rename one.")
    return found


def _entry(row: Any, path: Path) -> ModelEntry:
    if not isinstance(row, dict) or not {"name", "family", "checkpoint"} <= set(row):
        raise SettingsError(f"{shown(path)}: {quoted(row)} needs name, family and checkpoint.")
    name, family = str(row["name"]), str(row["family"])
    dtype = str(row.get("dtype", "float32"))
    _one_of(path, name, "field", set(row), _FIELDS)
    _check_texts(row, path)
    _one_of(path, name, "family", {family}, set(FAMILIES))
    _one_of(path, name, "dtype", {dtype}, set(DTYPE_BYTES))
    wanted = {str(row["quantization"])} if "quantization" in row else set()
    _one_of(path, name, "quantization", wanted, set(quantization.KINDS))
    shows = row.get("shows", FAMILIES[family].kind)
    _one_of(path, name, "input in shows", {str(shows)}, set(variants.SHOWS))
    if VARIANT_MARK in name:
        raise SettingsError(
            f"{shown(path)}: {quoted(name)} holds {VARIANT_MARK}, which begins the words of a "
            "variant: rename it."
        )
    where = str(row["checkpoint"])
    folder = settings.expand(where, path.parent)
    hub = checkpoint.is_hub_name(where) and not folder.exists()
    return ModelEntry(
        name=name,
        label=str(row.get("label", name)),
        family=family,
        kind=shows,
        checkpoint=where,
        folder=None if hub else folder,
        revision=str(row["revision"]) if "revision" in row else None,
        dtype=dtype,
        demo=row.get("demo") is True,
        quantization=row.get("quantization"),
    )


def _one_of(path: Path, name: str, what: str, values: set[str], allowed: set[str]) -> None:
    for value in sorted(values - allowed):
        known = ", ".join(sorted(allowed))
        raise SettingsError(
            f"{shown(path)}: {quoted(name)} has the unknown {what} {quoted(value)}: known are "
            f"{known}."
        )


def _check_texts(row: dict[str, Any], path: Path) -> None:
    for key, value in row.items():
        if key != "demo" and not _is_a_text(value):
            raise SettingsError(
                f"{shown(path)}: {quoted(key)} is {quoted(value)}: write it as a text of 1 to "
                f"{MAX_TEXT:,} characters, in quotes."
            )


def _is_a_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and value.isprintable()


def entry(name: str) -> ModelEntry:
    """The entry with this name, or the variant that it means (variants.py).

    UnknownModel suggests the nearest one.
    """
    known = {item.name: item for item in entries()}
    base = known.get(variants.base_name(name))
    if base is not None:
        return variants.parsed(name, base) if VARIANT_MARK in name else base
    name = variants.base_name(name)
    near = difflib.get_close_matches(name[:MAX_TEXT], known, n=1, cutoff=0.4)
    hint = f"did you mean {quoted(near[0])}?" if near else f"known are {listed(known)}."
    raise UnknownModel(f"{quoted(name)} is not a known model: {hint}")


def find(name: str) -> ModelEntry | None:
    """The entry or variant with this name; None if there is none."""
    return variants.named(name, {item.name: item for item in entries()})


def distinct(names: Iterable[str]) -> list[str]:
    """The names with a variant's words in their usual form; unknown names are left as they are.

    BadInput if two of them mean the same.
    """
    found: list[str] = []
    for name in names:
        item = find(name)
        own = item.name if item else name
        if own in found:
            raise BadInput(f"{quoted(name)} is named twice as {quoted(own)}: leave one out.")
        found.append(own)
    return found


def unavailable(item: ModelEntry, new_tokens: int = NEW_TOKENS) -> str | None:
    """Why this model cannot be loaded for answers of `new_tokens` and what to do, or None."""
    try:
        if variants.loaded(item) in _residents:
            return None
        folder = _checked(item)
        _refuse_too_large(item, needed(item, new_tokens, folder))
        device.check()
    except (ModelUnavailable, SettingsError) as error:
        return str(error)
    return None


def cannot_run(item: ModelEntry, sample: Sample) -> str | None:
    """Why this model cannot run on this sample, or None."""
    return sample.missing.get(item.kind) or unavailable(item)


def load(item: ModelEntry, new_tokens: int = NEW_TOKENS) -> Adapter:
    """The adapter with its weights on the device; variants with the same weights share them.

    Unloads the least recently used models if the memory does not suffice.  Frees everything if
    loading fails.
    """
    with _lock:
        own = variants.loaded(item)
        if (found := _residents.use(own)) is None:
            return _view(item, own, _into_memory(item, own, new_tokens)).adapter
        view = _view(item, own, found)
        _residents.make_room(memory_need.of_run(item, view.shape, new_tokens).total, own)
        return view.adapter


def _into_memory(item: ModelEntry, own: ModelEntry, new_tokens: int) -> Resident:
    """Loads the weights of `own`, with room for a run of `item`."""
    folder = _checked(own)
    device.check()
    wanted = memory_need.needed(item, folder, _sizes(item, folder), new_tokens)
    _refuse_too_large(item, wanted)
    _refuse_in_use(item, wanted, _residents.make_room(wanted.total, own))
    adapter = _load(own, folder)
    return _residents.add(own, adapter, _sizes(own, folder))


def _view(item: ModelEntry, own: ModelEntry, found: Resident) -> View:
    """The loaded model as this entry uses it; made once."""
    notes = variants.notes(item, FAMILIES[item.family].kind)
    if item == own and not notes:
        return found
    if item not in found.views:
        sizes = found.shape if item.kind == own.kind else _sizes(item, checkpoint.locate(item))
        card = replace(
            found.adapter.info,
            name=item.name,
            shows=item.kind,
            images=sizes.images,
            visual_tokens=sizes.visual_tokens,
        )
        found.views[item] = View(found.adapter.variant(card, notes), sizes)
    return found.views[item]


def _form(item: ModelEntry) -> Form:
    """The family's form, with the number of pictures that this entry is shown."""
    family = FAMILIES[item.family]
    usual = item.kind == family.kind
    return family.form if usual else replace(family.form, images=PICTURES[item.kind])


def _sizes(item: ModelEntry, folder: Path) -> Shape:
    return shape.read(_form(item), folder, item.name)


def _load(item: ModelEntry, folder: Path) -> Adapter:
    from engine.models.loading import ordinary_tensors

    family = FAMILIES[item.family]
    module, name = family.adapter.split(":")
    try:
        with ordinary_tensors():
            adapter: Adapter = getattr(importlib.import_module(module), name).load(
                item, folder, _form(item)
            )
    except Exception as error:
        memory.forget(error)  # its frames hold the part that was loaded
        memory.release()
        raise
    return adapter


def unload(item: ModelEntry) -> bool:
    """Drops the adapter; returns whether it was loaded.  Its memory is freed after its last run."""
    with _lock:
        return _residents.drop(variants.loaded(item))


def resident() -> tuple[ModelEntry, ...]:
    """The models in memory, the least recently used first; variants.loaded gives their entry."""
    return _residents.entries()


def resident_bytes() -> dict[ModelEntry, int]:
    """Bytes of the weights of each loaded model on its device."""
    return _residents.sizes()


def needed(item: ModelEntry, new_tokens: int = NEW_TOKENS, folder: Path | None = None) -> Need:
    """The memory for an answer of `new_tokens`, with weights, or ModelUnavailable."""
    folder = folder or checkpoint.locate(item)
    return memory_need.needed(item, folder, _sizes(item, folder), new_tokens)


@dataclass(frozen=True)
class CombinedMemory:
    """Bytes that several models need together: all weights, and the largest run among them.
    `free` is the available memory, including what loaded models and prefixes use now."""

    weights: int
    run: int
    free: int


def combined_memory(items: Sequence[ModelEntry], new_tokens: int) -> CombinedMemory:
    """The memory for all these models at once, or ModelUnavailable."""
    needs = [needed(item, new_tokens) for item in items]
    weights = {variants.loaded(item): one.weights for item, one in zip(items, needs, strict=True)}
    held = sum(_residents.sizes().values()) + memory.reserved_bytes()
    return CombinedMemory(
        sum(weights.values()),
        max(one.run for one in needs),
        device.free_bytes() + held,
    )


def card(item: ModelEntry) -> ModelInfo:
    """The model's card: of the loaded model, else read from its folder; or ModelUnavailable."""
    own = variants.loaded(item)
    if (found := _residents.peek(own)) is not None and (item == own or item in found.views):
        return found.views.get(item, found).adapter.info
    return model_card.card(item, _checked(item), _form(item))


def full_digest(item: ModelEntry) -> str:
    """The hash of all bytes of the checkpoint; the first call reads all of them."""
    return model_card.full_digest(item, checkpoint.locate(item))


def _checked(item: ModelEntry) -> Path:
    """The checkpoint's folder, if its model belongs to the entry's family."""
    folder = checkpoint.locate(item)
    _check_family(item, folder)
    quantization.check(item.name, item.quantization)
    return folder


def _check_family(item: ModelEntry, folder: Path) -> None:
    model_types = {family: known.model_type for family, known in FAMILIES.items()}
    supported.refuse_other(item.name, item.family, folder, model_types)
    base = item.of or item  # "shown video" must not be read as the name of Video-LLaVA
    letters = "".join(c for c in f"{base.name} {base.label}".lower() if c.isalnum())
    for telling, family in _TELLING.items():
        if telling in letters and family != item.family:
            raise ModelUnavailable(
                f"{item.name} ({item.label}) has the name of {family}, but {folder} holds a "
                f"{item.family} model: give its entry in models.toml another name."
            )


def _refuse_in_use(item: ModelEntry, wanted: Need, free: int) -> None:
    """ModelUnavailable if memory is short because an unloaded model is still running."""
    if wanted.total > free:
        raise ModelUnavailable(
            f"{item.name} needs {wanted}, but only {memory.gib(free)} are free on "
            f"{device.memory().device} while another model is running: try again when it has "
            "finished."
        )


def _refuse_too_large(item: ModelEntry, wanted: Need) -> None:
    """ModelUnavailable if the model would not fit even after all others were unloaded."""
    here = device.memory()
    could = device.free_bytes() + _residents.could_free(variants.loaded(item))
    if wanted.total > could:
        raise ModelUnavailable(
            f"{item.name} needs {wanted}, but {memory.gib(could)} are free on {here.device} "
            f"({here.label}): close other programs, lower max_new_tokens, or choose a smaller "
            "dtype or model."
        )
