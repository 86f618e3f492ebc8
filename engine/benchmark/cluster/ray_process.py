"""The process that uses Ray: starts actors where it is told, passes calls and answers on.

    lines in   the address; then start (a worker on a node), call (a worker), end (a worker)
    lines out  ready or refused; nodes (the live ones, each second); head (its problem); answer (of
               a call, or its error); closed

The only module that imports Ray.  It ends at the end of its input, and stops Ray if it started it.
"""

import contextlib
import json
import os
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from engine.benchmark.cluster.ray_link import LOCAL, unlogged, unreachable
from engine.benchmark.cluster.worker import Worker

STORE_BYTES = 80 * 2**20  # for Ray's objects: rows and serialized runs
LOOK_S = 1.0  # between checks of the nodes
LOST_S = 15.0  # the cluster is lost if its head is silent for so long
END_S = 15.0  # limit for stopping Ray
Say = Callable[..., None]


def main() -> None:
    out, lock = os.fdopen(os.dup(1), "w", encoding="utf-8"), threading.Lock()
    os.dup2(2, 1)  # all other output goes to the log

    def say(event: str, **more: Any) -> None:
        with lock, contextlib.suppress(OSError):
            out.write(json.dumps({"event": event, **more}) + "\n")
            out.flush()

    start = json.loads(sys.stdin.readline() or "{}")
    if not start:
        return
    if reason := connect(start["address"], start["temp"]):
        say("refused", reason=reason)
    else:
        import ray

        say("ready", nodes=nodes())
        head = str(ray.get_runtime_context().gcs_address)
        threading.Thread(target=guard, args=(head, say), daemon=True).start()
        threading.Thread(target=report_nodes, args=(say,), daemon=True).start()
        obey(map(json.loads, sys.stdin), say)
        # Stopping Ray hangs if its head is lost.
        limit = threading.Timer(END_S, os._exit, (1,))
        limit.daemon = True
        limit.start()
        ray.shutdown()
    shutil.rmtree(start["temp"], ignore_errors=True)


def connect(address: str, temp: str) -> str:
    """Joins or starts a cluster; why that failed, or ""."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads these on import
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # no second Ray while the first one stops
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "1"  # workers without GPUs see none
    options: dict[str, Any] = {"address": address}
    if address == LOCAL:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # binds to 127.0.0.1 only
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        store = {"object_store_memory": STORE_BYTES}
        options = {"include_dashboard": False, "_temp_dir": temp, **store}
    import ray

    try:
        ray.init(**options, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError, AssertionError, ray.exceptions.RayError) as error:
        todo = "" if address == LOCAL else ": check that `ray start` runs on this machine"
        return f"Ray cannot be used at {address} ({sentence(error)}){todo}."
    return ""


def guard(head: str, say: Say) -> None:
    """Reports a lost head node.  Ray itself would hang for a minute, then end its driver's process
    without a message."""
    heard = time.monotonic()
    while time.monotonic() - heard < LOST_S:
        time.sleep(LOOK_S)
        silent = bool(unreachable(head))
        say("head", trouble=f"the head node {head} does not answer" if silent else "")
        heard = heard if silent else time.monotonic()
    say("closed", reason=f"The head node {head} of the Ray cluster has been lost.")


def report_nodes(say: Say) -> None:
    """Apart from the guard: this waits without end for a lost head."""
    while True:
        time.sleep(LOOK_S)
        say("nodes", nodes=nodes())


def nodes() -> dict[str, dict[str, Any]]:
    import ray

    return {
        node["NodeID"][:8]: {
            "id": node["NodeID"],
            "address": node["NodeManagerAddress"],
            "cpus": node["Resources"].get("CPU", 0.0),
            "gpus": node["Resources"].get("GPU", 0.0),
        }
        for node in ray.nodes()
        if node["Alive"]
    }


def obey(orders: Iterable[dict[str, Any]], say: Say) -> None:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    actors, answers = dict[str, Any](), ThreadPoolExecutor(1)
    for order in orders:
        if (name := order.get("start")) is not None:
            kind = ray.remote(Worker).options(
                name=f"stagescope-{name}",
                num_cpus=order["cpus"],
                num_gpus=order["gpus"],
                scheduling_strategy=NodeAffinitySchedulingStrategy(order["node"], soft=False),
            )
            actors[name] = kind.remote(order["cpus"], order["run_data"])
        elif (name := order.get("end")) is not None:
            with contextlib.suppress(ray.exceptions.RayError, ValueError):
                ray.kill(actors.pop(name))
        else:
            name, method, arguments = order["call"], order["method"], order["arguments"]
            future = getattr(actors[name], method).remote(*arguments).future()
            call = {"worker": name, "method": method, "arguments": arguments}
            future.add_done_callback(
                lambda done, call=call: answers.submit(answer, say, call, done)
            )


def answer(say: Say, call: dict[str, Any], done: Any) -> None:
    import ray

    if (error := done.exception()) is None:
        say("answer", **call, value=done.result())
    else:
        say("nodes", nodes=nodes())  # the cause may be that one has left
        ended = isinstance(error, ray.exceptions.RayActorError)
        say("answer", **call, error=sentence(error), ended=ended)


def sentence(error: BaseException) -> str:
    """The first sentence of an error's cause, without trace and advice."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException):
        return f"{type(cause).__name__}: {cause}"
    detail = (str(error).partition("Worker exit detail:")[2] or str(error)).strip()
    return unlogged(detail.partition("\n")[0]).rstrip(".") or type(error).__name__


if __name__ == "__main__":
    main()
