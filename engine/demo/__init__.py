"""The demo that needs no download: simulated driving scenes, a dataset, and trained checkpoints."""
