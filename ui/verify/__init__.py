"""The parts of the Verify page."""
