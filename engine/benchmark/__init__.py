"""Dataset runs: prepares and executes them on one device or on a Ray cluster, with progress."""
