"""Earlier certificates: a list, and one of them opened by a link."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import streamlit as st

from engine.models.checkpoint import ModelEntry
from engine.quoting import cut
from engine.report.blocks import ReportTable
from engine.verify import certificates
from ui.verify import verdict_markup
from ui.widgets import blocks, notices
from ui.widgets.model_picker import Labels
from ui.widgets.text import count

HASH = "verify_certificate"  # in the URL
FEW = 8
_WIDTHS = [1.5, 2.1, 1.1, 2.3, 1.2, 1.1, 1.1]


def asked() -> str:
    """The hash in the link, or ""."""
    return str(st.query_params.get(HASH, ""))[:64]


def opened() -> Mapping[str, Any] | None:
    """The certificate of the hash (or its beginning) in the link; None if there is none."""
    wanted = asked()
    if len(wanted) < certificates.SHOWN:
        return None
    return next(
        (kept for kept in certificates.stored_certificates() if kept["hash"].startswith(wanted)),
        None,
    )


def close() -> None:
    st.query_params.pop(HASH, None)


def open_(name: str) -> None:
    st.query_params[HASH] = name


def head(certificate: Mapping[str, Any], entries: Sequence[ModelEntry]) -> None:
    """The heading of an opened certificate, and whether it is still valid."""
    name = certificate["hash"]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(f"Certificate {name[: certificates.SHOWN]}", anchor=False, width="content")
        st.button("Close", key="verify_close", on_click=close)
        _download(certificate, "Download JSON", "verify_opened_json")
    notices.small(f"Made {made(certificate)} · SHA-256 {name}", "certificate")
    if reason := certificates.why_stale(certificate, entries):
        notices.notice(f"Stale: {reason} Verify again to prove what runs now.", "stale")
    _details(certificate, Labels(entries))


def made(certificate: Mapping[str, Any]) -> str:
    """The certificate's date and minute, in UTC."""
    moment = datetime.fromisoformat(certificate["made"])
    return f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"


def _details(certificate: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    with st.expander("What exactly was verified", key="verify_how"):
        request = certificate["request"]
        models = [(labels.get(m["name"], m["name"]), m) for m in certificate["models"]]
        rows = (
            ("Dataset", request["dataset"]),
            ("Samples", ", ".join(request["samples"])),
            ("Question", request["prompt"]),
            ("Max new tokens", str(request["max_new_tokens"])),
            ("Warm runs", str(request["runs"])),
            ("Engine code", certificate["engine"]),
            ("Libraries", ", ".join(f"{k} {v}" for k, v in certificate["libraries"].items())),
            *((f"Model {label}", _model(model)) for label, model in models),
            *((f"Covered for {label}", certificates.covers(model)) for label, model in models),
            *((f"Not proved for {label}", " ".join(model["unproved"])) for label, model in models),
        )
        blocks.draw([ReportTable("", ("", ""), rows, words=2)], "verify_how")


def _model(model: Mapping[str, Any]) -> str:
    if not model["digest"]:
        return "did not load"
    where = ", ".join(f"{name} {value}" for name, value in model["environment"].items())
    return f"checkpoint {model['digest']}, {model['dtype']}, {where}"


def listed(entries: Sequence[ModelEntry]) -> None:
    found = certificates.stored_certificates()
    st.subheader("Certificates", anchor=False, help="One JSON file per finished verification.")
    for number, file in enumerate(certificates.unusable_files()[:FEW]):
        text = f"{cut(file.name)} is not used: {file.reason}. Remove it, or verify again."
        notices.notice(text, f"unused_{number}")
    if not found:
        st.caption("None yet. Each finished verification saves one.")
        return
    shown = found
    if len(found) > FEW and not st.toggle(f"Show all {len(found):,}", key="verify_all"):
        shown = found[:FEW]
    names = ("Made", "Models", "Verdict", "Status", "Hash")
    with st.container(key="proof_certificates", gap="xsmall"):
        for name, column in zip(names, st.columns(_WIDTHS), strict=False):
            column.caption(name)
        for certificate in shown:
            _line(certificate, entries)


def _line(certificate: Mapping[str, Any], entries: Sequence[ModelEntry]) -> None:
    name = certificate["hash"]
    columns = st.columns(_WIDTHS, vertical_alignment="center")
    reason = certificates.why_stale(certificate, entries)
    models, labels = certificate["models"], Labels(entries)
    good = sum(model["verified"] is True for model in models)
    words = (
        made(certificate),
        ", ".join(labels.get(model["name"], model["name"]) for model in models),
        f"{'✓' if good == len(models) else '✕'} {good} of {count(len(models), 'model')}",
        f"stale: {reason}" if reason else "valid",
        name[: certificates.SHOWN],
    )
    for text, column in zip(words, columns, strict=False):
        column.html(verdict_markup.line(text, "cell"))
    columns[5].button("Open", key=f"verify_open_{name}", on_click=open_, args=(name,))
    with columns[6]:
        _download(certificate, "JSON", f"verify_json_{name}")


def _download(certificate: Mapping[str, Any], label: str, key: str) -> None:
    name = certificate["hash"][: certificates.SHOWN]
    st.download_button(
        label,
        lambda: json.dumps(certificate, indent=1),
        f"certificate-{name}.json",
        "application/json",
        key=key,
        on_click="ignore",
    )
