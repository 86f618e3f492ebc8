"""A Ray cluster of nodes on this machine's loopback, for tests; runs as a process of its own.

`python -m tests.benchmark.cluster.nodes`: a head with one core; prints its address.  Then a
word in each line of standard input: "add" starts a second node with one core, "kill" ends it as a
power cut would.  Each line is answered by a line; end of input ends everything.
"""

import sys
from typing import Any

from ray.cluster_utils import Cluster

NODE = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "object_store_memory": 80 * 2**20}


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
    _say(cluster.address)
    second: Any = None
    for line in sys.stdin:
        if second is not None:
            cluster.remove_node(second, allow_graceful=False)
            cluster.wait_for_nodes()  # the head takes a moment to notice
            second = None
        if line.strip() == "add":
            second = cluster.add_node(**NODE)
        _say("done")
    cluster.shutdown()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
