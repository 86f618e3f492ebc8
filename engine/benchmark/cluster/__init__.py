"""Dataset runs on several devices and machines, with Ray; only ray_process.py imports Ray."""
