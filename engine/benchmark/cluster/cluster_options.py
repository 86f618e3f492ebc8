"""Which Ray cluster a dataset run uses, and the resources of each worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import BadInput, ClusterError
from engine.media_options import check_range
from engine.quoting import count, quoted, whole
from engine.storage.plan import Plan

LOCAL, AUTO = "local", "auto"
MOST = 10_000
LEAST_GPU = 0.01  # Ray counts in steps of 0.0001, but no model runs on so little
PER_WORKER = "cpus=N,gpus=N"


@dataclass(frozen=True)
class ClusterOptions:
    """`address`: HOST:PORT, "auto" for the cluster that this machine belongs to, "local" for a
    temporary one on this machine.  `workers` None: one per device.  A device is `gpus` GPUs with
    `cpus` cores; `gpus` None: 1 if the cluster has GPUs, else 0."""

    address: str = LOCAL
    workers: int | None = None
    cpus: int = 1
    gpus: float | None = None

    def __post_init__(self) -> None:
        if self.address not in (LOCAL, AUTO):
            host_and_port(self.address)
        check_range("workers", 1 if self.workers is None else self.workers, 1, MOST)
        check_range("cpus", self.cpus, 1, MOST)
        gpus = self.gpus or 0.0
        if not (0 <= gpus <= MOST and (float(gpus).is_integer() or LEAST_GPU <= gpus < 1)):
            allowed = f"0, a part of 1 that is no less than {LEAST_GPU:g}, or whole GPUs"
            raise BadInput(f"gpus is {self.gpus}: a worker takes {allowed}.")

    @property
    def flags(self) -> list[str]:
        found = ["--executor", "ray", "--address", self.address]
        if self.workers is not None:
            found += ["--workers", str(self.workers)]
        if self.cpus != ClusterOptions.cpus or self.gpus is not None:
            gpus = "" if self.gpus is None else f",gpus={self.gpus:g}"
            found += ["--per-worker", f"cpus={self.cpus}{gpus}"]
        return found

    def on(self, nodes: Mapping[str, Mapping[str, Any]]) -> ClusterOptions:
        """These options for a cluster of these nodes; ClusterError if it has too few devices."""
        gpus = float(any(node["gpus"] >= 1 for node in nodes.values()))
        options = replace(self, gpus=gpus if self.gpus is None else self.gpus)
        there = len(options.devices(nodes))
        each = count(self.cpus, "core") + (f" and {options.gpus:g} GPU" if options.gpus else "")
        if not there:
            raise ClusterError(
                f"No node of the cluster has {each} for a worker: give --per-worker less."
            )
        if self.workers and self.workers > there:
            raise ClusterError(
                f"{count(self.workers, 'worker')} are more than the cluster's "
                f"{count(there, 'device')} of {each}: request at most {there:,}, or less for each."
            )
        return options

    def devices(self, nodes: Mapping[str, Mapping[str, Any]]) -> list[tuple[int, str]]:
        """(number, node) of each device: the first of each node, then the second ones, ..."""
        found = []
        for name, node in nodes.items():
            most = int(node["cpus"] // self.cpus)
            if self.gpus:
                most = min(most, int(node["gpus"] / self.gpus + 1e-9))
            found += [(number, name) for number in range(most)]
        return sorted(found)

    def check(self, plan: Plan) -> None:
        """As refuse(); an automatically chosen order is ignored."""
        self.refuse("auto" if plan.order_why else plan.order, plan.batch)

    def refuse(self, order: str, batch: int) -> None:
        """BadInput for settings that cannot run on several workers."""
        if order == "interleaved":
            raise BadInput(
                "Models cannot take turns on a cluster, where each worker holds one model: choose "
                "order sequential (Model by model), or run on this machine alone."
            )
        if batch > 1:
            given = f"batch is {whole(batch)}, but on a cluster each sample runs by itself"
            raise BadInput(f"{given}: choose 1, or run on this machine alone.")


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of HOST:PORT (an IPv6 host is in brackets), or BadInput."""
    host, _, port = address.rpartition(":")
    known = port.isdecimal() and len(port) <= 5
    if not host or "/" in host or not known or not 1 <= int(port) <= 65535:
        given = f"The Ray address is {quoted(address)}"
        raise BadInput(f"{given}: write HOST:PORT as in 192.168.0.5:6379, auto or local.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def per_worker(text: str) -> tuple[int, float | None]:
    """(cpus, gpus) of "cpus=4,gpus=1"; either may be left out."""
    parts = [part.strip().partition("=") for part in text.split(",")]
    wanted = {name: amount for name, _, amount in parts}
    try:
        gpus = float(wanted.pop("gpus")) if "gpus" in wanted else None
        cpus = int(wanted.pop("cpus", "1"))
        if wanted or len(parts) > len({name for name, _, _ in parts}):
            raise ValueError
    except ValueError as error:
        raise BadInput(
            f"--per-worker is {quoted(text)}: write it as {PER_WORKER}, each a number, once."
        ) from error
    return cpus, gpus
