"""Widgets and helpers that several pages use."""
