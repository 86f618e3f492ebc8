"""The queue of the device, and the long jobs whose progress pages and commands show.

Boundary: one queue and one worker thread per process.  A job calls the engine; the engine never
imports a job.
"""
