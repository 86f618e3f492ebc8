"""Verification: does decoupled inference give the same answers and times as the model itself?

An answer is computed in five ways: *plain* (the model's own generate() on pixels), *hooked* (the
same under the vision probe), *decoupled* (features are encoded once, written to disk, read back and
decoded by the project's loop), *features* (generate() on the features) and *reused* (the project's
loop, continuing from a prefix that another question left in memory).  plain is the reference.

Importing this package does not import torch; importing `runner` does.
"""
