"""models.toml -> entries -> adapters, which are loaded at their first use.  The only module that
imports concrete models, which families.py names.  Listing entries and checking whether one can be
used imports neither torch nor transformers; `load` does."""

from __future__ import annotations

import difflib
import importlib
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine import settings
from engine.errors import BadInput, ModelUnavailable, SettingsError, StageScopeError, UnknownModel
from engine.machine import device
from engine.models import checkpoint, checkpoint_files, families, model_card, variants
from engine.models.checkpoint import ModelEntry, Server
from engine.models.families import ANY_FAMILY, HOOKED_ONLY, OWN, PICTURES
from engine.models.families import FAMILIES as FAMILIES  # re-exported
from engine.models.model_card import NEW_TOKENS, Need, Shape
from engine.quoting import first_line, gib, listed, quoted, shown
from engine.types import VARIANT_MARK, ModelInfo, Sample

if TYPE_CHECKING:
    from engine.models.adapter import Adapter

    Use = tuple[Adapter, Shape]

# Letters in a name that mean a family: a model must not carry another family's name.
_TELLING = {"videollava": "video_llava", "eventgpt": "eventgpt"}

# The loaded models, the least recently used first, by the entry whose weights they hold
# (variants.loaded), each as the entries use it, with the shape that gives its memory need.
# Changed only under the lock.
_held: OrderedDict[ModelEntry, tuple[Adapter, dict[ModelEntry, Use]]] = OrderedDict()
_lock = threading.Lock()


def entries() -> tuple[ModelEntry, ...]:
    """All entries of models.toml in file order; SettingsError says what is wrong."""
    path = settings.load().models_file
    if not (rows := checkpoint.read_entries(settings.read_toml(path), path)):
        raise SettingsError(f"{shown(path)} holds no [[model]] entry: add one.")
    return rows


def entry(name: str) -> ModelEntry:
    """The entry with this name, or the variant that it means (variants.py)."""
    known = {item.name: item for item in entries()}
    base = known.get(variants.base_name(name))
    if base is not None:
        return variants.parsed(name, base) if VARIANT_MARK in name else base
    name = variants.base_name(name)
    near = difflib.get_close_matches(name[: checkpoint.MAX_TEXT], known, n=1, cutoff=0.4)
    hint = f"did you mean {quoted(near[0])}?" if near else f"known are {listed(known)}."
    raise UnknownModel(f"{quoted(name)} is not a known model: {hint}")


def find(name: str) -> ModelEntry | None:
    return variants.named(name, {item.name: item for item in entries()})


def label(name: str) -> str:
    """The label of the entry or variant with this name; the name itself if there is none."""
    found = find(name)
    return found.label if found else name


def distinct(names: Iterable[str]) -> list[str]:
    """The names with a variant's words in their usual form; unknown names are left as they are."""
    found: list[str] = []
    for name in names:
        item = find(name)
        own = item.name if item else name
        if own in found:
            also = "" if name == own else f" ({quoted(name)} means the same)"
            raise BadInput(f"{quoted(own)} is named twice{also}: leave one out.")
        found.append(own)
    return found


def unavailable(item: ModelEntry) -> str | None:
    """Why this model cannot be loaded and what to do, or None.  A server is not asked for it."""
    if item.server:
        return lacks_key(item.server) if item.server.api_key_env and not item.server.key else None
    try:
        if variants.loaded(item) in _held:
            return None
        wanted = _needed_once(item, _stamp(item))
        families.refuse_quantization(item.name, item.quantization)
        _refuse_too_large(item, wanted)
        device.check()
    except (ModelUnavailable, SettingsError) as error:
        return str(error)
    return None


@lru_cache(maxsize=512)
def _needed_once(item: ModelEntry, stamp: Hashable) -> Need:
    """As `needed`, of a checked folder, read again only if its `stamp` changes: a page asks for
    each variant whenever it is drawn.  A refusal is not kept."""
    return needed(item, folder=check(item))


