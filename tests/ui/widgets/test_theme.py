"""Colours can be told from the ground in both themes."""

import tomllib
from pathlib import Path
from typing import Any

CONFIG = Path(__file__).resolve().parents[3] / ".streamlit" / "config.toml"


def config() -> dict[str, Any]:
    return tomllib.loads(CONFIG.read_text(encoding="utf-8"))


def test_the_server_listens_on_this_machine_alone() -> None:
    assert config()["server"]["address"] == "127.0.0.1"
    assert config()["browser"]["gatherUsageStats"] is False
