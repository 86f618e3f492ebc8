"""Which kind of server an address is, what that kind is sent, and that it is asked once."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from typing import Any

import pytest

from engine.models.checkpoint import Server
from engine.served import capabilities
from tests.served.fake_server import FakeServer


def paths(*own: str) -> dict[str, Any]:
    """The page that lists the paths of a server."""
    return {"/openapi.json": {"paths": {path: {} for path in own}}}


LISTED: dict[str, Any] = {"data": [{"id": "served-model", "owned_by": "somebody"}]}
SAID: dict[str, tuple[dict[str, Any], str]] = {
    "vllm": ({"/version": {"version": "0.30.1"}}, "vLLM 0.30.1"),
    "llama.cpp": ({"/props": {"build_info": "b7000", "n_ctx": 1}}, "llama.cpp b7000"),
    "ollama": ({"/api/version": {"version": "0.20"}}, "Ollama 0.20"),
    "sglang": ({"/get_server_info": {"version": "1.0"}}, "SGLang 1.0"),
    "lmstudio": ({"/api/v0/models": {"data": []}}, "LM Studio"),
    "transformers": ({**paths("/load_model"), "/v1/models": 500}, "transformers serve"),
    "llama-cpp-python": (paths("/extras/tokenize/count"), "llama-cpp-python"),
    "other": (paths(), "OpenAI-compatible server"),
}


@pytest.mark.parametrize("kind", SAID)
def test_the_kind_is_known_by_what_only_it_has(fake: FakeServer, server: Server, kind: str) -> None:
    pages, software = SAID[kind]
    fake.pages = {"/v1/models": LISTED} | pages
    found = capabilities.probe(server)
    assert (found.kind, found.software, found.problem) == (kind, software, "")
    assert found.models == (() if kind == "transformers" else ("served-model",))
    assert found.round_trip_ms > 0


def test_the_owner_of_the_models_decides_the_kind(fake: FakeServer, server: Server) -> None:
    fake.pages["/props"] = {"build_info": "b1"}
    fake.pages["/v1/models"] = {"data": [{"id": "m", "owned_by": "llamacpp"}]}
    assert capabilities.probe(server).software == "llama.cpp b1"


def test_a_server_is_asked_once_a_day(
    fake: FakeServer, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = capabilities.of(server)
    fake.pages.clear()
    assert capabilities.of(server) == capabilities.kept(server) == found
    assert abs(found.at - time.time()) < 60
    monkeypatch.setattr(capabilities, "KEPT_S", 0.0)
    assert capabilities.of(server).kind == "other"  # control: it is asked, and says nothing now


@pytest.mark.parametrize("listed", [{"data": 7}, [], {"data": ["x", {}]}, "<html>", 404])
def test_strange_lists_name_no_model(fake: FakeServer, server: Server, listed: object) -> None:
    fake.pages["/v1/models"] = listed
    assert capabilities.probe(server).models == ()


def test_a_web_page_is_no_server(fake: FakeServer, server: Server) -> None:
    fake.pages = {"/v1/models": "<html>"}
    assert "is no OpenAI-compatible API" in capabilities.probe(server).problem
    assert capabilities.kept(server) is None
    fake.pages = {"/v1/models": {"detail": "not found"}}  # control: it speaks JSON
    assert not capabilities.probe(server).problem


def test_a_server_that_is_not_there_has_a_reason_and_is_not_kept(server: Server) -> None:
    away = replace(server, url="http://127.0.0.1:9/v1")
    assert "refuses connections" in capabilities.of(away).problem
    assert capabilities.kept(away) is None


def test_a_silent_server_is_not_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "PROBE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        away = replace(server, url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        assert "did not finish within 0.1 s: see its log" in capabilities.of(away).problem


def test_a_damaged_file_counts_as_none(server: Server) -> None:
    capabilities.probe(server)
    capabilities._file().write_text("{", encoding="utf-8")
    assert capabilities.kept(server) is None and capabilities.of(server).kind == "vllm"


def test_salts_differ_and_what_a_kind_does_not_take_is_not_sent() -> None:
    kinds = capabilities.KINDS
    first, second = (kinds["vllm"].fields()["cache_salt"] for _ in range(2))
    assert first != second
    assert kinds["transformers"].fields() == kinds["other"].fields() == {}
    assert kinds["llama.cpp"].fields()["cache_prompt"] is False
    assert "cache_prompt" not in kinds["vllm"].fields()
