"""Earlier certificates: a list, and one of them opened by a link."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.quoting import count, cut
from engine.verify import certificates
from ui.verify import evidence, verdict_markup
from ui.widgets import blocks, notices

HASH = "verify_certificate"  # in the URL
SCROLL = "verify_scroll"  # a certificate was opened in the list, far below its place
FEW = 8
_COLUMNS = {"Made": 1.5, "Models": 2.1, "Verdict": 1.1, "Status": 2.3, "Hash": 1.2, "": 1.1}


def asked() -> str:
    """The hash in the link, or ""."""
    return str(st.query_params.get(HASH, ""))[:64]


def close() -> None:
    st.query_params.pop(HASH, None)


def open_(name: str) -> None:
    st.query_params[HASH] = name
    st.session_state[SCROLL] = True


def opened(entries: Sequence[ModelEntry]) -> Mapping[str, Any] | None:
    """The certificate of the hash (or its beginning) in the link, under its heading; else None."""
    wanted = asked()
    kept = certificates.stored_certificates() if len(wanted) >= certificates.SHOWN else []
    found = next((one for one in kept if one["hash"].startswith(wanted)), None)
    if found is not None:
        _head(found, entries)
    elif wanted:
        name = f"Certificate {wanted[: certificates.SHOWN]!r}"
        notices.notice(f"{name} was not found: choose one of those below.", "no_certificate")
    return found


def _head(certificate: Mapping[str, Any], entries: Sequence[ModelEntry]) -> None:
    name, text = certificate["hash"], json.dumps(certificate, indent=1)
    short = name[: certificates.SHOWN]
    with st.container(horizontal=True, vertical_alignment="center", key="verify_opened"):
        st.subheader(f"Certificate {short}", anchor=False, width="content")
        st.button("Close", key="verify_close", on_click=close)
        file = (f"certificate-{short}.json", "application/json")
        st.download_button("Download JSON", text, *file, "verify_json", on_click="ignore")
    if st.session_state.pop(SCROLL, False):
        notices.scroll_to("verify_opened")
    notices.small(f"Made {_made(certificate)} · SHA-256 {name}", "certificate")
    if reason := certificates.why_stale(certificate, entries):
        notices.notice(f"Stale: {reason} Verify again to prove what runs now.", "stale")
    with st.expander("What exactly was verified", key="verify_how"):
        made = {name: certificate[name] for name in ("engine", "libraries")}
        for part in (certificate["request"] | made, *certificate["models"]):
            blocks.draw(evidence.tables(part), f"verify_how_{part.get('name', '')}")


def _made(certificate: Mapping[str, Any]) -> str:
    moment = datetime.fromisoformat(certificate["made"])
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def listed(entries: Sequence[ModelEntry]) -> None:
    kept = certificates.stored_certificates()
    st.subheader("Certificates", anchor=False, help="One JSON file per finished verification.")
    for number, file in enumerate(certificates.unusable_files()[:FEW]):
        text = f"{cut(file.name)} is not used: {file.reason}. Remove it, or verify again."
        notices.notice(text, f"unused_{number}")
    if not kept:
        st.caption("None yet. Each finished verification saves one.")
        return
    if len(kept) > FEW and not st.toggle(f"Show all {len(kept):,}", key="verify_all"):
        kept = kept[:FEW]
    with st.container(key="proof_certificates", gap="xsmall"):
        for name, column in zip(_COLUMNS, st.columns([*_COLUMNS.values()]), strict=True):
            column.caption(name)
        for certificate in kept:
            _line(certificate, entries)


def _line(certificate: Mapping[str, Any], entries: Sequence[ModelEntry]) -> None:
    models = certificate["models"]
    reason = certificates.why_stale(certificate, entries)
    good = sum(model["verified"] for model in models)
    words = (
        _made(certificate),
        ", ".join(registry.label(model["name"]) for model in models),
        f"{'✓' if good == len(models) else '✕'} {good} of {count(len(models), 'model')}",
        f"stale: {reason}" if reason else "valid",
        certificate["hash"][: certificates.SHOWN],
    )
    *columns, last = st.columns([*_COLUMNS.values()], vertical_alignment="center")
    for text, column in zip(words, columns, strict=True):
        column.html(verdict_markup.line(text, "cell"))
    name = certificate["hash"]
    last.button("Open", key=f"verify_open_{name}", on_click=open_, args=(name,))
