"""The way to a Ray: a head that is lost and comes back, and what is said of Ray's own words."""

import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from engine.benchmark.cluster import ray_link, ray_process


def test_a_head_that_answers_again_is_kept_and_one_that_is_lost_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock is the guard's own sleeping; the port is a real one."""
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    head, said, slept = f"127.0.0.1:{port}", list[tuple[str, dict[str, Any]]](), [0]
    servers = [server]

    def sleep(seconds: float) -> None:
        slept[0] += 1
        if slept[0] in (3, 7):
            servers.pop().close()
        if slept[0] == 5:
            servers.append(socket.create_server(("127.0.0.1", port)))

    monkeypatch.setattr(ray_process.time, "sleep", sleep)
    monkeypatch.setattr(ray_process.time, "monotonic", lambda: float(slept[0]))
    ray_process.guard(head, lambda event, **more: said.append((event, more)))
    closed = {"reason": f"The head node {head} of the Ray cluster has been lost."}
    assert said.pop() == ("closed", closed)
    trouble = f"the head node {head} does not answer"
    silent = [more["trouble"] for _, more in said]
    assert silent[:6] == ["", "", trouble, trouble, "", ""] and set(silent[6:]) == {trouble}
    assert slept[0] == 6 + ray_process.LOST_S


def test_sockets_have_room_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 12)))
    made = ray_link.make_folder()
    try:
        session = "session_2026-11-21_16-42-42_123456_1234567/sockets/plasma_store"
        assert len(str(made / session)) <= 107
    finally:
        made.rmdir()
