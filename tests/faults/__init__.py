"""Faults that can be planted in the engine, each a small patch with a sentence about it.

The tests of the verifier and `python -m benchmarks.planted` use the same list.  A fault changes
classes and modules, never one loaded model, so that it can be planted before anything is loaded.
"""

from tests.faults import caching, decoding, families, models, stages, verifier
from tests.faults.fault import Fault

__all__ = ["FAULTS", "Fault"]
FAULTS: dict[str, Fault] = {
    fault.name: fault
    for part in (verifier, stages, decoding, models, caching, families)
    for fault in part.FAULTS
}
