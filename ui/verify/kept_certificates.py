"""The list of certificates; each opens in place, one at a time, by its row or by a link."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.quoting import count, cut
from engine.verify import certificates, report
from ui.verify import evidence
from ui.verify.verdict_board import Board
from ui.widgets import blocks, notices
from ui.widgets.text import escape, when

HASH = "verify_certificate"  # in the URL
FEW = 8


def _linked(kept: Sequence[Mapping[str, Any]]) -> str:
    """The hash of the certificate that the link names by its hash or the beginning, or ""."""
    wanted = str(st.query_params.get(HASH, ""))[:64]
    if len(wanted) >= certificates.SHOWN:
        for certificate in kept:
            if certificate["hash"].startswith(wanted):
                return str(certificate["hash"])
    if wanted:
        name = f"Certificate {wanted[: certificates.SHOWN]!r}"
        notices.notice(f"{name} was not found: choose one of those below.", "no_certificate")
    return ""


def _toggled(key: str, name: str) -> None:
    if st.session_state[key]:
        st.query_params[HASH] = name
    else:
        st.query_params.pop(HASH, None)


def listed(entries: Sequence[ModelEntry], above: str = "") -> None:
    """The newest first.  `above`: the hash of the one whose checks the page shows already."""
    kept = certificates.stored_certificates()
    with st.container(key="verify_certificates", gap="xsmall"):
        st.subheader("Certificates", anchor=False, help="One JSON file per finished verification.")
        for number, file in enumerate(certificates.unusable_files()[:FEW]):
            text = f"{cut(file.name)} is not used: {file.reason}. Remove it, or verify again."
            notices.notice(text, f"unused_{number}")
        linked = _linked(kept)
        if not kept:
            st.caption("None yet. Each finished verification saves one.")
        if len(kept) > FEW and not st.toggle(f"Show all {len(kept):,}", key="verify_all"):
            kept = kept[:FEW] + [one for one in kept[FEW:] if one["hash"] == linked]
        for certificate in kept:
            name = certificate["hash"]
            key = f"verify_kept_{name}"
            st.session_state[key] = name == linked
            label = _label(certificate, entries, name == above)
            row = st.expander(label, key=key, on_change=_toggled, args=(key, name))
            if name == linked:
                with row:
                    _opened(certificate, entries, name == above)


def _label(certificate: Mapping[str, Any], entries: Sequence[ModelEntry], above: bool) -> str:
    """`above`: the page names its models and open checks already."""
    models = certificate["models"]
    good = sum(model["verified"] for model in models)
    rows = report.of_certificate(certificate).rows
    unresolved = len({(row.model, row.check) for row in rows if row.outcome == "unresolved"})
    words = (
        f"{'✓' if good == len(models) else '✕'} {good} of {count(len(models), 'model')}",
        f"{unresolved} open" if unresolved and not above else "",
        "" if above else ", ".join(registry.label(model["name"]) for model in models),
        when(certificate["made"]),
        "stale" if certificates.why_stale(certificate, entries) else "valid",
        certificate["hash"][: certificates.SHOWN],
    )
    return escape(" · ".join(filter(None, words)))


def _opened(certificate: Mapping[str, Any], entries: Sequence[ModelEntry], above: bool) -> None:
    name, text = certificate["hash"], json.dumps(certificate, indent=1)
    if reason := certificates.why_stale(certificate, entries):
        notices.notice(f"Stale: {reason} Verify again to prove what runs now.", "stale")
    if above:
        st.caption("Its checks are shown above.")
    else:
        Board(report.of_certificate(certificate), entries, "verify_kept")
    with st.expander("What exactly was verified", key="verify_how"):
        made = {name: certificate[name] for name in ("engine", "libraries")}
        for part in (certificate["request"] | made, *certificate["models"]):
            blocks.draw(evidence.tables(part), f"verify_how_{part.get('name', '')}")
    notices.small(f"SHA-256 {name}", "certificate")
    file = (f"certificate-{name[: certificates.SHOWN]}.json", "application/json")
    st.download_button("Download JSON", text, *file, "verify_json", on_click="ignore")
