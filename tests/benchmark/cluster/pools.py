"""A pool of workers in this process: the same lines as Ray's, answered at once or as told."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from engine.benchmark.cluster.worker import Worker

Event = dict[str, Any]
Spoil = Callable[[str, str, list[Any], Any], Any]  # worker, method, arguments, value -> value


class Killed(Exception):
    """The worker's process has ended."""


class HerePool:
    """`nodes` names each worker's node.  `spoil` may change what a worker answers, or kill it."""

    def __init__(self, nodes: dict[str, str], spoil: Spoil | None = None, restart: int = 0) -> None:
        self.nodes, self.spoil, self.restart = dict(nodes), spoil, restart
        self.workers: dict[str, Worker] = {}
        self.queue: deque[Event] = deque()
        self.calls: deque[tuple[str, int, str, list[Any]]] = deque()
        self.run_data: Any = None
        self.asked: list[tuple[str, str, list[Any]]] = []
        self.refused: dict[str, str] = {}
        self.closed = False

    def send(self, order: str, **more: Any) -> None:
        more = json.loads(json.dumps(more))  # as the line would carry it
        if order == "begin":
            self.run_data = more["run_data"]
            firsts: dict[str, str] = {}
            for name, node in self.nodes.items():
                firsts.setdefault(node, name)
            for name in firsts.values():
                self.start(name)
        elif order == "accept":
            for name, node in self.nodes.items():
                if node == more["node"] and name not in self.workers:
                    self.start(name)
        elif order == "refuse":
            self.refused[more["node"]] = more["reason"]
            for name in [n for n, node in self.nodes.items() if node == more["node"]]:
                self.end(name, more["reason"])
        else:
            self._call(more["worker"], more["number"], more["method"], more["arguments"])

    def start(self, name: str) -> None:
        node = self.nodes[name]
        first = not any(self.nodes[other] == node for other in self.workers)
        self.queue.append({"event": "starting", "worker": name, "node": node, "address": "::1"})
        self.workers[name] = Worker({"STAGESCOPE_THREADS": "1"})
        self.queue.append({"event": "placed", "worker": name, **self.workers[name].here()})
        self._call(name, 0, "begin", [self.run_data, first])

    def end(self, name: str, reason: str) -> None:
        if self.workers.pop(name, None) is None:
            return
        node = self.nodes.pop(name)
        self.calls = deque(call for call in self.calls if call[0] != name)
        self.queue.append({"event": "gone", "worker": name, "reason": reason})
        if self.restart:
            self.restart -= 1
            self.nodes[f"{name}+"] = node
            self.start(f"{name}+")

    def _call(self, name: str, number: int, method: str, arguments: list[Any]) -> None:
        if name in self.workers:
            self.asked.append((name, method, arguments))
            self.calls.append((name, number, method, arguments))

    def _work(self) -> None:
        name, number, method, arguments = self.calls.popleft()
        value = getattr(self.workers[name], method)(*arguments)
        try:
            value = self.spoil(name, method, arguments, value) if self.spoil else value
        except Killed as error:
            self.end(name, str(error))
            return
        value = json.loads(json.dumps(value))
        if number == 0:
            self.queue.append({"event": "worker", "worker": name, "about": value})
        else:
            self.queue.append({"event": "done", "number": number, "value": value})

    def events(self, timeout_s: float) -> list[Event]:
        """One at a time, so that much can happen in between."""
        if not self.queue and self.calls:
            self._work()
        return [self.queue.popleft()] if self.queue else []

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker sets its process's variables; the test's are put back."""
    monkeypatch.setenv("STAGESCOPE_THREADS", "1")
    assert os.environ["STAGESCOPE_THREADS"] == "1"
