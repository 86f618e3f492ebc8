"""How the demo checkpoints were trained: `python -m tools.demo_training.train`.

Boundary: writes checkpoints in the published format; the engine loads them like any other.
"""
