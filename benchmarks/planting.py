"""A pytest plugin that plants one fault before any test module is imported.

`PLANTED_FAULT="seed ignored" python -m pytest -p benchmarks.planting tests/test_types.py`.  Without
that variable nothing is planted.
"""

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    if name := os.environ.get("PLANTED_FAULT"):
        from tests.faults import FAULTS

        FAULTS[name].plant(pytest.MonkeyPatch())
