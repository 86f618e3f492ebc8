"""Tests of the engine on a pretended accelerator, in a process of their own (see device.py)."""

import os

ENABLED = os.environ.get("STAGESCOPE_PRETENDED") == "1"
if ENABLED:  # before the engine, whose functions are decorated with torch.inference_mode
    from tests.pretended import device  # noqa: F401
