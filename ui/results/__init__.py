"""The parts of the Results page."""
