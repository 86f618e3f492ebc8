"""Where a dataset run executes: in this process, or on Ray."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext

from engine import settings
from engine.benchmark.cluster.cluster_options import LOCAL, PER_WORKER, ClusterOptions, per_worker
from engine.benchmark.execute import Executor
from engine.cli.common import flag, refuse, say

ONLY_RAY = ("address", "workers", "per_worker")


ADDRESS_HELP = (
    "a Ray cluster: HOST:PORT, or auto for this machine's cluster; default: ray_address in the "
    "settings, otherwise a temporary local Ray cluster"
)
PER_WORKER_HELP = "resources of a worker (cpus=1, a GPU if any)"
FLAGS = {
    "--executor": flag(("local", "ray"), "this process (default), or Ray", "local"),
    "--address": flag(str, ADDRESS_HELP),
    "--workers": flag(int, "number of workers (default: one per device)"),
    "--per-worker": flag(str, PER_WORKER_HELP, form=PER_WORKER),
}


def chosen(options: argparse.Namespace) -> AbstractContextManager[Executor | None]:
    """A context for the run; leaving it stops everything that was started."""
    if options.executor == "local":
        refuse(options, ONLY_RAY, "needs --executor ray: leave it out, or add that.")
        return nullcontext()
    from engine.benchmark.cluster.run_session import ClusterExecutor

    cpus, gpus = (1, None) if options.per_worker is None else per_worker(options.per_worker)
    address = options.address
    if address is None:
        address = settings.load().ray_address or LOCAL
    wanted = ClusterOptions(address, options.workers, cpus, gpus)
    wanted.refuse(options.order or "", options.batch or 1)
    say(f"Connecting to Ray at {address} ..." if address != LOCAL else "Starting Ray ...")
    return ClusterExecutor(wanted)
