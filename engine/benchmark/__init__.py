"""Dataset runs: prepares and executes them on one device or on a Ray cluster, and tracks progress.

Boundary: calls the pipeline and writes through the storage; knows no page and no queue.
"""
