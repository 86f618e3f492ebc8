"""`transformers serve` on this machine, with a demo checkpoint: a real server of the protocol."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import ServerFailed
from engine.models.checkpoint import Server
from engine.served import protocol

CHECKPOINT = Path(__file__).resolve().parents[2] / "engine" / "demo" / "checkpoints" / "llava"
# The prompt of LLaVA, which the demo checkpoint was trained with.
TEMPLATE = """{% for message in messages %}USER: {% for part in message.content \
if part.type == 'image' %}<image>
{% endfor %}{% for part in message.content if part.type == 'text' %}{{ part.text }}{% endfor %} \
{% endfor %}ASSISTANT:"""
PATIENCE_S = 120.0


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """The server, once it answers; its checkpoint and its hub cache lie in `folder`."""
    place = folder / "llava"
    shutil.copytree(CHECKPOINT, place)
    (place / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(place)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    own = {"HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "1"}
    server = Server(f"http://127.0.0.1:{port}/v1", str(place))
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log)
    try:
        _wait(server, process, folder / "serve.log")
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < end:
        try:
            if protocol.get(server, "/health", 5.0)[0] == 200:
                return
        except ServerFailed:
            time.sleep(0.2)
    raise RuntimeError(f"transformers serve did not start:\n{log.read_text(errors='replace')}")
