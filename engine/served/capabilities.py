"""What a kind of server takes and tells: one table, and which kind an address is.  A server is
asked once; what it said is kept for a day, with the moment, in the cache folder: a page does not
wait for it."""

import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from engine import settings
from engine.errors import BadInput, ServerFailed
from engine.models import new_entry
from engine.models.checkpoint import Server, server_url
from engine.plain_files import read_json, write_whole
from engine.quoting import MAX_LINE, listed, one_line
from engine.served import protocol

PROBE_S = 5.0
KEPT_S = 86_400.0
MAX_FILE = 2**20
MOST_MODELS = 1000
_USAGE = {"stream_options": {"include_usage": True}}


class Kind(NamedTuple):
    """A kind of server.  `extras`: fields beyond the protocol that it takes, which switch its own
    samplers off and make it tell the usage.  `salt`: the field that keeps a prompt out of its cache
    of prompts; `reuses`: it may answer from such a cache whatever it is sent; `scores`: it tells
    log-probabilities of tokens.
    """

    label: str
    extras: Mapping[str, Any] = {}
    salt: str = ""
    reuses: bool = False
    scores: bool = False

    def fields(self) -> dict[str, Any]:
        return {**self.extras, **({self.salt: secrets.token_hex(8)} if self.salt else {})}


_PENALTY = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
# By the servers' documentation; llama.cpp, llama-cpp-python, transformers serve as they answered.
KINDS: Mapping[str, Kind] = {
    "vllm": Kind("vLLM", _USAGE | _PENALTY, salt="cache_salt", scores=True),
    "sglang": Kind("SGLang", _USAGE | _PENALTY, salt="cache_salt", scores=True),
    "llama.cpp": Kind(
        "llama.cpp",
        _USAGE | {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "cache_prompt": False},
        scores=True,
    ),
    "llama-cpp-python": Kind(
        "llama-cpp-python", {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0}, reuses=True
    ),
    "ollama": Kind("Ollama", _USAGE, reuses=True),
    "lmstudio": Kind("LM Studio", _USAGE | {"top_k": 0, "repeat_penalty": 1.0}, reuses=True),
    "transformers": Kind("transformers serve"),  # refuses a field that it does not know
    "other": Kind("OpenAI-compatible server", reuses=True),
}
# The owner that a server names in its list of models.
_OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "library": "ollama"}
# An address that only one kind of server has, a key of its answer, and what stands there.
_OWN_ADDRESSES = (
    ("/version", "vllm", "version", ""),
    ("/props", "llama.cpp", "build_info", ""),
    ("/api/version", "ollama", "version", ""),
    ("/get_server_info", "sglang", "version", ""),
    ("/api/v0/models", "lmstudio", "data", ""),
    ("/openapi.json", "transformers", "paths", "/load_model"),
    ("/openapi.json", "llama-cpp-python", "paths", "/extras/tokenize/count"),
)


@dataclass(frozen=True)
class Capabilities:
    """What a server said of itself: a key of KINDS, its version, its models.  `at`: when, in
    seconds since 1970; `problem`: why it says nothing."""

    kind: str = "other"
    version: str = ""
    models: tuple[str, ...] = ()
    round_trip_ms: float = 0.0
    at: float = 0.0
    problem: str = ""

    @property
    def takes(self) -> Kind:
        return KINDS.get(self.kind, KINDS["other"])

    @property
    def software(self) -> str:
        return f"{self.takes.label} {self.version}".rstrip()


def of(server: Server) -> Capabilities:
    """What the server said within a day, otherwise what it says now."""
    return kept(server) or probe(server)


def kept(server: Server) -> Capabilities | None:
    """What the server said within a day; None if nothing is known."""
    known = _read().get(server.url)
    return known if known and time.time() - known.at < KEPT_S else None


def probe(server: Server) -> Capabilities:
    try:
        protocol.get(server, "/v1/models", PROBE_S)  # the first one also prepares the client
        began = time.perf_counter()
        _, _, listed = protocol.get(server, "/v1/models", PROBE_S)
        spent = 1000 * (time.perf_counter() - began)
        rows = listed["data"] if isinstance(listed, dict) and "data" in listed else []
        named = [row for row in rows[:MOST_MODELS] if isinstance(row, dict) and "id" in row]
    except (ServerFailed, TypeError) as error:
        return Capabilities(problem=str(error))
    owner = named[0].get("owned_by") if named else ""
    found = _identified(server, _OWNERS.get(str(owner), ""))
    if listed is None and found.kind == "other":  # such as a web page
        return Capabilities(
            problem=f"{server.host} is no OpenAI-compatible API at this address: write one such as "
            "http://127.0.0.1:8000/v1."
        )
    models = tuple(one_line(str(row["id"]))[:MAX_LINE] for row in named)
    found = replace(found, models=models, round_trip_ms=round(spent, 1), at=time.time())
    with suppress(OSError):  # otherwise it is asked again
        _file().parent.mkdir(parents=True, exist_ok=True)
        write_whole(_file(), msgspec.json.encode(_read() | {server.url: found}))
    return found


def entered(
    address: str, model: str | None = None, **chosen: str | None
) -> tuple[new_entry.NewEntry, Capabilities]:
    """The entry for a model of a server, which is asked what it is and has; `chosen` as in
    new_entry.make_server.  BadInput if it does not answer, or the model must be named."""
    server = Server(server_url(address), model or "", chosen.get("api_key_env") or "")
    said = probe(server)
    if said.problem:
        raise BadInput(said.problem)
    if model is None and len(said.models) != 1:
        has = f"has {listed(said.models)}" if said.models else "does not list its models"
        raise BadInput(f"{server.host} {has}: name the model.")
    return new_entry.make_server(address, model or said.models[0], **chosen), said


def _identified(server: Server, owner: str) -> Capabilities:
    """The kind and the version, by what only one kind of server has."""
    for address, kind, key, part in _OWN_ADDRESSES:
        if owner not in ("", kind):
            continue
        with suppress(ServerFailed):
            status, _, value = protocol.get(server, address, PROBE_S)
            if status != 200 or not isinstance(value, dict) or key not in value:
                continue
            if part and part not in value[key]:
                continue
            version = value[key] if isinstance(value[key], str) else ""
            return Capabilities(kind, one_line(version)[:MAX_LINE])
    return Capabilities(owner or "other")


def _file() -> Path:
    return settings.load().cache_dir / "servers.json"


def _read() -> dict[str, Capabilities]:
    """By address; none if nothing is kept, or the file cannot be used."""
    try:
        return read_json(_file(), MAX_FILE, "What servers said", dict[str, Capabilities])
    except BadInput:
        return {}
