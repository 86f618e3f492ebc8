"""A page's models: their list, variants that are added to it, and the columns they become.  The
list is in the URL.  A variant is a model that is shown something else, or has another dtype or
quantization.  The labels of columns say what differs, and each has a colour of its own."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import streamlit as st

from engine import palette
from engine.errors import ModelUnavailable
from engine.models import checkpoint, families, registry, variants
from engine.models.checkpoint import ModelEntry
from engine.quoting import joined
from ui.widgets import links, notices
from ui.widgets.text import count, escape

NOTHING: Mapping[str, str] = {}
ALLOWED = "allowed_hosts"  # in this visit
HELP = (
    "The same model again with another input, dtype or quantization, or another model shown "
    "something else."
)


def entries_or_stop() -> tuple[ModelEntry, ...]:
    """The models of models.toml; a page cannot do without, so it ends with what is wrong there."""
    with notices.telling("models_file", notices.problem):
        return registry.entries()
    st.stop()


def pick_loadable_models(
    entries: Sequence[ModelEntry],
    page: str,
    default: int | None = None,
    most: int | None = None,
    missing: Mapping[str, str] = NOTHING,
) -> tuple[ModelEntry, ...]:
    """The chosen models, each followed by its chosen variants; the default is the first `default`
    that can be loaded, or all.  Models that are not installed are only named below the list; those
    whose kind of input is `missing` stay in the list, for the next sample."""
    listed = _variants(page, entries)
    shown = [one for entry in entries
             for one in (entry, *(item for item in listed if item.of == entry))]  # fmt: skip
    reasons = {entry: registry.unavailable(entry) for entry in shown}
    # Nothing is sent to a server that nobody has chosen.
    able = [one.name for one in entries if reasons[one] is None and not one.server]
    labels = {one.name: one.label for one in shown if reasons[one] is None or installed(one)}
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
    _adding(page, shown, chosen, most)
    left_out = [entry for entry in shown if entry.name in chosen and entry.kind in missing]
    for entry in left_out:
        notices.notice(f"{entry.label} is left out. {missing[entry.kind]}", f"left_{entry.name}")
    others = [entry for entry in shown if entry not in left_out]
    why_not = {one: why for one in others if (why := missing.get(one.kind) or reasons[one])}
    if here := {one: why for one, why in why_not.items() if one.name in labels or not labels}:
        with st.expander(f"{count(len(here), 'model')} cannot run", key=f"{page}_why_not"):
            for entry, reason in here.items():
                st.text(entry.label)
                notices.small(reason, f"why_{entry.name}")
    able_ones = [entry for entry in others if entry.name in chosen]
    return tuple(sorted(able_ones, key=lambda entry: chosen.index(entry.name)))


def installed(entry: ModelEntry) -> bool:
    """Whether the checkpoint's files are on this machine, or a server has them."""
    with contextlib.suppress(ModelUnavailable):
        return bool(entry.server or checkpoint.locate(entry))
    return False


def unasked_hosts(page: str, models: Iterable[ModelEntry]) -> str:
    """Says which other machines the pictures would be sent to, and asks once in a visit for each;
    why nothing can start before, or ""."""
    hosts = {one.server.host for one in models if one.server and not one.server.loopback}
    allowed = st.session_state.setdefault(ALLOWED, set())
    if not (asked := sorted(hosts - allowed)):
        return ""
    with st.container(key=f"notice_{page}_hosts", horizontal=True, vertical_alignment="center"):
        st.text(f"Pictures and questions will be sent to {joined(asked)}.")
        st.button("Allow", key=f"{page}_allow", on_click=allowed.update, args=(asked,))
    return "Nothing is sent before you allow it: press Allow, or remove that model."


def _variants(page: str, entries: Sequence[ModelEntry]) -> list[ModelEntry]:
    """The variants in the page's list of models, or in its link before the list is drawn."""
    key, known = f"{page}_models", {entry.name: entry for entry in entries}
    if key in st.session_state:
        found = [variants.named(name, known) for name in st.session_state[key]]
    else:
        found = [variants.by_label(text, entries) for text in st.query_params.get_all(key)]
    return [item for item in found if item is not None and item.name not in known]


def _adding(
    page: str, shown: Sequence[ModelEntry], chosen: Sequence[str], most: int | None
) -> None:
    """A menu of the variants of the chosen models that can run, each with one setting changed."""
    what = "column" if page == "compare" else "variant"
    offered = {
        variant.name: variant.label
        for entry in shown
        if entry.name in chosen
        for variant in _changed(entry)
        if variant.name not in chosen and registry.unavailable(variant) is None
    }

    def add() -> None:
        st.session_state[f"{page}_models"] = [*chosen, st.session_state[f"{page}_add"]]

    full = most is not None and len(chosen) >= most
    st.menu_button(
        f"Add a {what}",
        list(offered) or [what],  # a menu needs an entry
        key=f"{page}_add",
        help=f"A page has up to {most} columns: remove one to add another." if full else HELP,
        format_func=lambda name: escape(offered.get(name, name)),
        on_click=add,
        disabled=full or not offered,
        width="stretch",
    )


def _changed(entry: ModelEntry) -> list[ModelEntry]:
    """Its variants with one more setting changed: what it is shown, dtype, quantization."""
    base, own = entry.of or entry, {name: getattr(entry, name) for name in variants.WORDS}
    offered = () if base.quantization else families.quantizations()
    values = {**variants.WORDS, "quantization": offered}
    if base.server:
        values = {"kind": variants.SHOWS}
    return [
        variants.derived(base, own | {name: value})
        for name, several in values.items()
        for value in several
        if value != own[name]
    ]


def columns(items: Sequence[ModelEntry]) -> tuple[ModelEntry, ...]:
    """The entries as columns beside each other, with their labels and colours."""
    tones = palette.tones([item.family for item in items])
    named = variants.labelled(items)
    return tuple(replace(item, tone=tone) for item, tone in zip(named, tones, strict=True))


def on_page(
    entries: Sequence[ModelEntry], chosen: Sequence[ModelEntry], shown: Iterable[str]
) -> tuple[ModelEntry, ...]:
    """First the columns, of the shown runs or else the chosen ones; then all others."""
    ran = [item for name in shown if (item := registry.find(name)) is not None]
    beside = columns(ran or chosen)
    names = {item.name for item in beside}
    rest = {item.name: item for item in (*chosen, *entries) if item.name not in names}
    return (*beside, *rest.values())
