"""The queue, and the long jobs that pages and commands follow.

Boundary: one worker thread per device; a job calls the engine, and the engine knows no job.
"""
