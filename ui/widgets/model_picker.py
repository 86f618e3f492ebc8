"""A page's models: their list, variants that are added to it, and the columns they become.

The list is in the URL.  A variant is a model that is shown something else, or has another dtype
or quantization.  The labels of columns say what differs, and each has a colour of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import streamlit as st

from engine import palette
from engine.errors import ModelUnavailable, StageScopeError
from engine.models import checkpoint, quantization, registry, variants
from engine.models.checkpoint import ModelEntry
from ui.widgets import links, notices
from ui.widgets.text import count

DEFAULT_MODELS = 3
NOTHING: Mapping[str, str] = {}
OWN = ""  # the value of the entry
INPUTS = {"events": "Event images", "video": "8 frames", "image": "One picture"}
NAMES = {"compare": "column", "benchmark": "variant", "verify": "variant"}
HELP = (
    "The same model again with another input, dtype or quantization, or another model shown "
    "something else."
)


def entries_or_stop() -> tuple[ModelEntry, ...]:
    """The models of models.toml; a page cannot do without, so it ends with what is wrong there."""
    try:
        return registry.entries()
    except StageScopeError as error:
        notices.problem(str(error), "models_file")
        st.stop()


def pick_loadable_models(
    entries: Sequence[ModelEntry],
    page: str,
    default: int | None = None,
    most: int | None = None,
    missing: Mapping[str, str] = NOTHING,
) -> tuple[ModelEntry, ...]:
    """The chosen models, each followed by its chosen variants; the default is the first `default`
    that can be loaded, or all.  Models that are not installed are only named below the list.

    Without those whose kind of input is `missing`: they stay in the list, for the next sample.
    """
    listed = _variants(page, entries)
    shown = [one for entry in entries
             for one in (entry, *(item for item in listed if item.of == entry))]  # fmt: skip
    reasons = {entry: registry.unavailable(entry) for entry in shown}
    able = [entry.name for entry in entries if reasons[entry] is None]
    labels = {entry.name: entry.label for entry in shown if installed(entry)}
    links.say_unknown(f"{page}_models", labels.values(), "model")
    if most:
        links.say_more(f"{page}_models", most)
    chosen = st.multiselect(
        f"Models (up to {most})" if most else "Models",
        list(labels),
        default=able[:default],
        format_func=lambda name: labels.get(name, name),
        max_selections=most,
        key=f"{page}_models",
        bind="query-params",
        placeholder="Choose models",
    )
    _adding(page, [entry for entry in entries if entry.name in labels], chosen, most)
    left_out = [entry for entry in shown if entry.name in chosen and entry.kind in missing]
    for entry in left_out:
        notices.notice(f"{entry.label} is left out. {missing[entry.kind]}", f"left_{entry.name}")
    others = [entry for entry in shown if entry not in left_out]
    why_not = {one: why for one in others if (why := missing.get(one.kind) or reasons[one])}
    if why_not:
        state = "cannot run" if any(map(installed, why_not)) else "not installed"
        with st.expander(f"{count(len(why_not), 'model')} {state}", key=f"{page}_why_not"):
            for entry, reason in why_not.items():
                st.text(entry.label)
                notices.small(reason, f"why_{entry.name}")
    return tuple(entry for entry in others if entry.name in chosen)


def installed(entry: ModelEntry) -> bool:
    """Whether the checkpoint's files are on this machine."""
    try:
        checkpoint.locate(entry)
    except ModelUnavailable:
        return False
    return True


def _variants(page: str, entries: Sequence[ModelEntry]) -> list[ModelEntry]:
    """The variants in the page's list of models, or in its link before the list is drawn."""
    key = f"{page}_models"
    if key in st.session_state:
        found = [registry.find(name) for name in st.session_state[key]]
    else:
        found = [variants.by_label(text, entries) for text in st.query_params.get_all(key)]
    known = {entry.name for entry in entries}
    return [item for item in found if item is not None and item.name not in known]


def _adding(
    page: str, entries: Sequence[ModelEntry], chosen: Sequence[str], most: int | None
) -> None:
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
    inputs = {OWN: f"{INPUTS[base.kind]} (usual)"} | INPUTS
    del inputs[base.kind]
    values = {
        "kind": _one_of("Shown", f"{page}_add_kind", inputs),
        "dtype": _one_of(
            "Dtype", f"{page}_add_dtype", _values(base.dtype, variants.WORDS["dtype"])
        ),
        "quantization": _quantization(page, base),
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
    return found if found in words else OWN  # another model's choice may still be in the field


def columns(items: Sequence[ModelEntry]) -> tuple[ModelEntry, ...]:
    """The entries as columns beside each other, with their labels and colours."""
    tones = palette.tones([item.family for item in items])
    named = variants.labelled(items)
    return tuple(replace(item, tone=tone) for item, tone in zip(named, tones, strict=True))


def on_page(
    entries: Sequence[ModelEntry], chosen: Sequence[ModelEntry], shown: Iterable[str]
) -> tuple[ModelEntry, ...]:
    """All entries and variants of a page: first the columns, which are those of the shown runs,
    otherwise the chosen ones."""
    ran = [item for name in shown if (item := registry.find(name)) is not None]
    beside = columns(ran or chosen)
    names = {item.name for item in beside}
    rest = {item.name: item for item in (*chosen, *entries) if item.name not in names}
    return (*beside, *rest.values())


class Labels(Mapping[str, str]):
    """Labels by name, also of variants; other names are not in it."""

    def __init__(self, entries: Sequence[ModelEntry]) -> None:
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> str:
        found = variants.named(name, self._entries)
        if found is None:
            raise KeyError(name)
        return found.label

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
