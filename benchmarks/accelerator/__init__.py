"""What is measured on an accelerator at full size: `python -m benchmarks.accelerator`."""