def _stamp(item: ModelEntry) -> Hashable:
    """Changes with the files of the checkpoint's folder; always if they cannot be listed."""
    with suppress(OSError):
        folder = item.folder or checkpoint.hub_folder(item.checkpoint, item.revision)
        return tuple(sorted(map(checkpoint_files.identity, folder.iterdir() if folder else ())))
    return object()


def lacks_key(server: Server) -> str:
    return (
        f"{server.host} needs the key in the environment variable {server.api_key_env}, which is "
        "not set: set it where StageScope is started."
    )


def cannot_run(item: ModelEntry, sample: Sample) -> str | None:
    return sample.missing.get(item.kind) or unavailable(item)


def load(item: ModelEntry, new_tokens: int = NEW_TOKENS) -> Adapter:
    """The adapter with its weights on the device; variants with the same weights share them."""
    with _lock:
        own = variants.loaded(item)
        if own in _held:
            _held.move_to_end(own)
            adapter, shape = _use(item, own)
            _make_room(model_card.of_run(item, shape, new_tokens).total, own)
            return adapter
        folder = check(own)
        device.choose()  # imports torch: the accelerator's memory is asked, not the system's
        wanted = needed(item, new_tokens, folder)
        _refuse_too_large(item, wanted)
        free = _make_room(wanted.total, own)
        if wanted.total > free:  # a model that was unloaded is still running
            raise ModelUnavailable(
                f"{item.name} needs {wanted}, but only {gib(free)} are free on "
                f"{device.memory().device} while another model is running: try again when it has "
                "finished."
            )
        _held[own] = _load(own, folder), {}
        return _use(item, own)[0]


def _make_room(needed: int, keep: ModelEntry) -> int:
    """Frees the least recently used models until `needed` bytes are free; returns what is."""
    while (free := device.free_bytes()) < needed:
        other = next((item for item in _held if item != keep), None)
        if other is None:
            break
        del _held[other]
        device.release()
    return free


def _use(item: ModelEntry, own: ModelEntry) -> Use:
    """The loaded model as this entry uses it; made once."""
    adapter, uses = _held[own]
    if item not in uses:
        folder = checkpoint.locate(item)
        usual = item.kind if item.family == ANY_FAMILY else FAMILIES[item.family].kind
        trained = model_card.trained(folder, item.name) if item.demo else None
        sizes = model_card.read(item, folder)
        info = replace(adapter.info, name=item.name, shows=item.kind)
        if sizes.visual_tokens is not None:
            info = replace(info, images=PICTURES[item.kind], visual_tokens=sizes.visual_tokens)
        notes = variants.notes(item, usual, trained.inputs if trained else ())
        uses[item] = adapter.remade(info, notes=notes), sizes
    return uses[item]


def _load(item: ModelEntry, folder: Path) -> Adapter:
    import torch

    module, name = FAMILIES[item.family].adapter.split(":")
    try:
        # a caller's inference mode would make tensors that cannot be used outside of it
        with torch.inference_mode(False), torch.no_grad():
            adapter: Adapter = getattr(importlib.import_module(module), name).load(item, folder)
    except Exception as error:
        device.forget(error)  # its frames hold the part that was loaded
        device.release()
        if isinstance(error, StageScopeError):
            raise
        raise ModelUnavailable(
            f"{item.name}: the checkpoint in {folder} cannot be loaded ({first_line(error)}): copy "
            "or download it again."
        ) from error
    return adapter


def unload(item: ModelEntry) -> bool:
    """Drops the adapter; returns whether it was loaded.  Its memory is freed after its last run."""
    with _lock:
        if _held.pop(variants.loaded(item), None) is None:
            return False
        device.release()
        return True


def resident() -> tuple[ModelEntry, ...]:
    """The models in memory, the least recently used first; variants.loaded gives their entry."""
    return tuple(_held)


