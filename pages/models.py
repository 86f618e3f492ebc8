"""Models: their checkpoints, whether they can run here, memory use, and the feature cache."""

import contextlib
import re
import time
from collections.abc import Sequence

import streamlit as st

from engine import settings
from engine.errors import ModelUnavailable
from engine.models import checkpoint, registry, variants
from engine.models.checkpoint import ModelEntry, Server
from engine.quoting import duration, gib, listed, ms
from engine.report import card_rows
from engine.served import capabilities
from engine.storage.result_rows import UNVERIFIED, Standing
from engine.verify import certificates
from ui.compare import trust_badges
from ui.models import memory_view
from ui.models.memory_view import facts
from ui.verify import verdict_board
from ui.widgets import notices, preparation
from ui.widgets.dataset_picker import on_loopback
from ui.widgets.model_picker import entries_or_stop, installed
from ui.widgets.text import escape

COLUMNS = 3
AT_A_GLANCE = ("Parameters", "Runs in")  # the other rows of a card are folded
ABSENT = (
    "Their files are not on this machine. Run the command once in a terminal, or set the "
    f"checkpoint in models.toml to a folder. `{settings.COMMAND} models add HUB_NAME` adds others."
)


def show(entry: ModelEntry) -> None:
    if entry.server:
        return show_server(entry, entry.server)
    reason = registry.unavailable(entry)
    proof = certificates.covering(entry) if reason is None else None
    with notices.frame(entry.colour, entry.name):
        heading(entry)
        if reason is not None and not installed(entry):
            show_absent(entry, reason)
            return
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if entry in registry.resident():
                st.badge(f"loaded on {registry.card(entry).device}", color="green")
            elif reason is None:
                st.badge("ready to load", color="gray")
            else:
                st.badge("cannot be loaded", color="orange")
            if entry in registry.resident() or reason is None:
                proof_badge(proof)
        if reason is not None:
            notices.notice(reason, f"reason_{entry.name}")
        card = need = modes = None
        with contextlib.suppress(ModelUnavailable):  # `reason` already says why
            card = registry.card(entry)
            modes = registry.hooked_only(entry)
            need = registry.needed(entry)
        hashable = card is not None and not card.digest
        memory_view.actions(entry, loadable=reason is None, hashable=hashable)
        rows = card_rows.rows(entry, card)
        glance = [row for row in rows if row[0] in AT_A_GLANCE]
        rest = [row for row in rows if row[0] not in AT_A_GLANCE]
        if modes:
            glance.append(("Modes", modes))
        if need:
            glance.append(("Memory needed", gib(need.total)))
            rest.append(("Memory needed", str(need)))
        st.html(facts(glance, entry.label))
        with st.expander("Files and details", key=f"models_files_{entry.name}"):
            st.html(facts(rest, "Files and details"))
        if reason is None:
            verify_link(entry, proof)


def heading(entry: ModelEntry) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.subheader(escape(entry.label), anchor=False, width="content")
        if entry.demo:
            help_ = "A small checkpoint that ships with StageScope, trained on drawn scenes."
            st.badge("demo", color="gray", help=help_)


def proof_badge(proof: Standing | None) -> None:
    words, colour, help_text = trust_badges.certificate_badge(proof or UNVERIFIED)
    st.badge(words, color=colour, help=help_text)


def verify_link(entry: ModelEntry, proof: Standing | None) -> None:
    query = {"verify_models": entry.label}
    if proof and proof.certificate:
        query = {verdict_board.HASH: proof.certificate}
    label = "Show the certificate →" if proof else "Verify this model →"
    st.page_link("pages/verify.py", label=label, query_params=query)


