"""A running fake server for each test, and entries that name it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.models.checkpoint import Server
from tests.served.fake_server import FakeServer, serving


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeServer]:
    monkeypatch.setenv("STAGESCOPE_CACHE_DIR", str(tmp_path / "cache"))
    with serving() as server:
        yield server


@pytest.fixture
def server(fake: FakeServer) -> Server:
    return replace(Server(fake.url, "served-model"), timeout_s=5.0)
