"""A cluster in this process: the same calls as a link to Ray, answered at once or as told."""

import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from engine.benchmark.cluster.worker import Worker

Event = dict[str, Any]
Spoil = Callable[[str, str, list[Any], Any], Any]  # worker, method, arguments, value -> value


class Killed(Exception):
    """The worker's process has ended."""


class HerePool:
    """`places` names each worker's node.  `spoil` may change what a worker answers, or kill it; the
    node leaves with its last worker after `restart` kills."""

    def __init__(
        self, places: dict[str, str], spoil: Spoil | None = None, restart: int = 0
    ) -> None:
        self.places, self.spoil, self.restart = dict(places), spoil, restart
        self.workers: dict[str, Worker] = {}
        self.queue: deque[Event] = deque()
        self.calls: deque[tuple[str, str, list[Any]]] = deque()
        self.asked: list[tuple[str, str, list[Any]]] = []
        self.closed = False

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        sizes = Counter(self.places.values())
        about = {"address": "::1", "gpus": 0.0}
        return {node: {"id": node, "cpus": sizes[node]} | about for node in sizes}

    def start(self, node_id: str, cpus: int, gpus: float, run_data: Any) -> str:
        name = next(n for n, at in self.places.items() if at == node_id and n not in self.workers)
        self.workers[name] = Worker(cpus, json.loads(json.dumps(run_data)))
        return name

    def end(self, worker: str) -> None:
        self.workers.pop(worker, None)
        self.places.pop(worker, None)
        self.calls = deque(call for call in self.calls if call[0] != worker)

    def call(self, worker: str, method: str, arguments: Iterable[Any] = ()) -> None:
        self.asked.append((worker, method, list(arguments)))
        self.calls.append(self.asked[-1])

    def events(self, timeout_s: float) -> list[Event]:
        """One at a time, so that much can happen in between."""
        if not self.queue and self.calls:
            self._work()
        return [json.loads(json.dumps(self.queue.popleft()))] if self.queue else []

    def _work(self) -> None:
        worker, method, arguments = self.calls.popleft()
        event = {"event": "answer", "worker": worker, "method": method, "arguments": arguments}
        value = getattr(self.workers[worker], method)(*arguments)
        try:
            event["value"] = self.spoil(worker, method, arguments, value) if self.spoil else value
        except Killed as error:
            event |= {"error": str(error), "ended": True}
            node = self.places.pop(worker)
            if self.restart:
                self.restart -= 1
                self.places[f"{worker}+"] = node
            self.queue.append({"event": "nodes", "nodes": self.nodes})
        self.queue.append(event)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker sets its process's variables; the test's are put back."""
    monkeypatch.setenv("STAGESCOPE_THREADS", "1")
    assert os.environ["STAGESCOPE_THREADS"] == "1"
