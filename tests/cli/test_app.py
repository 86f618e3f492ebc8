"""app: what is refused before a server is started, and how it is started."""

import os
import socket
import sys

import pytest

from engine.__main__ import main
from engine.settings import PROJECT
from tests.cli.conftest import Refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port", "0"), "--port is 0: choose a number from 1 to 65,535."),
        (("--port", "65535", "--host", "203.0.113.7"), "'203.0.113.7:65535' cannot be listened on"),
        (("--host", "no such host"), "'no such host:8501' cannot be listened on"),
    ],
)
def test_bad_input_is_refused(refused: Refused, arguments: tuple[str, ...], words: str) -> None:
    assert words in refused("app", *arguments)


def test_a_port_that_is_taken_is_named(refused: Refused) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = refused("app", "--port", port)
    assert f"'127.0.0.1:{port}' cannot be listened on (Address already in use): choose " in told


def test_the_server_finds_this_code_and_not_the_current_folders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[object] = []
    monkeypatch.setattr(os, "execve", lambda *given: started.append(given))
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(TypeError):  # execve does not come back
        main(["app", "--port", str(port)])
    ((program, given, environment),) = started  # type: ignore[misc]
    wanted = ["-P", "-m", "ui.server", str(port), "127.0.0.1"]
    assert program == sys.executable and given[1:] == wanted
    assert environment["PYTHONPATH"].split(os.pathsep) == [str(PROJECT), "/elsewhere"]
