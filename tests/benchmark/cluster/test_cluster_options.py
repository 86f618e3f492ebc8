"""What a user may say of a cluster, and what is refused in a sentence."""

from typing import Any

import pytest

from engine.benchmark.cluster.ray_link import ClusterOptions, per_worker
from engine.errors import BadInput, ClusterError
from engine.storage.plan import Plan


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"workers": 0}, "workers is 0"),
        ({"workers": -(10**9)}, "workers is -1,000,000,000"),
        ({"cpus": 0}, "cpus is 0"),
        ({"gpus": 1.5}, "gpus is 1.5"),
        ({"gpus": -1.0}, "gpus is -1"),
        ({"gpus": 1e-08}, "gpus is 1e-08: .* no less than 0.01"),
        ({"gpus": float("nan")}, "gpus is nan"),
        ({"address": "6379"}, "write HOST:PORT"),
        ({"address": "ray://head:10001"}, "write HOST:PORT"),
        ({"address": "head:99999"}, "write HOST:PORT"),
        ({"address": ""}, "write HOST:PORT"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(more: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        ClusterOptions(**more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "found"),
    [("cpus=4", (4, None)), ("cpus=8, gpus=1", (8, 1.0)), ("gpus=0.5", (1, 0.5))],
)
def test_per_worker(text: str, found: tuple[int, float | None]) -> None:
    assert per_worker(text) == found


@pytest.mark.parametrize(
    "text",
    ["", "cpus=1,cpus=2", "gpus=1,", "cpu=1", "cpus=", "cpus=two", "4", "cpus=1.5", "cpus=inf"],
)
def test_per_worker_that_cannot_be_used(text: str) -> None:
    with pytest.raises(BadInput, match="--per-worker is"):
        per_worker(text)


@pytest.mark.parametrize(
    ("workers", "nodes", "words"),
    [
        (
            2,
            {"a": {"cpus": 1.0, "gpus": 0.0}},
            "2 workers are more than the cluster's 1 device of 1 core: request at most 1,",
        ),
        (None, {}, "No node of the cluster has 1 core for a worker: give --per-worker less"),
    ],
)
def test_more_workers_than_devices(workers: int | None, nodes: Any, words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        ClusterOptions(workers=workers).on(nodes)


def test_turns_and_batches_are_refused() -> None:
    with pytest.raises(BadInput, match="Models cannot take turns on a cluster"):
        ClusterOptions().check(Plan(("a", "b"), ("s",), order="interleaved"))
    with pytest.raises(BadInput, match="batch is 4"):
        ClusterOptions().check(Plan(("a", "b"), ("s",), batch=4))
    ClusterOptions().check(Plan(("a", "b"), ("s",)))
    ClusterOptions().check(Plan(("a", "b"), ("s",), order="interleaved", order_why="auto: room"))
