"""A dataset run: prepared, executed task by task, followed; on one device or on a Ray cluster.

Boundary: asks the pipeline and writes through the storage.  It knows no page and no queue.
"""
