"""The command on the Benchmark page gives the chosen plan to the command line."""

import argparse
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.benchmark.cluster.ray_link import ClusterOptions, per_worker
from engine.cli import bench
from engine.media.dataset import Dataset
from engine.media_options import Split, Window, perturbations
from engine.storage.plan import IDS, Plan
from engine.types import DecodeConfig
from ui.benchmark.run_choice import command

FOUR = tuple("abcd")
PLAN = Plan(("x", "y"), FOUR)


def dataset() -> Dataset:
    samples = [SimpleNamespace(id=name) for name in FOUR]
    return cast(Dataset, SimpleNamespace(root=Path("/a folder"), samples=samples))


def read(text: str) -> argparse.Namespace:
    """The command as the command line reads it."""
    parser = argparse.ArgumentParser()
    bench.add(parser.add_subparsers())
    words = shlex.split(text)
    assert words[:3] == ["python", "-m", "engine"]
    return parser.parse_args(words[3:])


@pytest.mark.parametrize(
    ("change", "option", "value"),
    [
        ({"samples": ("a", "b")}, "samples", 2),
        ({"samples": ("b",)}, "ids", Path(IDS)),
        ({"prompt": "What's $HOME?"}, "prompt", "What's $HOME?"),
        ({"repeat": 3}, "repeat", 3),
        ({"warmup": 0}, "warmup", 0),
        ({"order": "interleaved"}, "order", "interleaved"),
        ({"cache": "use"}, "cache", "use"),
        ({"frames": "spread"}, "frames", "spread"),
        ({"mode": "hooked"}, "mode", "hooked"),
        ({"extent": "stream"}, "extent", "stream"),
        ({"batch": 4}, "batch", 4),
        ({"window": Window(0, 50_000)}, "window", "0s+50ms"),
        ({"split": Split("time", 8)}, "split", "time:8"),
        ({"perturb": perturbations("drop:0.3,jitter:1ms")}, "perturb", "drop:0.3,jitter:1ms"),
        ({"decode": DecodeConfig(9)}, "max_new_tokens", 9),
        ({"decode": DecodeConfig(9, min_new_tokens=9)}, "length", "forced:9"),
        ({"decode": DecodeConfig(backend="eager")}, "backend", "eager"),
    ],
)
def test_each_choice_is_an_option(change: dict[str, Any], option: str, value: Any) -> None:
    plain = vars(read(command([PLAN], dataset())))
    options = vars(read(command([replace(PLAN, **change)], dataset())))
    assert {name: options[name] for name in options if options[name] != plain[name]} == {
        option: value
    }


@pytest.mark.parametrize(
    "wanted",
    [
        ClusterOptions(),
        ClusterOptions("10.0.0.1:6379", 3),
        ClusterOptions("auto", None, 4, None),
        ClusterOptions("auto", 2, 1, 0.5),
    ],
)
def test_a_run_on_a_cluster_names_it(wanted: ClusterOptions) -> None:
    options = read(command([PLAN], dataset(), wanted))
    cpus, gpus = per_worker(options.per_worker) if options.per_worker else (1, None)
    assert options.executor == "ray"
    assert ClusterOptions(options.address, options.workers, cpus, gpus) == wanted
