"""Verification: does decoupled inference give the same answers and times as the model itself?

An answer is computed in four ways: *plain* (the model's own generate() on pixels), *hooked* (the
same under the vision probe), *decoupled* (features are encoded once, written to disk, read back and
decoded by the project's loop) and *features* (generate() on the features).  plain is the
reference.

Importing this package does not import torch; importing `runner` does.
"""
