"""A pytest plugin: existing tests, with the models on the pretended device.

python -m pytest -p tests.pretended.everywhere tests/pipeline

Not every test can pass so: some compare with tensors that they make on the CPU.
"""

import pytest

from tests.pretended.device import NAME


@pytest.fixture(autouse=True)
def _on_the_pretended_device(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "cache_dir" in request.fixturenames:  # which sets the CPU
        request.getfixturevalue("cache_dir")
    monkeypatch.setenv("STAGESCOPE_DEVICE", NAME)
