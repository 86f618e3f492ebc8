"""Which kind of server an address is, what that kind is sent, and that it is asked once."""

import socket
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


def test_the_owner_of_the_models_decides_the_kind(fake: FakeServer, server: Server) -> None:
    fake.pages["/props"] = {"build_info": "b1"}
    fake.pages["/v1/models"] = {"data": [{"id": "m", "owned_by": "llamacpp"}]}
    assert capabilities.probe(server).software == "llama.cpp b1"


@pytest.mark.parametrize("listed", [{"data": 7}, [], {"data": ["x", {}]}, "<html>", 404])
def test_strange_lists_name_no_model(fake: FakeServer, server: Server, listed: object) -> None:
    fake.pages["/v1/models"] = listed
    assert capabilities.probe(server).models == ()


def test_a_server_that_is_not_there_has_a_reason_and_is_not_kept(server: Server) -> None:
    away = replace(server, url="http://127.0.0.1:9/v1")
    assert "refuses connections" in capabilities.of(away).problem
    assert capabilities.kept(away) is None


def test_a_silent_server_is_not_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "PROBE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        away = replace(server, url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        assert "did not finish within 0.1 s: see its log" in capabilities.of(away).problem