def show_server(entry: ModelEntry, server: Server) -> None:
    reason, asked = registry.unavailable(entry), f"models_ask_{entry.name}"
    with notices.frame(entry.colour, entry.name):
        heading(entry)
        said = capabilities.kept(server)
        if st.session_state.get(asked):
            with st.spinner(f"Asking {server.host} …"):
                said = capabilities.probe(server)
        proof = certificates.covering(entry)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if said is None:
                st.badge("not asked yet", color="gray")
            elif said.problem:
                st.badge("not reachable", color="orange")
            else:
                st.badge(f"reached {duration(time.time() - said.at)} ago", color="green")
            proof_badge(proof)
        if problem := reason or (said.problem if said else ""):
            notices.notice(problem, f"reason_{entry.name}")
        if said and not said.problem and said.models and server.model not in said.models:
            words = f"It lists no model {server.model}, but {listed(said.models)}."
            notices.notice(words, f"listed_{entry.name}")
        st.button("Ask the server", key=asked, disabled=reason is not None)
        rows = [("Server", server.url), ("Its name there", server.model)]
        if said and not said.problem:
            rows += [("Software", said.software), ("Round trip", ms(said.round_trip_ms))]
        st.html(facts(rows, entry.label))
        verify_link(entry, proof)


def add_server(entries: Sequence[ModelEntry]) -> None:
    """Asks a server and enters its model; only where the app serves this machine alone."""
    if not on_loopback():
        return
    with st.expander("Add a served model", key="models_add"), st.form("add_server", border=False):
        url = st.text_input("Address", placeholder="http://127.0.0.1:8000/v1", key="add_server_url")
        places = st.columns(5)
        model = places[0].text_input("Its name at the server", key="add_server_model")
        shows = places[1].selectbox("Is shown", variants.SHOWS[::-1], key="add_server_shows")
        name = places[2].text_input("Another name here", key="add_server_name")
        key = places[3].text_input("Environment variable with its key", key="add_server_key")
        here = {one.label: one.name for one in entries if not one.server}
        weights = places[4].selectbox(
            "Same checkpoint here", list(here), index=None, key="add_server_weights",
            placeholder="none", help="Verify compares its answers with the server's.",
        )  # fmt: skip
        if not st.form_submit_button("Ask it and add", key="add_server"):
            return
        given = {"shows": shows, "name": name.strip() or None, "api_key_env": key.strip() or None}
        given["weights"] = here.get(weights or "")
        with notices.telling("add_server", notices.problem):
            with st.spinner("Asking the server …"):
                new, _ = capabilities.entered(url, model.strip() or None, **given)
            new.write()
            st.rerun()


def show_absent(entry: ModelEntry, reason: str) -> None:
    """What a card says without files: the command that fetches them, or what else to do."""
    st.badge("not installed", color="orange")
    commands = re.findall(r"`([^`]+)`", reason)  # as the engine's messages quote them
    if not commands or checkpoint.hub_folder(entry.checkpoint, entry.revision):
        notices.notice(reason, f"reason_{entry.name}")
    for command in commands:
        st.code(command, language=None, wrap_lines=True)
    st.html(facts(card_rows.rows(entry, None), entry.label))


def show_all(entries: Sequence[ModelEntry]) -> None:
    for start in range(0, len(entries), COLUMNS):
        row = entries[start : start + COLUMNS]
        for entry, column in zip(row, st.columns(COLUMNS), strict=False):
            with column:
                show(entry)


def main() -> None:
    st.title("Models", anchor=False)
    entries = entries_or_stop()
    file = settings.load().models_file
    notices.small(f"All entries of {file}. The app downloads nothing.", "models_file")
    here = [entry for entry in entries if installed(entry)]
    # Such as in float16.  A model whose entry has changed since has the card of its entry.
    names = {entry.name for entry in entries}
    loaded = [item for item in registry.resident() if item.name not in names]
    show_all([*here, *loaded])
    add_server(here)
    if absent := [entry for entry in entries if entry not in here]:
        with st.expander(f"Not installed ({len(absent)})", key="models_absent"):
            notices.small(ABSENT, "not_installed")
            show_all(absent)
    st.subheader("Memory", anchor=False)
    memory_view.devices(entries)
    memory_view.cache(entries)


preparation.through_app(main)
