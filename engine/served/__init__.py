"""Columns that are servers: one request of the OpenAI-compatible protocol, and what it tells."""
