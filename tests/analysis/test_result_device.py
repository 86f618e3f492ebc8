"""The type of device of a result: what its times depend on."""

from __future__ import annotations

from typing import Any

import pytest

from engine.analysis.result_device import device_of, device_type
from engine.storage.result_rows import ResultRow
from tests import fabricate

CPU = {"device": "cpu", "hardware": "x86_64", "processor": "EPYC", "threads": "2"}
GPU = {"device": "cuda:0", "hardware": "H200", "processor": "EPYC", "threads": "2"}


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        (CPU, "EPYC, 2 threads"),
        (CPU | {"threads": "1"}, "EPYC, 1 thread"),
        (CPU | {"processor": ""}, "x86_64, 2 threads"),
        ({"hardware": "x86_64"}, "x86_64"),
        (GPU, "H200"),
        ({}, ""),
    ],
)
def test_names(environment: dict[str, str], name: str) -> None:
    assert device_type(environment) == name


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"environment": GPU}, "H200"),
        ({"environment": GPU, "where": {"shares": []}}, "H200"),
        ({"environment": GPU, "where": {"shares": ["device", "cores"]}},
         "H200, shared device and cores"),
        ({"where": {"type": "H200"}}, "H200"),
        ({}, ""),
        ({"where": {"type": "H200"}}, "H200"),
        ({"where": {"shares": ["cores"]}}, "shared cores"),
    ],
)  # fmt: skip
def test_rows(row: dict[str, Any], name: str) -> None:
    assert device_of(ResultRow.parse(fabricate.row() | row)) == name
