"""What the engine runs on: the device, its memory, its clocks, and how busy the machine is.

Boundary: knows no model, no sample and no run.
"""
