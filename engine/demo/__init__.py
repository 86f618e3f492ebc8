"""What runs with no download: a small world, a dataset of it, and checkpoints that have seen it."""
