"""Models: their checkpoints, whether they can run here, memory use, and the feature cache.

Boundary: puts the parts of ui/models on the page.  Loading, unloading and hashing are jobs in the
engine's queue: a redraw of the page loses nothing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence

import streamlit as st

from engine import settings
from engine.errors import ModelUnavailable
from engine.models import checkpoint, registry
from engine.models.checkpoint import ModelEntry
from engine.report import card_rows
from engine.storage.schemas import UNVERIFIED, Standing
from engine.types import ModelInfo
from engine.verify import certificates
from ui.compare import cards, trust_badges
from ui.models import cache_view, memory_bars, model_actions
from ui.models.memory_bars import facts
from ui.verify import kept_certificates
from ui.widgets import answers, followed_runs, notices, preparation
from ui.widgets.model_picker import entries_or_stop, installed

COLUMNS = 3
ABSENT = (
    "Their files are not on this machine. Run the command once in a terminal, or set the "
    "checkpoint in models.toml to a folder. `python -m engine models add HUB_NAME` adds others."
)
_COMMAND = re.compile(r"`([^`]+)`")  # how the engine's messages quote a command


def show(entry: ModelEntry) -> None:
    """One entry: its state, its actions and its details."""
    reason = registry.unavailable(entry)
    with answers.frame(entry.colour, entry.name):
        cards.heading(entry)
        proof = certificates.covering(entry) if reason is None else None
        badges(entry, reason, proof)
        if reason is not None:
            notices.notice(reason, f"reason_{entry.name}")
        card = card_of(entry)
        hashable = card is not None and not card.digest
        model_actions.show(entry, loadable=reason is None, hashable=hashable)
        rows = card_rows.rows(entry, card)
        with contextlib.suppress(ModelUnavailable):  # `reason` already says why
            if only := registry.hooked_only(entry):
                rows.append(("Modes", only))
            rows.append(("Memory needed", str(registry.needed(entry))))
        st.html(facts(rows, entry.label))
        if reason is None:
            query = {"verify_models": entry.label}
            if proof and proof.certificate:
                query = {kept_certificates.HASH: proof.certificate}
            label = "Show the certificate →" if proof else "Verify this model →"
            st.page_link("pages/verify.py", label=label, query_params=query)


def card_of(entry: ModelEntry) -> ModelInfo | None:
    """Its card, even if it is too large to load; None if its files are missing or damaged."""
    try:
        return registry.card(entry)
    except ModelUnavailable:
        return None


def badges(entry: ModelEntry, reason: str | None, proof: Standing | None) -> None:
    """Whether it is loaded or can be, and whether a certificate covers its default settings."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if entry in registry.resident():
            st.badge(f"loaded on {registry.card(entry).device}", color="green")
        elif reason is None:
            st.badge("ready to load", color="gray")
        else:
            st.badge("cannot be loaded", color="orange")
            return
        words, colour, help_text = trust_badges.certificate_badge(proof or UNVERIFIED)
        st.badge(words, color=colour, help=help_text)


def show_absent(entry: ModelEntry) -> None:
    """One entry whose files are not here: the command that fetches them, or what else to do."""
    reason = registry.unavailable(entry) or ""
    with answers.frame(entry.colour, entry.name):
        cards.heading(entry)
        st.badge("not installed", color="orange")
        commands = _COMMAND.findall(reason)
        if not commands or checkpoint.hub_folder(entry.checkpoint, entry.revision):
            notices.notice(reason, f"reason_{entry.name}")
        for command in commands:
            st.code(command, language=None, wrap_lines=True)
        st.html(facts(card_rows.rows(entry, None), entry.label))


def show_all(entries: Sequence[ModelEntry], one: Callable[[ModelEntry], None]) -> None:
    """Their cards in rows, each drawn by `one`, in the order of models.toml."""
    for start in range(0, len(entries), COLUMNS):
        row = entries[start : start + COLUMNS]
        for entry, column in zip(row, st.columns(COLUMNS), strict=False):
            with column:
                one(entry)


def main() -> None:
    followed_runs.keep_alive()
    st.title("Models", anchor=False)
    entries = entries_or_stop()
    notices.small(
        f"All entries of {settings.load().models_file}. The app downloads nothing.",
        "models_file",
    )
    st.subheader("Memory", anchor=False)
    memory_bars.show(entries)
    st.subheader("Checkpoints", anchor=False)
    here = [entry for entry in entries if installed(entry)]
    # Such as in float16.  A model whose entry has changed since has the card of its entry.
    names = {entry.name for entry in entries}
    loaded = [item for item in registry.resident() if item.name not in names]
    show_all([*here, *loaded], show)
    if absent := [entry for entry in entries if entry not in here]:
        st.subheader("Not installed", anchor=False)
        notices.small(ABSENT, "not_installed")
        show_all(absent, show_absent)
    cache_view.show(entries)


preparation.through_app()
main()
