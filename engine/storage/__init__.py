"""A run on disk: its plan, its header, its result rows, annotations, and what they depend on.  It
runs no model and computes no figure."""