def resident_bytes() -> dict[ModelEntry, int]:
    return {item: adapter.weight_bytes for item, (adapter, _) in list(_held.items())}


def needed(item: ModelEntry, new_tokens: int = NEW_TOKENS, folder: Path | None = None) -> Need:
    """The memory for an answer of `new_tokens`, with weights, or ModelUnavailable."""
    folder = folder or checkpoint.locate(item)
    return model_card.needed(item, folder, model_card.read(item, folder), new_tokens)


def combined_memory(
    items: Sequence[ModelEntry], new_tokens: int, batch: int = 1
) -> tuple[int, int]:
    """The bytes that all these models need at once (their weights, and a batch of the largest run
    among them), and those available, including what loaded models use; or ModelUnavailable."""
    needs = [needed(item, new_tokens) for item in items]
    weights = {variants.loaded(item): one.weights for item, one in zip(items, needs, strict=True)}
    free = device.free_bytes() + sum(resident_bytes().values())
    return sum(weights.values()) + batch * max(one.run for one in needs), free


def card(item: ModelEntry) -> ModelInfo:
    """The model's card: of the loaded model, else read from its folder; or ModelUnavailable.  Of a
    server, what models.toml says, and the questions that its weights here were trained on."""
    if item.server:
        questions = None
        if item.server.weights:
            with suppress(ModelUnavailable):
                questions = card(entry(item.server.weights)).questions
        return ModelInfo(
            name=item.name,
            family=item.family,
            checkpoint=item.checkpoint,
            revision=None,
            dtype="",
            demo=False,
            source=item.server.url,
            questions=questions,
            shows=item.kind,
        )
    _, uses = _held.get(variants.loaded(item), (None, {}))
    return uses[item][0].info if item in uses else model_card.card(item, check(item))


def hooked_only(item: ModelEntry) -> str | None:
    """Why only hooked mode can run it, or None; ModelUnavailable without files, as of a server."""
    if item.family != ANY_FAMILY and not item.server:
        return None
    config = checkpoint_files.read_json(checkpoint.locate(item) / "config.json", item.name)
    if (model_type := str(config.get("model_type"))) not in HOOKED_ONLY:
        return None
    return f"hooked mode only: transformers' {model_type} takes no features"


def full_digest(item: ModelEntry) -> str:
    """The hash of all bytes of the checkpoint; the first call reads all of them."""
    return checkpoint_files.digest(checkpoint.locate(item), item.name)


def check(item: ModelEntry) -> Path:
    """The checkpoint's folder, if it holds a model that the entry's family can run, with weights
    as the entry wants them; or ModelUnavailable.  The memory is not asked."""
    folder = checkpoint.locate(item)
    families.refuse(item.name, item.family, item.checkpoint, folder)
    stated = checkpoint_files.read_json(folder / "config.json", item.name)["model_type"]
    base = item.of or item  # "shown video" must not be read as the name of Video-LLaVA
    letters = "".join(c for c in f"{base.name} {base.label}".lower() if c.isalnum())
    for telling, family in _TELLING.items():
        if telling in letters and family != OWN.get(stated):
            raise ModelUnavailable(
                f"{item.name} ({item.label}) has the name of {family}, but {folder} holds a "
                f"{item.family} model: give its entry in models.toml another name."
            )
    families.refuse_quantization(item.name, item.quantization)
    return folder


def _refuse_too_large(item: ModelEntry, wanted: Need) -> None:
    """ModelUnavailable if the model would not fit even after all others were unloaded."""
    here = device.memory()
    others = {one: size for one, size in resident_bytes().items() if one != variants.loaded(item)}
    could = device.free_bytes() + sum(others.values())
    if wanted.total > could:
        raise ModelUnavailable(
            f"{item.name} needs {wanted}, but {gib(could)} are free on {here.device} "
            f"({here.label}): close other programs, lower max_new_tokens, or choose a smaller "
            "dtype or model."
        )
