"""A run on disk: its plan, its header, its result rows, annotations, and what they depend on.

Boundary: files and their types.  It runs no model and computes no figure.
"""
