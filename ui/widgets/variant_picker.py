"""Adds a variant of a model to a page's list: what it is shown, its dtype, quantization, pixels.

The list itself is in sample_picker.py, and only it is in the URL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine.models import quantization, registry, variants
from engine.models.checkpoint import ModelEntry
from engine.types import OPTIONS
from ui.widgets import notices

OWN = ""  # the value of the entry or of the page
INPUTS = {"events": "Event images", "video": "8 frames", "image": "One picture"}
NAMES = {"compare": "column", "benchmark": "variant", "verify": "variant"}
HELP = (
    "The same model again with another input, dtype, quantization or pixels, or another model "
    "shown something else."
)


def in_list(page: str, entries: Sequence[ModelEntry]) -> list[ModelEntry]:
    """The variants in the page's list of models, or in its link before the list is drawn."""
    key = f"{page}_models"
    if key in st.session_state:
        found = [registry.find(name) for name in st.session_state[key]]
    else:
        found = [variants.by_label(text, entries) for text in st.query_params.get_all(key)]
    known = {entry.name for entry in entries}
    return [item for item in found if item is not None and item.name not in known]


def draw(page: str, entries: Sequence[ModelEntry], chosen: Sequence[str], most: int | None) -> None:
    """The button below the list, and what it opens."""
    what = NAMES[page]
    if not entries:
        return
    full = most is not None and len(chosen) >= most
    with st.popover(f"Add a {what}", help=HELP, width="stretch", disabled=full, key=f"{page}_add"):
        _settings(page, entries, chosen, what)
    if full:
        notices.small(f"A page has up to {most} columns: remove one to add another.", "full")


def _settings(page: str, entries: Sequence[ModelEntry], chosen: Sequence[str], what: str) -> None:
    by_name = {entry.name: entry for entry in entries}
    name = st.selectbox(
        "Model",
        list(by_name),
        format_func=lambda one: by_name[one].label if one in by_name else one,
        key=f"{page}_add_model",
    )
    base = by_name.get(str(name), entries[0])
    values = {
        "kind": _one_of("Shown", f"{page}_add_kind", _inputs(base)),
        "dtype": _one_of(
            "Dtype", f"{page}_add_dtype", _values(base.dtype, variants.WORDS["dtype"])
        ),
        "quantization": _quantization(page, base),
        "pixels": _one_of(
            "Pixels", f"{page}_add_pixels", {OWN: "As set for all", **OPTIONS["pixels"].choices}
        ),
    }
    found = variants.derived(base, {field: value for field, value in values.items() if value})
    here = found.name in chosen
    reason = f"{found.label} is in the list already: change a setting." if here else ""
    reason = reason or registry.unavailable(found) or ""
    notices.small(reason or f"Adds: {found.label}", f"{page}_add")
    st.button(
        f"Add {what}",
        key=f"{page}_add_it",
        on_click=_add,
        args=(page, found.name, list(chosen)),
        disabled=bool(reason),
        width="stretch",
    )


def _add(page: str, name: str, chosen: list[str]) -> None:
    st.session_state[f"{page}_models"] = [*chosen, name]


def _inputs(base: ModelEntry) -> Mapping[str, str]:
    return {OWN: f"{INPUTS[base.kind]} (usual)"} | {
        kind: words for kind, words in INPUTS.items() if kind != base.kind
    }


def _values(own: str, values: Sequence[str]) -> Mapping[str, str]:
    return {OWN: f"{own} (usual)"} | {value: value for value in values if value != own}


def _quantization(page: str, base: ModelEntry) -> str:
    """The quantization; without CUDA there is no choice."""
    offered = quantization.offered()
    if not offered or base.quantization:
        return ""
    return _one_of("Quantization", f"{page}_add_quantization", _values("none", offered))


def _one_of(label: str, key: str, words: Mapping[str, str]) -> str:
    found = st.selectbox(label, list(words), format_func=lambda one: words.get(one, one), key=key)
    return found or ""
