"""The two diagnoses of a real llama.cpp, and of a GGUF file that lacks a layer of the tower.

They need an interpreter with llama-cpp-python[server] and gguf, which LLAMA_CPP_PYTHON names.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import ServerFailed
from engine.media import dataset
from engine.models import registry
from engine.models.checkpoint import Server
from engine.served import protocol
from engine.verify import runner
from engine.verify.verdict import VerifyRequest
from tests.served import gguf_server
from tests.served.transformers_serve import CHECKPOINT, PATIENCE_S
from tests.verify.conftest import Notes

INTERPRETER = os.environ.get("LLAMA_CPP_PYTHON", "")
SAMPLES = 14
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not INTERPRETER, reason="LLAMA_CPP_PYTHON names no interpreter"),
]


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = [INTERPRETER, gguf_server.__file__, str(CHECKPOINT), str(folder), port, *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
    server = Server(f"http://127.0.0.1:{port}/v1", "model", weights="llava-demo")
    end = time.monotonic() + PATIENCE_S
    try:
        while True:
            assert process.poll() is None and time.monotonic() < end, (folder / "log").read_text()
            try:
                protocol.get(server, "/v1/models", 5.0)
                break
            except ServerFailed:
                time.sleep(0.2)
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


CLASS_LAST = "the class embedding after the patches"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("trained",), [CLASS_LAST, f"{SAMPLES} of {SAMPLES}; as published: 0 of {SAMPLES}"]),
        (("trained", "1"), [CLASS_LAST, "one vision layer fewer"]),
        (("own",), ["the prompt of llama-cpp-python", CLASS_LAST]),
    ],
)
def test_what_llama_cpp_does_otherwise_is_named(
    options: tuple[str, ...],
    words: list[str],
    tmp_path: Path,
    demo_scenes: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STAGESCOPE_CACHE_DIR", str(tmp_path / "cache"))
    own = registry.entry
    with serving(tmp_path, *options) as server:
        entry = replace(own("llava-demo"), name="served", server=server, demo=False)
        monkeypatch.setattr(
            registry, "entry", lambda name: entry if name == "served" else own(name)
        )
        samples = tuple(dataset.read(demo_scenes).samples[:SAMPLES])
        (examined,) = runner.verify(VerifyRequest(("served",), samples), Notes())
    found = {verdict.check: verdict for verdict in examined.verdicts}
    assert found["same"].outcome == "failed"
    said = found["why"].sentence
    assert all(one in said for one in words), said
