"""How the demo checkpoints were trained: `python -m tools.demo_training.train`.

Boundary: writes checkpoints in the published form.  The engine reads them like any other.
"""
