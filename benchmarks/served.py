"""What a served column costs: the client's processor time, and the protocol's time.

`python -m benchmarks.served`: a server that answers at once, in a process of its own, asked by 1, 2
and 4 threads; then `transformers serve` with the demo LLaVA beside the same model in this process,
by turns, where its packages are installed.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks.machine import Row, by_turns, demo_samples, limit, main, rows
from engine.models import registry
from engine.models.checkpoint import Server
from engine.pipeline import single_run
from engine.prompts import DEFAULT_QUESTION
from engine.served import column, protocol
from engine.types import RunRequest, RunResult

PARALLEL = (1, 2, 4)
MOST_MS = 3.0  # of processor time for a request
PICTURE = "A" * 150_000  # a PNG of 336 x 336 in base64
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": PICTURE}]}
FAKE = """
import time
from tests.served.fake_server import serving
with serving() as server:
    print(server.url, flush=True)
    time.sleep(3600)
"""


def measure(quick: bool) -> list[Row]:
    found = list(_client(4 if quick else 200))
    if find_spec("fastapi") and not quick:
        found += _protocol(20)
    return found


@contextmanager
def _fake() -> Iterator[Server]:
    command = [sys.executable, "-c", FAKE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server(process.stdout.readline().strip(), "m")
        finally:
            process.kill()


def _client(requests: int) -> Iterator[Row]:
    """Processor time of this process for each request; the server's is another's."""
    with _fake() as server:
        protocol.ask(server, BODY)
        for parallel in PARALLEL:
            each = []
            for _ in range(5):
                began = time.process_time()
                with ThreadPoolExecutor(parallel) as pool:
                    list(pool.map(lambda _: protocol.ask(server, BODY), range(requests // 4)))
                each.append(1000 * (time.process_time() - began) / (requests // 4))
            yield limit(f"client, {parallel} at once", each, "ms of processor time", MOST_MS)


def _protocol(rounds: int) -> list[Row]:
    """TTFT and total of the same model here and behind the protocol, by turns."""
    from tests.served import transformers_serve

    entry = registry.entry("llava-demo")
    local, sample = registry.load(entry), demo_samples()[0]
    request = RunRequest(sample, entry.name, DEFAULT_QUESTION)
    runs: dict[str, list[RunResult]] = {"in this process": [], "transformers serve": []}
    with (
        tempfile.TemporaryDirectory() as folder,
        transformers_serve.serving(Path(folder)) as server,
    ):
        served = replace(entry, server=server)
        ways = {
            "in this process": lambda: single_run.run(local, request, None),
            "transformers serve": lambda: column.answer(served, request),
        }
        kept = {name: _kept(way, runs[name]) for name, way in ways.items()}
        by_turns(kept, rounds)
    firsts = {name: [run.ttft_ms or 0.0 for run in some[-rounds:]] for name, some in runs.items()}
    totals = {name: [run.total_ms for run in some[-rounds:]] for name, some in runs.items()}
    return [*rows("TTFT", firsts), *rows("total", totals)]


def _kept(way: Callable[[], RunResult], found: list[RunResult]) -> Callable[[], None]:
    return lambda: found.append(way())


if __name__ == "__main__":
    main("served", measure, __doc__)
