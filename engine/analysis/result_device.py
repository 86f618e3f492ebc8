"""Which type of device a result comes from, and what decoded it: what its times depend on beside
the model.

Boundary: rows in, names out.  Results of different types never meet in one mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def device_type(environment: Mapping[str, Any]) -> str:
    """A GPU's name, or a processor with its threads; "" if unknown."""
    if not environment:
        return ""
    if str(environment.get("device", "cpu")) != "cpu":
        return str(environment.get("hardware", ""))
    name = str(environment.get("processor") or environment.get("hardware", ""))
    threads = str(environment.get("threads", ""))
    return f"{name}, {threads} {'thread' if threads == '1' else 'threads'}" if threads else name


def device_of(row: Mapping[str, Any]) -> str:
    """The type of device of a row's result; a shared one is another type: its times are those of
    two."""
    environment, where = row.get("environment"), place_of(row)
    known = device_type(environment) if isinstance(environment, dict) else ""
    found = known or str(where.get("type", ""))
    return ", ".join(part for part in (found, shared_of(row)) if part)


def shared_of(row: Mapping[str, Any]) -> str:
    """What other workers of the run used at the same time: "shared device and cores"; "" if
    nothing."""
    shares = place_of(row).get("shares")
    if not isinstance(shares, list) or not shares:
        return ""
    return f"shared {' and '.join(map(str, shares))}"


def place_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Node, device and actor of a cluster's result; empty for one of the run's own process."""
    where = row.get("where")
    return where if isinstance(where, dict) else {}


def backend_of(row: Mapping[str, Any]) -> str:
    """What decoded a row's answer; the eager step in rows from before there was another; "" where
    nothing did."""
    return str(_backend(row).get("ran") or ("" if row.get("error") else "eager"))


def asked_of(row: Mapping[str, Any]) -> str:
    """The backend that a row's run asked for, "" in rows that do not say."""
    return str(_backend(row).get("asked") or "")


def _backend(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found = row.get("backend")
    return found if isinstance(found, dict) else {}
