"""The cost of verification itself, and of ordinary runs with certificates.

`python -m benchmarks.verification`: the command line on three models, 3 samples and 5 runs, from
process start to end; then, in one process, ordinary runs before and after a verification, and what
a result's row costs with no, one and fifty certificates.  The cache is a temporary folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.machine import keep, spread

MODELS = "eventgpt-demo,video-llava-demo,llava-demo"
REPEAT = 25


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ["STAGESCOPE_CACHE_DIR"] = folder
        figures = {"command_line": _command_line(), **_ordinary_runs()}
    keep("verification", figures)


def _command_line() -> dict[str, Any]:
    subprocess.run([sys.executable, "-m", "engine", "demo"], check=True, capture_output=True)
    command = [sys.executable, "-m", "engine", "verify", "--models", MODELS]
    start = time.perf_counter()
    done = subprocess.run([*command, "--samples", "3", "--runs", "5"], capture_output=True)
    return {"seconds": round(time.perf_counter() - start, 1), "exit_code": done.returncode}


def _ordinary_runs() -> dict[str, Any]:
    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.jobs.verify_job import VerifyJob
    from engine.media import dataset
    from engine.models import registry
    from engine.pipeline import feature_cache, single_run
    from engine.storage.result_rows import ResultRow
    from engine.types import RunRequest
    from engine.verify import certificates
    from engine.verify.verdict import VerifyRequest

    sample = dataset.read(ensure_dataset(settings.load().demo_dir)).samples[0]
    adapter = registry.load(registry.entry("eventgpt-demo"))
    request = RunRequest(sample, "eventgpt-demo", "What is this scene about?")

    def totals() -> dict[str, Any]:
        runs = [single_run.run(adapter, request, feature_cache.shared()) for _ in range(REPEAT)]
        return spread([run.total_ms for run in runs])

    def row_ms() -> dict[str, Any]:
        result = single_run.run(adapter, request, feature_cache.shared())
        return spread([_ms(lambda: ResultRow.from_result(result).as_dict()) for _ in range(REPEAT)])

    for path in certificates.folder().glob("*.json"):
        path.unlink()
    totals()
    figures = {"total_ms_before": totals(), "row_ms_no_certificate": row_ms()}
    job = VerifyJob(request=VerifyRequest(("eventgpt-demo",), (sample,)), dataset="")
    job.work()
    assert job.certificate is not None
    figures |= {"total_ms_after": totals(), "row_ms_one_certificate": row_ms()}
    for number in range(49):
        other = job.certificate | {"made": f"2000-01-01T00:00:{number:02}+00:00"}
        certificates.store(other | {"hash": certificates.content_hash(other)})
    return figures | {"row_ms_fifty_certificates": row_ms()}


def _ms(work: Any) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
